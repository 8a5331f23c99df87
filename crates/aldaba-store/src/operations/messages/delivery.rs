//! Single deliveries, with what is shown of them.

use crate::operations::Numbers;
use crate::operations::codes::StoredState;
use crate::operations::column::{Columns, FromRow, from_row, unknown};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction, endpoint, message};
use crate::{
    Changed, DeliveryState, DeliveryStatus, DeliveryView, LastAttempt, PendingDelivery, Phase, Rescheduled,
    Seq, Sequenced,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};

/// A delivery that takes its place later has none yet; otherwise its place is its own number, or one that it got when it was
/// due.
macro_rules! place {
    () => {
        "CASE WHEN ordered = 2 THEN NULL ELSE coalesce(place, seq) END"
    };
}

pub(crate) const COLUMNS: &str = concat!(
    "seq, endpoint, message, attempts, clock_start, replayed, retries, ",
    place!(),
    ", state, due_at, settled_at, reason"
);

pub(crate) const WAITING_COLUMNS: &str =
    concat!("seq, message, due_at, attempts, clock_start, replayed, ", place!());

from_row!(PendingDelivery { seq, message, due_at, attempts, clock_start, replayed, sequence });

impl FromRow for DeliveryStatus {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (seq, endpoint, message) = columns.take()?;
        let (attempts, clock_start, replayed, retries, sequence) = columns.take()?;
        let (state, due_at, settled_at, reason): (StoredState, _, Option<Timestamp>, Option<i64>) =
            columns.take()?;
        let at = || settled_at.ok_or_else(|| unknown("settled delivery without its moment", seq));
        let reason = || reason.ok_or_else(|| unknown("settled delivery without its reason", seq));
        let state = match state {
            StoredState::Waiting => DeliveryState::Waiting { due_at },
            StoredState::Delivered => DeliveryState::Delivered { at: at()? },
            StoredState::Dead => DeliveryState::Dead {
                at: at()?,
                reason: crate::operations::codes::Code::from_code(reason()?)?,
            },
            StoredState::Skipped => DeliveryState::Skipped {
                at: at()?,
                reason: crate::operations::codes::Code::from_code(reason()?)?,
            },
        };
        Ok(Self { seq, endpoint, message, attempts, clock_start, replayed, retries, sequence, state })
    }
}

from_row!(LastAttempt { id, started_at, duration, status_code, failure, error });

statements! {
    ONE = format!("SELECT {COLUMNS} FROM delivery WHERE seq = ?1");
    OF_MESSAGE = format!("SELECT {COLUMNS} FROM delivery WHERE message = ?1 ORDER BY seq");
    WAITING = format!("SELECT {WAITING_COLUMNS} FROM delivery WHERE seq = ?1");
    DEAD_LETTER_TYPE = "SELECT event_type FROM dead_letter WHERE seq = ?1";
    LAST_ATTEMPT = "SELECT id, started_at, duration, status_code, failure, error FROM attempt
        WHERE message = ?1 AND seq = ?2 ORDER BY id DESC LIMIT 1";
    /// Ids of attempts grow with time.
    SUCCESSES = "SELECT success FROM attempt WHERE message = ?1 AND seq = ?2 ORDER BY id";
    DISCARD = "DELETE FROM dead_letter WHERE seq = ?1 AND app = ?2";
    /// Also a delivery that is in no dead letter, because its endpoint is deleted.
    MARK_DISCARDED = "UPDATE delivery SET discarded = 1 WHERE seq = ?1 AND state = 2 AND discarded = 0
        AND EXISTS (SELECT 1 FROM endpoint WHERE endpoint.id = delivery.endpoint AND endpoint.app = ?2)";
    RESCHEDULE = "UPDATE delivery SET due_at = ?4, clock_start = ?5
        WHERE seq = ?1 AND state = 0 AND due_at = ?2 AND attempts = ?3";
    NEXT_PLACE = "SELECT due_at FROM delivery WHERE state = 0 AND ordered = 2 AND due_at >= ?1
        ORDER BY due_at LIMIT 1";
    DUE_FOR_PLACE = "SELECT seq, endpoint FROM delivery WHERE state = 0 AND ordered = 2 AND due_at <= ?1
        ORDER BY due_at, seq LIMIT ?2";
    TAKE_PLACE = "UPDATE delivery SET ordered = 1, place = ?2 WHERE seq = ?1";
}

pub(crate) fn one(reading: &dyn Reading, seq: Seq) -> Result<Option<DeliveryStatus>> {
    reading.one(&ONE, values![seq])
}

