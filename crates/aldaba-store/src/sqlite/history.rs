//! Reads of the past.

use super::directory::list;
use super::keys::{self, KeyKind};
use super::rows::{self, count};
use crate::{Attempt, AttemptScope, AttemptsQuery, DeliveryStatus, Key, Message, Order, Page, Seq};
use aldaba_delivery::{AppId, AttemptId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

/// By id first, then by event id.
pub(super) fn message(connection: &Connection, app: AppId, key: &Key) -> rusqlite::Result<Option<Message>> {
    let mut find = connection
        .prepare_cached(&format!("SELECT {} FROM message WHERE app = ?1 AND id = ?2", rows::MESSAGE))?;
    let mut by_id = |id: MessageId| find.query_row((app.as_bytes(), id.as_bytes()), rows::message).optional();
    if let Ok(id) = key.parse()
        && let Some(found) = by_id(id)?
    {
        return Ok(Some(found));
    }
    let named = connection
        .prepare_cached(keys::FIND)?
        .query_row(
            (app.as_bytes(), KeyKind::EventId as i64, key.as_bytes(), Timestamp::MIN.millis()),
            |row| row.get(0),
        )
        .optional()?;
    named.map_or(Ok(None), |id| by_id(MessageId::from_bytes(id)))
}

pub(super) fn messages(
    connection: &Connection,
    app: AppId,
    page: Page<MessageId>,
    order: Order,
) -> rusqlite::Result<Vec<Message>> {
    let select = format!("SELECT {} FROM message WHERE app = ?1", rows::MESSAGE);
    list(connection, &select, app.as_bytes(), page, order, rows::message)
}

pub(super) fn attempts(connection: &Connection, query: AttemptsQuery) -> rusqlite::Result<Vec<Attempt>> {
    match query.scope {
        AttemptScope::Endpoint(endpoint) => {
            let select = format!(
                "SELECT {} FROM attempt INDEXED BY attempt_endpoint WHERE endpoint = ?1",
                rows::ATTEMPT
            );
            list(connection, &select, endpoint.as_bytes(), query.page, query.order, rows::attempt)
        }
        AttemptScope::Message(message) => by_message(connection, message, "seq >= ?2", Seq(i64::MIN), query),
        AttemptScope::Delivery(message, seq) => by_message(connection, message, "seq = ?2", seq, query),
    }
}

/// The index has all that the choice needs; only what is chosen is read.
fn by_message(
    connection: &Connection,
    message: MessageId,
    which: &str,
    Seq(seq): Seq,
    query: AttemptsQuery,
) -> rusqlite::Result<Vec<Attempt>> {
    let (beyond, direction, start) = match query.order {
        Order::Ascending => (">", "ASC", AttemptId::from_bytes([0; 20])),
        Order::Descending => ("<", "DESC", AttemptId::from_bytes([u8::MAX; 20])),
    };
    let select = format!(
        "SELECT {} FROM attempt WHERE rowid IN (
             SELECT rowid FROM attempt INDEXED BY attempt_message
             WHERE message = ?1 AND {which} AND id {beyond} ?3 ORDER BY id {direction} LIMIT ?4
         ) ORDER BY id {direction}",
        rows::ATTEMPT
    );
    let after = query.page.after.unwrap_or(start);
    connection
        .prepare_cached(&select)?
        .query_map((message.as_bytes(), seq, after.as_bytes(), count(query.page.limit)), rows::attempt)?
        .collect()
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
