//! Whether an endpoint names something.

use aldaba_delivery::OrgId;
use rusqlite::{Connection, OptionalExtension};

/// `next` finds the first application after another one of which an endpoint does. What a deleted one has left may be very
/// much, and does not count: it is passed over application by application.
pub(super) fn is_named(
    connection: &Connection,
    next: &str,
    org: OrgId,
    name: &str,
) -> rusqlite::Result<bool> {
    let mut next = connection.prepare_cached(next)?;
    let mut deleted = connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND deleted = 1")?;
    let mut after: Vec<u8> = Vec::new();
    while let Some(app) =
        next.query_row((org.as_bytes(), name, &after), |row| row.get::<_, Vec<u8>>(0)).optional()?
    {
        if !deleted.exists((&app,))? {
            return Ok(true);
        }
        after = app;
    }
    Ok(false)
}
