//! A step of a replay, and the count of what steps would find.

use super::search::Search;
use super::{find, keep};
use crate::sqlite::codes::Code;
use crate::sqlite::counters::Counters;
use crate::sqlite::monotonic::{Monotonic, Slice};
use crate::sqlite::remove::SLICE;
use crate::sqlite::rows::{self, waiting_columns};
use crate::{
    Dispatched, Replay, ReplayCount, ReplayState, ReplayStep, ReplayStepped, Seq, Subscription, Waiting,
};
use aldaba_delivery::{EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

/// A step ends by the clock too: what it looks at may lie behind large payloads.
pub(in crate::sqlite) fn step(
    connection: &Connection,
    clock: &Monotonic,
    step: &ReplayStep,
    counters: &mut Counters,
) -> rusqlite::Result<ReplayStepped> {
    let slice = Slice::begin(clock, SLICE);
    let Some(mut replay) = find(connection, step.id)? else {
        return Ok(ReplayStepped { replay: None, opened: Vec::new() });
    };
    let mut opened = Vec::new();
    if replay.state != ReplayState::Running {
        return Ok(ReplayStepped { replay: Some(replay), opened });
    }
    replay.updated_at = step.now;
    let Some(endpoint) = subscription(connection, replay.endpoint)? else {
        replay.state = ReplayState::EndpointGone;
        keep(connection, &replay)?;
        return Ok(ReplayStepped { replay: Some(replay), opened });
    };
    let left = step.most.saturating_sub(replay.opened);
    let open = step.open.min(usize::try_from(left).unwrap_or(usize::MAX));
    let search = Search::new(connection, &replay, &endpoint, step.now);
    let walk = search.walk(replay.reached, step.look, &slice, |message, settled| {
        let at = search.not_before(message)?;
        opened.push(reopen(connection, replay.endpoint, message, settled, (step.now, at))?);
        Ok(opened.len() < open)
    })?;
    counters.opened(opened.len());
    replay.reached = walk.reached.or(replay.reached);
    replay.looked_at += walk.messages;
    replay.opened += opened.len() as u64;
    if walk.done {
        replay.state = ReplayState::Finished;
    } else if replay.opened >= step.most {
        replay.state = ReplayState::TooMany;
    }
    keep(connection, &replay)?;
    Ok(ReplayStepped { replay: Some(replay), opened })
}

/// Counts until the slice is over, from where the next count can go on.
pub(in crate::sqlite) fn count_matches(
    connection: &Connection,
    slice: &Slice<'_>,
    replay: &Replay,
    after: Option<MessageId>,
    look: usize,
) -> rusqlite::Result<ReplayCount> {
    let Some(endpoint) = subscription(connection, replay.endpoint)? else {
        return Ok(ReplayCount { matched: 0, rows: 0, next: None });
    };
    let search = Search::new(connection, replay, &endpoint, replay.created_at);
    let mut matched = 0;
    let walk = search.walk(after, look, slice, |_, _| {
        matched += 1;
        Ok(true)
    })?;
    let next = if walk.done { None } else { walk.reached };
    Ok(ReplayCount { matched, rows: walk.rows, next })
}

fn subscription(connection: &Connection, endpoint: EndpointId) -> rusqlite::Result<Option<Subscription>> {
    connection
        .prepare_cached(&format!(
            "SELECT {} FROM endpoint WHERE id = ?1 AND {}",
            rows::SUBSCRIPTION,
            rows::THERE
        ))?
        .query_row((endpoint.as_bytes(),), rows::subscription)
        .optional()
}

/// Another round, in the place of the settled one: a new number, so that it stands behind what waits
/// already, and a fresh count of attempts.
pub(in crate::sqlite) fn reopen(
    connection: &Connection,
    endpoint: EndpointId,
    message: MessageId,
    settled: Option<Seq>,
    (now, due_at): (Timestamp, Timestamp),
) -> rusqlite::Result<Waiting> {
    if let Some(Seq(seq)) = settled {
        connection.prepare_cached("DELETE FROM delivery WHERE seq = ?1")?.execute((seq,))?;
        connection.prepare_cached("DELETE FROM dead_letter WHERE seq = ?1")?.execute((seq,))?;
    }
    connection
        .prepare_cached(
            "INSERT INTO delivery (endpoint, message, due_at, clock_start, replayed, ordered, dispatched, app)
             SELECT ?1, ?2, ?3, ?3, 1, CASE WHEN endpoint.ordering = 0 THEN 0 WHEN ?3 > ?6 THEN 2 ELSE 1 END,
                 CASE WHEN NOT endpoint.direct OR message.only_for IS NOT endpoint.id THEN 0
                     WHEN message.job IS NULL THEN ?4 ELSE ?5 END,
                 CASE WHEN endpoint.direct THEN endpoint.app END
             FROM endpoint LEFT JOIN message ON message.app = endpoint.app AND message.id = ?2
             WHERE endpoint.id = ?1",
        )?
        .execute((
            endpoint.as_bytes(),
            message.as_bytes(),
            due_at.millis(),
            Dispatched::ByAddress.code(),
            Dispatched::AsJob.code(),
            now.millis(),
        ))?;
    let seq = connection.last_insert_rowid();
    let select = concat!("SELECT ", waiting_columns!(), " FROM delivery WHERE seq = ?1");
    connection.prepare_cached(select)?.query_row((seq,), rows::waiting)
}
