//! Wire profiles of an organization's own.

use super::{rows, used};
use crate::{Changed, OwnProfile};
use aldaba_delivery::{BUILTIN_PROFILES, OrgId};
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn create(connection: &Connection, own: &OwnProfile) -> rusqlite::Result<Changed> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO profile (org, name, body, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
    )?;
    let moments = (own.created_at.millis(), own.updated_at.millis());
    let made = insert.execute((own.org.as_bytes(), &own.name, &own.body, moments.0, moments.1))?;
    Ok(if made == 0 { Changed::UidTaken } else { Changed::Done { removed: Vec::new() } })
}

pub(super) fn replace(connection: &Connection, own: &OwnProfile) -> rusqlite::Result<Changed> {
    let mut update = connection
        .prepare_cached("UPDATE profile SET body = ?3, updated_at = ?4 WHERE org = ?1 AND name = ?2")?;
    let found = update.execute((own.org.as_bytes(), &own.name, &own.body, own.updated_at.millis()))?;
    Ok(if found == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } })
}

/// The words are those of the index, so that SQLite takes it.
const NAMED: &str = "SELECT app FROM endpoint INDEXED BY endpoint_profile
     WHERE org = ?1 AND profile = ?2 AND app > ?3 AND profile IS NOT NULL AND deleted = 0 ORDER BY app LIMIT 1";

const BY: &str = "SELECT id FROM endpoint INDEXED BY endpoint_profile
     WHERE org = ?1 AND profile = ?2 AND app = ?3 AND profile IS NOT NULL AND deleted = 0 LIMIT 1";

pub(super) fn delete(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<Changed> {
    if let Some(endpoint) = used::by(connection, (NAMED, BY), org, name)? {
        return Ok(Changed::InUse { endpoint: Some(endpoint) });
    }
    let mut delete = connection.prepare_cached("DELETE FROM profile WHERE org = ?1 AND name = ?2")?;
    let found = delete.execute((org.as_bytes(), name))?;
    Ok(if found == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } })
}

/// Whether endpoints of the organization can name it. Naming none is fine.
pub(super) fn is_known(connection: &Connection, org: OrgId, name: Option<&str>) -> rusqlite::Result<bool> {
    let Some(name) = name.filter(|name| !BUILTIN_PROFILES.contains(name)) else {
        return Ok(true);
    };
    connection
        .prepare_cached("SELECT 1 FROM profile WHERE org = ?1 AND name = ?2")?
        .exists((org.as_bytes(), name))
}

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<OwnProfile>> {
    connection
        .prepare_cached("SELECT org, name, body, created_at, updated_at FROM profile ORDER BY org, name")?
        .query_map((), own)?
        .collect()
}

pub(super) fn one(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<Option<OwnProfile>> {
    connection
        .prepare_cached(
            "SELECT org, name, body, created_at, updated_at FROM profile WHERE org = ?1 AND name = ?2",
        )?
        .query_row((org.as_bytes(), name), own)
        .optional()
}

fn own(row: &Row<'_>) -> rusqlite::Result<OwnProfile> {
    Ok(OwnProfile {
        org: rows::id(row, 0)?,
        name: row.get(1)?,
        body: row.get(2)?,
        created_at: rows::moment(row, 3)?,
        updated_at: rows::moment(row, 4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn who_names_a_profile_is_found_in_the_index_alone() {
        let covering =
            "SEARCH endpoint USING COVERING INDEX endpoint_profile (org=? AND profile=? AND app>?)";
        assert_eq!(plan(NAMED), covering);
    }
}
