//! What somebody wants to be forgotten.

use crate::{Attempt, Changed};
use aldaba_delivery::{AppId, AttemptId, MessageId};
use rusqlite::Connection;

pub(super) fn message(connection: &Connection, app: AppId, message: MessageId) -> rusqlite::Result<Changed> {
    let mut expunge = connection.prepare_cached(
        "UPDATE message SET payload = x'', sealed_headers = NULL, expunged = 1 WHERE app = ?1 AND id = ?2",
    )?;
    changed(expunge.execute((app.as_bytes(), message.as_bytes()))?)
}

pub(super) fn attempt(
    connection: &Connection,
    message: MessageId,
    attempt: AttemptId,
) -> rusqlite::Result<Changed> {
    let mut expunge = connection.prepare_cached(
        "UPDATE attempt SET response = ?3 WHERE rowid = (
             SELECT rowid FROM attempt INDEXED BY attempt_message WHERE message = ?1 AND id = ?2
         )",
    )?;
    changed(expunge.execute((message.as_bytes(), attempt.as_bytes(), Attempt::EXPUNGED))?)
}

fn changed(rows: usize) -> rusqlite::Result<Changed> {
    Ok(if rows == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } })
}