/// All rounds, in the order of their numbers.
pub(crate) fn of_message(reading: &dyn Reading, message: MessageId) -> Result<Vec<DeliveryStatus>> {
    reading.all(&OF_MESSAGE, values![message])
}

pub(crate) fn waiting(reading: &dyn Reading, seq: Seq) -> Result<Option<PendingDelivery>> {
    reading.one(&WAITING, values![seq])
}

pub(crate) fn is_in_dead_letter(reading: &dyn Reading, seq: Seq) -> Result<bool> {
    reading.exists(&DEAD_LETTER_TYPE, values![seq])
}

pub(crate) fn views(reading: &dyn Reading, app: AppId, seqs: &[Seq]) -> Result<Vec<DeliveryView>> {
    let mut views = Vec::with_capacity(seqs.len());
    for seq in seqs {
        if let Some(status) = one(reading, *seq)?
            && endpoint::owner(reading, status.endpoint)? == Some(app)
        {
            views.push(view(reading, app, status)?);
        }
    }
    Ok(views)
}

pub(crate) fn view(reading: &dyn Reading, app: AppId, status: DeliveryStatus) -> Result<DeliveryView> {
    let dead: Option<String> = reading.one(&DEAD_LETTER_TYPE, values![status.seq])?;
    let (event_type, created_at) = message::kind(reading, app, status.message)?.unzip();
    Ok(DeliveryView {
        app,
        event_type: event_type.or_else(|| dead.clone().filter(|known| !known.is_empty())),
        created_at: created_at.unwrap_or_else(|| status.message.created_at()),
        last: reading.one(&LAST_ATTEMPT, values![status.message, status.seq])?,
        delivered_by: delivered_by(reading, &status)?,
        in_dead_letter: dead.is_some() && Phase::Dead.has(status.state),
        status,
    })
}

fn delivered_by(reading: &dyn Reading, status: &DeliveryStatus) -> Result<Option<u32>> {
    let DeliveryState::Delivered { .. } = status.state else { return Ok(None) };
    let attempts: Vec<bool> = reading.all(&SUCCESSES, values![status.message, status.seq])?;
    let place = attempts.iter().position(|success| *success);
    Ok(place.and_then(|place| u32::try_from(place + 1).ok()))
}

/// Takes dead deliveries of an application out of the dead letter. Returns how many were not discarded before.
pub(crate) fn discard(tx: &dyn Transaction, app: AppId, deliveries: &[Seq]) -> Result<usize> {
    let mut discarded = 0;
    for seq in deliveries {
        discarded += tx.execute(&MARK_DISCARDED, values![seq, app])?;
        tx.execute(&DISCARD, values![seq, app])?;
    }
    Ok(discarded)
}

/// Corrects due times. A delivery that has changed since it was read is passed over.
pub(crate) fn reschedule(tx: &dyn Transaction, deliveries: &[Rescheduled]) -> Result<Changed> {
    for Rescheduled { was, due_at, clock_start, .. } in deliveries {
        tx.execute(&RESCHEDULE, values![was.seq, was.due_at, was.attempts, due_at, clock_start])?;
    }
    Ok(Changed::done())
}

/// When the next delivery of an ordered endpoint is to take its place.
pub(crate) fn next_sequencing_at(reading: &dyn Reading) -> Result<Option<Timestamp>> {
    reading.one(&NEXT_PLACE, values![Timestamp::MIN])
}

/// Deliveries of ordered endpoints that are due take their places. A place is a number of the same count as deliveries have:
/// behind everything that was accepted before, and before everything that is accepted later.
pub(crate) fn sequence_due(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    now: Timestamp,
    limit: usize,
) -> Result<Changed> {
    let due: Vec<(Seq, EndpointId)> = tx.all(&DUE_FOR_PLACE, values![now, limit])?;
    let mut placed = Vec::with_capacity(due.len());
    for (seq, endpoint) in due {
        let place = numbers.draw(tx, 1)?;
        tx.execute(&TAKE_PLACE, values![seq, place])?;
        match (waiting(tx, seq)?, endpoint::owner(tx, endpoint)?) {
            (Some(waiting), Some(app)) => placed.push(Sequenced { endpoint, app, waiting }),
            _ => tracing::error!(%endpoint, "deliveries wait for an endpoint that has no row"),
        }
    }
    Ok(if placed.is_empty() { Changed::Unchanged } else { Changed::Sequenced(placed) })
}
