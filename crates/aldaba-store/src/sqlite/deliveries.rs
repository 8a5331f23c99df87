//! Single deliveries, with what is shown of them.

use super::rows::{self, id, moment};
use crate::{DeliveryState, DeliveryStatus, DeliveryView, LastAttempt, Phase, Seq};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};
use std::time::Duration;

pub(super) fn views(
    connection: &Connection,
    app: AppId,
    seqs: &[Seq],
) -> rusqlite::Result<Vec<DeliveryView>> {
    let mut views = Vec::with_capacity(seqs.len());
    for seq in seqs {
        if let Some(status) = status(connection, *seq)?
            && owner(connection, status.endpoint)? == Some(app)
        {
            views.push(view(connection, app, status)?);
        }
    }
    Ok(views)
}

pub(super) fn discard(connection: &Connection, app: AppId, deliveries: &[Seq]) -> rusqlite::Result<usize> {
    let mut delete = connection.prepare_cached("DELETE FROM dead_letter WHERE seq = ?1 AND app = ?2")?;
    // Also one that is in no dead letter, because its endpoint is deleted: it goes as well.
    let mut mark = connection.prepare_cached(
        "UPDATE delivery SET discarded = 1 WHERE seq = ?1 AND state = 2 AND discarded = 0
             AND endpoint IN (SELECT id FROM endpoint WHERE app = ?2)",
    )?;
    let mut discarded = 0;
    for Seq(seq) in deliveries {
        discarded += mark.execute((seq, app.as_bytes()))?;
        delete.execute((seq, app.as_bytes()))?;
    }
    Ok(discarded)
}

pub(super) fn owner(connection: &Connection, endpoint: EndpointId) -> rusqlite::Result<Option<AppId>> {
    let mut find = connection.prepare_cached("SELECT app FROM endpoint WHERE id = ?1")?;
    find.query_row((endpoint.as_bytes(),), |row| id(row, 0)).optional()
}

pub(super) fn status(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<DeliveryStatus>> {
    let mut find =
        connection.prepare_cached(&format!("SELECT {} FROM delivery WHERE seq = ?1", rows::DELIVERY))?;
    find.query_row((seq.0,), rows::delivery).optional()
}

/// The type of a message, and when it was accepted.
pub(super) fn kind(
    connection: &Connection,
    app: AppId,
    message: MessageId,
) -> rusqlite::Result<Option<(String, Timestamp)>> {
    let mut find =
        connection.prepare_cached("SELECT event_type, created_at FROM message WHERE app = ?1 AND id = ?2")?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, moment(row, 1)?));
    find.query_row((app.as_bytes(), message.as_bytes()), read).optional()
}

pub(super) fn view(
    connection: &Connection,
    app: AppId,
    status: DeliveryStatus,
) -> rusqlite::Result<DeliveryView> {
    let mut dead = connection.prepare_cached("SELECT event_type FROM dead_letter WHERE seq = ?1")?;
    let dead = dead.query_row((status.seq.0,), |row| row.get::<_, String>(0)).optional()?;
    let mut newest = connection.prepare_cached(
        "SELECT id, started_at, duration, status_code, error FROM attempt INDEXED BY attempt_message
         WHERE message = ?1 AND seq = ?2 ORDER BY id DESC LIMIT 1",
    )?;
    let last = newest.query_row((status.message.as_bytes(), status.seq.0), last_attempt).optional()?;
    let (event_type, created_at) = kind(connection, app, status.message)?.unzip();
    Ok(DeliveryView {
        app,
        event_type: event_type.or_else(|| dead.clone().filter(|known| !known.is_empty())),
        created_at: created_at.unwrap_or_else(|| status.message.created_at()),
        last,
        delivered_by: delivered_by(connection, &status)?,
        in_dead_letter: dead.is_some() && Phase::Dead.has(status.state),
        status,
    })
}

/// Ids of attempts grow with time.
const DELIVERED_BY: &str = "
    SELECT success FROM attempt INDEXED BY attempt_message WHERE message = ?1 AND seq = ?2 ORDER BY id";

fn delivered_by(connection: &Connection, status: &DeliveryStatus) -> rusqlite::Result<Option<u32>> {
    let DeliveryState::Delivered { .. } = status.state else { return Ok(None) };
    let mut attempts = connection.prepare_cached(DELIVERED_BY)?;
    let mut attempts = attempts.query((status.message.as_bytes(), status.seq.0))?;
    let mut number = 0;
    while let Some(attempt) = attempts.next()? {
        number += 1;
        if attempt.get(0)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn last_attempt(row: &Row<'_>) -> rusqlite::Result<LastAttempt> {
    Ok(LastAttempt {
        id: id(row, 0)?,
        started_at: moment(row, 1)?,
        duration: Duration::from_nanos(row.get::<_, i64>(2)?.unsigned_abs()),
        status_code: row.get(3)?,
        error: row.get(4)?,
    })
}
