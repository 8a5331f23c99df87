//! Event types of organizations.

use super::names;
use super::rows;
use crate::{Changed, EventType, EventTypeChange, EventTypeWrite};
use aldaba_delivery::OrgId;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// All or none: whether each is still what it was is looked at before the first is written.
pub(super) fn write(connection: &Connection, change: &EventTypeChange) -> rusqlite::Result<Changed> {
    let mut find =
        connection.prepare_cached("SELECT updated_at FROM event_type WHERE org = ?1 AND name = ?2")?;
    for EventTypeWrite { name, was, .. } in &change.writes {
        let found = find.query_row((change.org.as_bytes(), name), |row| rows::moment(row, 0)).optional()?;
        if found != *was {
            return Ok(Changed::Stale);
        }
    }
    for EventTypeWrite { name, now, .. } in &change.writes {
        match now {
            Some(event_type) => put(connection, event_type)?,
            None => {
                let mut remove =
                    connection.prepare_cached("DELETE FROM event_type WHERE org = ?1 AND name = ?2")?;
                remove.execute((change.org.as_bytes(), name))?;
            }
        }
    }
    Ok(Changed::Done { removed: Vec::new() })
}

fn put(connection: &Connection, event_type: &EventType) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO event_type (org, name, id, archived, deprecated, validate, created_at, updated_at,
             feature_flags, group_name, description, schemas)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    put.execute(params![
        event_type.org.as_bytes(),
        event_type.name,
        event_type.id.as_bytes(),
        event_type.archived,
        event_type.deprecated,
        event_type.validate,
        event_type.created_at.millis(),
        event_type.updated_at.millis(),
        names::write(&event_type.feature_flags),
        event_type.group_name,
        event_type.description,
        event_type.schemas,
    ])?;
    Ok(())
}

const EVENT_TYPE: &str =
    "org, name, id, archived, deprecated, validate, created_at, updated_at, feature_flags,
    group_name, description, schemas";

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<EventType>> {
    connection
        .prepare_cached(&format!("SELECT {EVENT_TYPE} FROM event_type ORDER BY org, name"))?
        .query_map((), event_type)?
        .collect()
}

pub(super) fn one(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<Option<EventType>> {
    connection
        .prepare_cached(&format!("SELECT {EVENT_TYPE} FROM event_type WHERE org = ?1 AND name = ?2"))?
        .query_row((org.as_bytes(), name), event_type)
        .optional()
}

fn event_type(row: &Row<'_>) -> rusqlite::Result<EventType> {
    Ok(EventType {
        org: rows::id(row, 0)?,
        name: row.get(1)?,
        id: rows::id(row, 2)?,
        archived: row.get(3)?,
        deprecated: row.get(4)?,
        validate: row.get(5)?,
        created_at: rows::moment(row, 6)?,
        updated_at: rows::moment(row, 7)?,
        feature_flags: rows::list(row, 8)?,
        group_name: row.get(9)?,
        description: row.get(10)?,
        schemas: row.get(11)?,
    })
}
