//! What waits for an endpoint whose ordering changes.

use super::codes::Code;
use super::rows::count;
use crate::{Endpoint, Obstacle};
use aldaba_delivery::{HealthStatus, Ordering};
use rusqlite::{CachedStatement, Connection};

/// One that was never tried and is not due yet.
const DELAYED: &str = "
    SELECT 1 FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND due_at > ?2 AND attempts = 0";

/// One too many to be marked.
const TOO_MANY: &str = "
    SELECT 1 FROM delivery INDEXED BY delivery_lane WHERE state = 0 AND endpoint = ?1 LIMIT 1 OFFSET ?2";

const MARK: &str = "
    UPDATE delivery SET ordered = 1 WHERE seq IN
        (SELECT seq FROM delivery INDEXED BY delivery_lane WHERE state = 0 AND endpoint = ?1)
        AND ordered = 0";

const UNBLOCK: &str = "
    UPDATE endpoint SET health_status = ?2, health_changed_at = ?4, health_released_at = ?4,
        health_released_by_person = 1, health_failing_since = CASE WHEN health_failure_count > 0 THEN health_failing_since END
    WHERE id = ?1 AND health_status = ?3";

/// Prepares what is stored for the ordering that the endpoint is about to have. An endpoint that ceases
/// to be ordered leaves the marks where they are: nothing looks at them.
pub(super) fn change(connection: &Connection, endpoint: &Endpoint) -> rusqlite::Result<Option<Obstacle>> {
    let id = endpoint.id.as_bytes();
    let before: i64 = connection
        .prepare_cached("SELECT ordering FROM endpoint WHERE id = ?1")?
        .query_row((id,), |row| row.get(0))?;
    let before = Ordering::from_code(before)?;
    if endpoint.config.ordering.is_fifo() && !before.is_fifo() {
        let found = |statement: &str, limit: i64| -> rusqlite::Result<bool> {
            let mut look: CachedStatement<'_> = connection.prepare_cached(statement)?;
            look.exists((id, limit))
        };
        if found(TOO_MANY, count(Obstacle::MOST_WAITING))? {
            return Ok(Some(Obstacle::TooManyWait));
        }
        if found(DELAYED, endpoint.updated_at.millis())? {
            return Ok(Some(Obstacle::OneIsDelayed));
        }
        connection.prepare_cached(MARK)?.execute((id,))?;
    }
    if !(before.blocks() && endpoint.config.ordering.blocks()) {
        let (active, blocked) = (HealthStatus::Active.code(), HealthStatus::Blocked.code());
        connection.prepare_cached(UNBLOCK)?.execute((id, active, blocked, endpoint.updated_at.millis()))?;
    }
    Ok(None)
}
