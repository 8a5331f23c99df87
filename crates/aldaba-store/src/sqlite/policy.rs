//! Policies of an organization's own.

use super::{rows, used};
use crate::{Changed, OwnPolicy};
use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_delivery::{OrgId, Policy};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn create(connection: &Connection, own: &OwnPolicy) -> rusqlite::Result<Changed> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO policy (org, name, body, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
    )?;
    let body = own.policy.to_json().to_string();
    let moments = (own.created_at.millis(), own.updated_at.millis());
    let made = insert.execute((own.org.as_bytes(), &own.policy.name, body, moments.0, moments.1))?;
    Ok(if made == 0 { Changed::UidTaken } else { Changed::Done { removed: Vec::new() } })
}

pub(super) fn replace(connection: &Connection, own: &OwnPolicy) -> rusqlite::Result<Changed> {
    let mut update = connection
        .prepare_cached("UPDATE policy SET body = ?3, updated_at = ?4 WHERE org = ?1 AND name = ?2")?;
    let body = own.policy.to_json().to_string();
    let found = update.execute((own.org.as_bytes(), &own.policy.name, body, own.updated_at.millis()))?;
    Ok(if found == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } })
}

const NAMED: &str = "SELECT app FROM endpoint INDEXED BY endpoint_policy
     WHERE org = ?1 AND policy = ?2 AND app > ?3 AND deleted = 0 ORDER BY app LIMIT 1";

const BY: &str = "SELECT id FROM endpoint INDEXED BY endpoint_policy
     WHERE org = ?1 AND policy = ?2 AND app = ?3 AND deleted = 0 LIMIT 1";

pub(super) fn delete(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<Changed> {
    if let Some(endpoint) = used::by(connection, (NAMED, BY), org, name)? {
        return Ok(Changed::InUse { endpoint: Some(endpoint) });
    }
    let mut delete = connection.prepare_cached("DELETE FROM policy WHERE org = ?1 AND name = ?2")?;
    let found = delete.execute((org.as_bytes(), name))?;
    Ok(if found == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } })
}

/// Whether endpoints of the organization can name it.
pub(super) fn is_known(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<bool> {
    if BUILTIN_NAMES.contains(&name) {
        return Ok(true);
    }
    connection
        .prepare_cached("SELECT 1 FROM policy WHERE org = ?1 AND name = ?2")?
        .exists((org.as_bytes(), name))
}

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<OwnPolicy>> {
    connection
        .prepare_cached("SELECT org, body, created_at, updated_at FROM policy ORDER BY org, name")?
        .query_map((), own)?
        .collect()
}

pub(super) fn one(connection: &Connection, org: OrgId, name: &str) -> rusqlite::Result<Option<OwnPolicy>> {
    connection
        .prepare_cached("SELECT org, body, created_at, updated_at FROM policy WHERE org = ?1 AND name = ?2")?
        .query_row((org.as_bytes(), name), own)
        .optional()
}

fn own(row: &Row<'_>) -> rusqlite::Result<OwnPolicy> {
    let body: String = row.get(1)?;
    let unreadable = |why: String| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, why.into());
    let json = serde_json::from_str(&body).map_err(|error| unreadable(error.to_string()))?;
    let policy = Policy::from_json(&json).map_err(|errors| {
        unreadable(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })?;
    let (created_at, updated_at) = (rows::moment(row, 2)?, rows::moment(row, 3)?);
    Ok(OwnPolicy { org: rows::id(row, 0)?, policy, created_at, updated_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn who_names_a_policy_is_found_in_the_index_alone() {
        assert_eq!(
            plan(NAMED),
            "SEARCH endpoint USING COVERING INDEX endpoint_policy (org=? AND policy=? AND app>?)"
        );
    }
}
