//! Ends pending deliveries before they are sent.
//!
//! The dispatcher reserves them in their lane, and their end is a record like any other, with its fence. A delivery in flight is
//! left alone: its attempt decides.

use crate::Engine;
use crate::scheduling::dispatcher::{Dispatcher, SchedulingCommand, SchedulingEvent};
use aldaba_delivery::{AppId, Ending, EndpointId, Reason, Timestamp, Transition};
use aldaba_store::{AuditEntry, Done, Error, PendingDelivery, Record, Recorded};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A delivery to cancel, as the caller has read it.
#[derive(Clone, Copy, Debug)]
pub struct Cancel {
    pub app: AppId,
    pub endpoint: EndpointId,
    pub pending: PendingDelivery,
}

/// What became of a delivery that was to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    Done,
    /// An attempt is in flight. Nothing was changed.
    InFlight,
    /// It has changed since it was read. Nothing was changed; read it again.
    Changed,
}

impl Engine {
    /// Ends pending deliveries before they are sent. When this returns, no request leaves any more for those that are
    /// [`Cancelled::Done`].
    pub async fn cancel(
        &self,
        audit: Arc<AuditEntry>,
        deliveries: Vec<Cancel>,
    ) -> Result<Vec<Cancelled>, Error> {
        self.cancel_as(Some(audit), deliveries, Reason::Cancelled).await
    }

    /// The same with another reason.
    pub(crate) async fn cancel_as(
        &self,
        audit: Option<Arc<AuditEntry>>,
        deliveries: Vec<Cancel>,
        reason: Reason,
    ) -> Result<Vec<Cancelled>, Error> {
        let answered =
            self.inbox().ask(|answer| SchedulingCommand::Cancel(audit, deliveries, reason, answer));
        answered.await.unwrap_or(Err(Error::Closed))
    }
}

impl Dispatcher {
    pub(crate) fn cancel(
        &mut self,
        audit: Option<&Arc<AuditEntry>>,
        deliveries: Vec<Cancel>,
        reason: Reason,
        answer: oneshot::Sender<Result<Vec<Cancelled>, Error>>,
        now: Timestamp,
    ) {
        let mut results = vec![Cancelled::InFlight; deliveries.len()];
        let (mut indexes, mut records) = (Vec::new(), Vec::new());
        for (index, Cancel { app, endpoint, pending }) in deliveries.into_iter().enumerate() {
            if let Some(pending) = self.scheduler.reserve(endpoint, app, pending, now) {
                indexes.push(index);
                let record = ended(app, endpoint, &pending, reason, now);
                records.push(Record { audit: audit.cloned(), ..record });
            }
        }
        if records.is_empty() {
            return drop(answer.send(Ok(results)));
        }
        let inbox = self.inbox.clone();
        let reserved: Vec<_> = records.iter().map(|record| (record.endpoint, record.seq)).collect();
        let done = Done::new(move |result: Result<Vec<Recorded>, Error>| {
            let ended = |number: usize| {
                let recorded = result.as_ref().ok().and_then(|recorded| recorded.get(number));
                recorded == Some(&Recorded::Applied)
            };
            let ends = reserved.into_iter().enumerate();
            let ends = ends.map(|(number, (endpoint, seq))| (endpoint, seq, ended(number))).collect();
            // Lanes are told in the order of the commits, and before the caller.
            inbox.send(SchedulingEvent::ReservationsEnded(ends));
            for (number, index) in indexes.into_iter().enumerate() {
                results[index] = if ended(number) { Cancelled::Done } else { Cancelled::Changed };
            }
            let refused = |recorded: &Recorded| match recorded {
                Recorded::Refused(why) => Some(Error::Refused(why.clone())),
                Recorded::Applied | Recorded::Fenced => None,
            };
            let refusal =
                |recorded: Vec<Recorded>| recorded.iter().find_map(refused).map_or(Ok(results), Err);
            let _ = answer.send(result.and_then(refusal));
        });
        self.store.record(records, done);
    }
}

/// The record of a delivery that ends unsent.
pub(crate) fn ended(
    app: AppId,
    endpoint: EndpointId,
    pending: &PendingDelivery,
    reason: Reason,
    now: Timestamp,
) -> Record {
    Record {
        seq: pending.seq,
        org: None,
        app,
        endpoint,
        message: pending.message,
        clock_start: pending.clock_start,
        attempts_before: pending.attempts,
        attempt: None,
        transition: Transition::Settle(Ending::Dead(reason)),
        at: now,
        health: None,
        gates: Vec::new(),
        notices: Vec::new(),
        mails: Vec::new(),
        audit: None,
        idempotency: None,
    }
}
