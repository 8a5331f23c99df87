//! A step of a replay, and the count of what steps would find.

use super::search::Search;
use super::{ONE, keep_progress};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{
    BULK_SLICE, Counters, Monotonic, Numbers, Reading, Result, Slice, Transaction, delivery, endpoint,
};
use crate::{
    DispatchKind, Error, PendingDelivery, Replay, ReplayCount, ReplayState, ReplayStep, ReplayStepped, Seq,
};
use aldaba_delivery::{EndpointId, MessageId, Timestamp};

statements! {
    REMOVE = "DELETE FROM delivery WHERE seq = ?1";
    REMOVE_DEAD = "DELETE FROM dead_letter WHERE seq = ?1";
    OPEN = "INSERT INTO delivery (seq, endpoint, message, due_at, clock_start, replayed, ordered, dispatched, app)
        SELECT ?7, endpoint.id, ?2, ?3, ?3, 1,
            CASE WHEN endpoint.ordering = 0 THEN 0 WHEN CAST(?3 AS BIGINT) > ?6 THEN 2 ELSE 1 END,
            CASE WHEN endpoint.direct = 0 OR message.only_for IS NULL OR message.only_for <> endpoint.id THEN 0
                WHEN message.job IS NULL THEN CAST(?4 AS BIGINT) ELSE ?5 END,
            CASE WHEN endpoint.direct = 1 THEN endpoint.app END
        FROM endpoint LEFT JOIN message ON message.app = endpoint.app AND message.id = ?2
        WHERE endpoint.id = ?1";
}

/// A step ends by the clock too: what it looks at may lie behind large payloads.
pub(crate) fn step(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    counters: &mut Counters,
    clock: &Monotonic,
    step: &ReplayStep,
) -> Result<ReplayStepped> {
    let slice = Slice::begin(clock, BULK_SLICE);
    let mut opened = Vec::new();
    let Some(mut replay) = tx.one::<Replay>(&ONE, values![step.id])? else {
        return Ok(ReplayStepped { replay: None, opened });
    };
    if replay.state != ReplayState::Running {
        return Ok(ReplayStepped { replay: Some(replay), opened });
    }
    replay.updated_at = step.now;
    let Some(endpoint) = endpoint::subscription(tx, replay.endpoint)? else {
        replay.state = ReplayState::EndpointGone;
        keep_progress(tx, &replay)?;
        return Ok(ReplayStepped { replay: Some(replay), opened });
    };
    let left = step.most.saturating_sub(replay.opened);
    let open = step.open.min(usize::try_from(left).unwrap_or(usize::MAX));
    let search = Search::new(tx, &replay, &endpoint, step.now);
    let walk = search.walk(replay.reached, step.look, &slice, |message, settled| {
        let when = (step.now, search.not_before(message)?);
        opened.push(open_round(tx, numbers, (replay.endpoint, message), settled, when)?);
        Ok(opened.len() < open)
    })?;
    counters.opened(replay.org, step.now, opened.len());
    replay.reached = walk.reached.or(replay.reached);
    replay.looked_at += walk.messages;
    replay.opened += opened.len() as u64;
    if walk.done {
        replay.state = ReplayState::Finished;
    } else if replay.opened >= step.most {
        replay.state = ReplayState::TooMany;
    }
    keep_progress(tx, &replay)?;
    Ok(ReplayStepped { replay: Some(replay), opened })
}

/// Counts until the slice is over, from where the next count can go on.
pub(crate) fn count_matches(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    replay: &Replay,
    after: Option<MessageId>,
    look: usize,
) -> Result<ReplayCount> {
    let Some(endpoint) = endpoint::subscription(reading, replay.endpoint)? else {
        return Ok(ReplayCount { matched: 0, rows: 0, next: None });
    };
    let search = Search::new(reading, replay, &endpoint, replay.created_at);
    let mut matched = 0;
    let walk = search.walk(after, look, slice, |_, _| {
        matched += 1;
        Ok(true)
    })?;
    let next = if walk.done { None } else { walk.reached };
    Ok(ReplayCount { matched, rows: walk.rows, next })
}

/// Another round, in the place of the settled one: a new number, so that it stands behind what waits already, and a fresh
/// count of attempts.
pub(crate) fn open_round(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    (endpoint, message): (EndpointId, MessageId),
    settled: Option<Seq>,
    (now, due_at): (Timestamp, Timestamp),
) -> Result<PendingDelivery> {
    if let Some(seq) = settled {
        tx.execute(&REMOVE, values![seq])?;
        tx.execute(&REMOVE_DEAD, values![seq])?;
    }
    let seq = numbers.draw(tx, 1)?;
    let (by_address, as_job) = (DispatchKind::ByAddress, DispatchKind::AsJob);
    tx.execute(&OPEN, values![endpoint, message, due_at, by_address, as_job, now, seq])?;
    delivery::waiting(tx, seq)?
        .ok_or_else(|| Error::Failed(format!("a round for {endpoint}, which has no row")))
}
