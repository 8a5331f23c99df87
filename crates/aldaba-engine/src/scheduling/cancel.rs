//! Ending deliveries that wait, before they are sent.
//!
//! The lane gives such a delivery no more turns from the moment it hears of it, and the end is a
//! record like any other, with its fence. One in flight is left alone: its attempt decides.

use crate::Engine;
use crate::scheduling::dispatcher::{Dispatcher, Event};
use aldaba_delivery::{AppId, Ending, EndpointId, Reason, Timestamp, Transition};
use aldaba_store::{AuditEntry, Done, Error, PendingDelivery, Record, Recorded};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A delivery to be cancelled, as its caller has read it.
#[derive(Clone, Copy, Debug)]
pub struct Cancel {
    pub app: AppId,
    pub endpoint: EndpointId,
    pub waiting: PendingDelivery,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    Done,
    /// An attempt is being made. Nothing was changed.
    InFlight,
    /// It is not what it was when it was read. Nothing was changed; read it again.
    Changed,
}

impl Engine {
    /// Ends deliveries that wait, before they are sent. When this returns, nothing more leaves for
    /// those that are [`Cancelled::Done`].
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
        let answered = self.inbox().ask(|answer| Event::Cancel(audit, deliveries, reason, answer));
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
        let mut fates = vec![Cancelled::InFlight; deliveries.len()];
        let (mut places, mut records) = (Vec::new(), Vec::new());
        for (place, Cancel { app, endpoint, waiting }) in deliveries.into_iter().enumerate() {
            if let Some(waiting) = self.scheduler.withdraw(endpoint, app, waiting, now) {
                places.push(place);
                let record = ended(app, endpoint, &waiting, reason, now);
                records.push(Record { audit: audit.cloned(), ..record });
            }
        }
        if records.is_empty() {
            return drop(answer.send(Ok(fates)));
        }
        let inbox = self.inbox.clone();
        let taken: Vec<_> = records.iter().map(|record| (record.endpoint, record.seq)).collect();
        let done = Done::new(move |result: Result<Vec<Recorded>, Error>| {
            let ended = |number: usize| {
                let recorded = result.as_ref().ok().and_then(|recorded| recorded.get(number));
                recorded == Some(&Recorded::Applied)
            };
            let news = taken.into_iter().enumerate();
            let news = news.map(|(number, (endpoint, seq))| (endpoint, seq, ended(number))).collect();
            // The lanes handle of it in the order of the commits, before whoever asked.
            inbox.send(Event::ReservationsEnded(news));
            for (number, place) in places.into_iter().enumerate() {
                fates[place] = if ended(number) { Cancelled::Done } else { Cancelled::Changed };
            }
            let refused = |recorded: &Recorded| match recorded {
                Recorded::Refused(why) => Some(Error::Refused(why.clone())),
                Recorded::Applied | Recorded::Fenced => None,
            };
            let refusal = |recorded: Vec<Recorded>| recorded.iter().find_map(refused).map_or(Ok(fates), Err);
            let _ = answer.send(result.and_then(refusal));
        });
        self.store.record(records, done);
    }
}

/// The record of a delivery that ends unsent.
pub(crate) fn ended(
    app: AppId,
    endpoint: EndpointId,
    waiting: &PendingDelivery,
    reason: Reason,
    now: Timestamp,
) -> Record {
    Record {
        seq: waiting.seq,
        app,
        endpoint,
        message: waiting.message,
        attempts_before: waiting.attempts,
        attempt: None,
        transition: Transition::Settle(Ending::Dead(reason)),
        at: now,
        health: None,
        gates: Vec::new(),
        notices: Vec::new(),
        audit: None,
        idempotency: None,
    }
}
