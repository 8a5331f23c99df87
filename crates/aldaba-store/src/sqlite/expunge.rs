//! What somebody wants to be forgotten, and payloads that were to be kept for a time of their own.

use crate::{Attempt, Changed};
use aldaba_delivery::{AppId, AttemptId, MessageId, Timestamp};
use rusqlite::Connection;

macro_rules! expunge {
    () => {
        "UPDATE message SET payload = x'', sealed_headers = NULL, expunged = 1
         WHERE app = ?1 AND id = ?2 AND expunged = 0"
    };
}

/// Its time has come, and nothing of it waits.
const OLD: &str = concat!(
    expunge!(),
    " AND payload_until <= ?3
      AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_message WHERE message = ?2 AND state = 0)"
);

pub(super) fn message(connection: &Connection, app: AppId, message: MessageId) -> rusqlite::Result<Changed> {
    let key = (app.as_bytes(), message.as_bytes());
    let mut expunge = connection.prepare_cached(expunge!())?;
    if expunge.execute(key)? > 0 {
        return Ok(Changed::Done { removed: Vec::new() });
    }
    let mut there = connection.prepare_cached("SELECT 1 FROM message WHERE app = ?1 AND id = ?2")?;
    Ok(unchanged(there.exists(key)?))
}

/// Removes a payload that is not to be kept any longer; `false`: it still is.
pub(super) fn old_payload(
    connection: &Connection,
    app: AppId,
    message: MessageId,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let mut expunge = connection.prepare_cached(OLD)?;
    Ok(expunge.execute((app.as_bytes(), message.as_bytes(), now.millis()))? > 0)
}

pub(super) fn attempt(
    connection: &Connection,
    message: MessageId,
    attempt: AttemptId,
) -> rusqlite::Result<Changed> {
    let mut expunge = connection.prepare_cached(
        "UPDATE attempt SET response = ?3 WHERE response != ?3 AND rowid = (
             SELECT rowid FROM attempt INDEXED BY attempt_message WHERE message = ?1 AND id = ?2
         )",
    )?;
    if expunge.execute((message.as_bytes(), attempt.as_bytes(), Attempt::EXPUNGED))? > 0 {
        return Ok(Changed::Done { removed: Vec::new() });
    }
    let mut there = connection
        .prepare_cached("SELECT 1 FROM attempt INDEXED BY attempt_message WHERE message = ?1 AND id = ?2")?;
    Ok(unchanged(there.exists((message.as_bytes(), attempt.as_bytes()))?))
}

/// It is there, and has been expunged before; or it is not there.
fn unchanged(there: bool) -> Changed {
    if there { Changed::Unchanged } else { Changed::NotFound }
}
