//! What waits for an endpoint whose ordering changes.

use super::codes::Code;
use super::rows::count;
use crate::{Endpoint, Obstacle};
use aldaba_delivery::{HealthStatus, Ordering};
use rusqlite::Connection;

/// One too many to be marked.
const TOO_MANY: &str = "
    SELECT 1 FROM delivery INDEXED BY delivery_lane WHERE state = 0 AND endpoint = ?1 LIMIT 1 OFFSET ?2";

/// What was never tried and is not due yet takes its place when it is.
const MARK: &str = "
    UPDATE delivery SET ordered = CASE WHEN due_at > ?2 AND attempts = 0 THEN 2 ELSE 1 END WHERE seq IN
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
        if connection.prepare_cached(TOO_MANY)?.exists((id, count(Obstacle::MOST_WAITING)))? {
            return Ok(Some(Obstacle::TooManyWait));
        }
        connection.prepare_cached(MARK)?.execute((id, endpoint.updated_at.millis()))?;
    }
    if !(before.blocks() && endpoint.config.ordering.blocks()) {
        let (active, blocked) = (HealthStatus::Active.code(), HealthStatus::Blocked.code());
        connection.prepare_cached(UNBLOCK)?.execute((id, active, blocked, endpoint.updated_at.millis()))?;
    }
    Ok(None)
}
