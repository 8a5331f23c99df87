//! Which endpoint names something.

use super::rows;
use aldaba_delivery::{EndpointId, OrgId};
use rusqlite::{Connection, OptionalExtension};

/// `next` finds the first application after another one of which an endpoint does, and `one` such an endpoint of it. What a
/// deleted application has left may be very much, and does not count: it is passed over application by application.
pub(super) fn by(
    connection: &Connection,
    (next, one): (&str, &str),
    org: OrgId,
    name: &str,
) -> rusqlite::Result<Option<EndpointId>> {
    let mut next = connection.prepare_cached(next)?;
    let mut deleted = connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND deleted = 1")?;
    let mut after: Vec<u8> = Vec::new();
    while let Some(app) =
        next.query_row((org.as_bytes(), name, &after), |row| row.get::<_, Vec<u8>>(0)).optional()?
    {
        if !deleted.exists((&app,))? {
            let mut one = connection.prepare_cached(one)?;
            return one.query_row((org.as_bytes(), name, &app), |row| rows::id(row, 0)).map(Some);
        }
        after = app;
    }
    Ok(None)
}
