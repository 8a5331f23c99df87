//! Reads of the past.

use super::keys::{self, KeyKind};
use super::rows;
use crate::{DeliveryStatus, Key, Message};
use aldaba_delivery::{AppId, MessageId};
use rusqlite::{Connection, OptionalExtension};

/// By id first, then by event id.
pub(super) fn message(connection: &Connection, app: AppId, key: &Key) -> rusqlite::Result<Option<Message>> {
    find(connection, app, key, rows::MESSAGE)
}

/// The same without its payload.
pub(super) fn bare_message(
    connection: &Connection,
    app: AppId,
    key: &Key,
) -> rusqlite::Result<Option<Message>> {
    find(connection, app, key, rows::BARE_MESSAGE)
}

fn find(connection: &Connection, app: AppId, key: &Key, columns: &str) -> rusqlite::Result<Option<Message>> {
    let mut find =
        connection.prepare_cached(&format!("SELECT {columns} FROM message WHERE app = ?1 AND id = ?2"))?;
    let mut by_id = |id: MessageId| find.query_row((app.as_bytes(), id.as_bytes()), rows::message).optional();
    if let Ok(id) = key.parse()
        && let Some(found) = by_id(id)?
    {
        return Ok(Some(found));
    }
    let named = connection
        .prepare_cached(keys::FIND)?
        .query_row((app.as_bytes(), KeyKind::EventId as i64, key.as_bytes()), |row| row.get(0))
        .optional()?;
    named.map_or(Ok(None), |id| by_id(MessageId::from_bytes(id)))
}

pub(super) fn deliveries(
    connection: &Connection,
    message: MessageId,
) -> rusqlite::Result<Vec<DeliveryStatus>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM delivery WHERE message = ?1 ORDER BY seq", rows::DELIVERY))?
        .query_map((message.as_bytes(),), rows::delivery)?
        .collect()
}

pub(super) fn waiting(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT value FROM total WHERE name = 'waiting'")?
        .query_row((), |row| row.get::<_, i64>(0))
        .map(|waiting| u64::try_from(waiting).unwrap_or(0))
}
