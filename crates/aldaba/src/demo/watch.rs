//! Looks into the store from time to time: what was attempted, how the endpoints stand, and what
//! became of a delivery.

use super::receiver::Stage;
use super::scene::{CAST, LANES};
use super::tally::{Fate, Recorded, Standing};
use aldaba_delivery::{AttemptId, EndpointId, FailureKind, MessageId, Timestamp};
use aldaba_engine::Engine;
use aldaba_store::{
    Attempt, AttemptScope, AttemptsQuery, DeliveryState, DeliveryStatus, Error, ListPage, Order, Page,
};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Attempts are listed by their beginning and recorded at their end: so far back one may still turn
/// up. The longest that an attempt of the demo takes is well below.
const LOOK_BACK: Duration = Duration::from_secs(5);
const PAGE: usize = 250;
/// Failed attempts of one endpoint whose deliveries are asked for in one look. The end asks for all.
const ASKED: usize = 100;
/// Between two looks: this, or some times as long as a look takes.
const PAUSE: Duration = Duration::from_millis(250);
const TIMES_A_LOOK: u32 = 4;
/// A read that met a busy store is made again so often.
const TRIES: u32 = 20;

/// The demo's deliveries in the store.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    pub(super) engine: Engine,
    pub(super) endpoints: [EndpointId; LANES],
}

/// The eye on the store.
#[derive(Debug)]
pub(super) struct Watch {
    archive: Archive,
    stage: Stage,
    addresses: [SocketAddr; LANES],
    /// Told to the tally already, of the time that is looked back on.
    seen: [HashSet<AttemptId>; LANES],
    /// When each endpoint was last looked at; what began before is looked back on from there.
    looked: [Timestamp; LANES],
}

impl Watch {
    pub(super) fn new(archive: Archive, stage: Stage, addresses: [SocketAddr; LANES]) -> Self {
        let looked = [stage.clock.now(); LANES];
        Self { archive, stage, addresses, seen: Default::default(), looked }
    }

    /// Looks until it is told to stop, and then once more: nothing recorded before is left out.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut last = false;
        while !last {
            let begun = self.stage.clock.monotonic();
            // A store that is busy is looked into the next time.
            let _ = self.look().await;
            let took = self.stage.clock.monotonic().saturating_sub(begun);
            last = tokio::select! {
                _ = &mut stopped => true,
                () = sleep(PAUSE.max(took * TIMES_A_LOOK)) => false,
            };
        }
        let _ = self.look().await;
    }

    async fn look(&mut self) -> Result<(), Error> {
        self.look_at_standings().await?;
        for lane in 0..LANES {
            self.look_at_attempts(lane).await?;
        }
        Ok(())
    }

    async fn look_at_attempts(&mut self, lane: usize) -> Result<(), Error> {
        let now = self.stage.clock.now();
        let back = i64::try_from(LOOK_BACK.as_millis()).unwrap_or(0);
        let from = AttemptId::first_at(Timestamp::from_millis(self.looked[lane].millis() - back));
        let scope = AttemptScope::Endpoint(self.archive.endpoints[lane]);
        let (mut after, mut asked) = (from, 0);
        loop {
            let page = Page { after: Some(after), limit: PAGE };
            let query = AttemptsQuery::all(scope, page, Order::Ascending);
            let ListPage { items: attempts, stopped } = self.archive.engine.store().attempts(query).await?;
            for attempt in &attempts {
                if self.seen[lane].insert(attempt.id) {
                    self.tell(lane, attempt, &mut asked).await?;
                }
            }
            match (stopped, attempts.last()) {
                (Some(stopped), _) => after = stopped,
                (None, Some(last)) if attempts.len() == PAGE => after = last.id,
                _ => break,
            }
        }
        self.seen[lane].retain(|id| *id >= from);
        self.looked[lane] = now;
        Ok(())
    }

    async fn tell(&self, lane: usize, attempt: &Attempt, asked: &mut usize) -> Result<(), Error> {
        let (answer, words) = answer(attempt);
        let message = attempt.message;
        self.stage.tally.lock().recorded(lane, Recorded { message, success: attempt.success, answer });
        if attempt.success || *asked == ASKED {
            return Ok(());
        }
        *asked += 1;
        let deliveries = self.archive.engine.store().deliveries(message).await?;
        let delivery = deliveries.iter().find(|delivery| delivery.endpoint == self.archive.endpoints[lane]);
        let Some(delivery) = delivery else { return Ok(()) };
        let (at, now) = (self.stage.clock.monotonic(), self.stage.clock.now());
        let mut tally = self.stage.tally.lock();
        let then = match delivery.state {
            DeliveryState::Waiting { due_at } => format!("again in {} s", whole_seconds(due_at.since(now))),
            DeliveryState::Delivered { .. } => "delivered since".into(),
            DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => {
                tally.died(lane, message);
                format!("dead letter after {} attempts", delivery.attempts)
            }
        };
        tally.lately.tell(at, CAST[lane].name, words, Some(then));
        Ok(())
    }

    async fn look_at_standings(&self) -> Result<(), Error> {
        let endpoints = self.archive.engine.store().lane_endpoints(self.archive.endpoints.to_vec()).await?;
        let gates = self.archive.engine.store().gates().await?;
        let now = self.stage.clock.now();
        let mut tally = self.stage.tally.lock();
        for (lane, id) in self.archive.endpoints.iter().enumerate() {
            let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.id == *id) else { continue };
            let origin = format!("http://{}", self.addresses[lane]);
            let held = gates.iter().filter(|gate| gate.key.origin.as_str() == origin);
            let held = held.filter_map(|gate| gate.gate.held_until).max();
            let left = |until: Option<Timestamp>| until.filter(|until| *until > now).map(|t| t.since(now));
            let health = &endpoint.health;
            let standing = match (health.status, left(held), left(health.quiet_until)) {
                (status, _, _) if status.is_given_up() => Standing::Failed,
                (_, Some(left), _) => Standing::Held(left),
                (_, _, Some(left)) => Standing::Quiet(left),
                _ if health.degraded() => Standing::Degraded,
                _ => Standing::Healthy,
            };
            tally.stands(lane, standing);
        }
        Ok(())
    }
}

impl Archive {
    /// What the store says about these messages, and when the first of those that wait is due.
    pub(super) async fn fates(
        &self,
        messages: Vec<MessageId>,
    ) -> Result<(HashMap<MessageId, [Fate; LANES]>, Option<Timestamp>), Error> {
        let mut fates = HashMap::with_capacity(messages.len());
        let mut first_due = None;
        for message in messages {
            let deliveries = self.deliveries(message).await?;
            let of = |id: &EndpointId| deliveries.iter().find(|delivery| delivery.endpoint == *id);
            fates.insert(message, self.endpoints.each_ref().map(|id| of(id).map_or(Fate::Unknown, fate)));
            let dues = deliveries.iter().filter_map(|delivery| match delivery.state {
                DeliveryState::Waiting { due_at } => Some(due_at),
                _ => None,
            });
            first_due = dues.chain(first_due).min();
        }
        Ok((fates, first_due))
    }

    async fn deliveries(&self, message: MessageId) -> Result<Vec<DeliveryStatus>, Error> {
        for _ in 0..TRIES {
            match self.engine.store().deliveries(message).await {
                Err(Error::Busy | Error::Timeout) => sleep(PAUSE).await,
                read => return read,
            }
        }
        Err(Error::Busy)
    }
}

fn fate(delivery: &DeliveryStatus) -> Fate {
    match delivery.state {
        DeliveryState::Waiting { .. } => Fate::Waiting,
        DeliveryState::Delivered { .. } => Fate::Delivered,
        DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => Fate::Dead,
    }
}

fn whole_seconds(time: Duration) -> u128 {
    time.as_millis().div_ceil(1000)
}

/// What came back, for the table and in words.
fn answer(attempt: &Attempt) -> (String, String) {
    if let Some(status) = attempt.status_code {
        return (status.to_string(), format!("answered {status}"));
    }
    let (short, words) = match attempt.failure {
        Some(FailureKind::Connect) => ("refused", "refused the connection"),
        Some(FailureKind::ConnectTimeout | FailureKind::Timeout) => ("timeout", "did not answer in time"),
        Some(FailureKind::Broken) => ("hung up", "hung up"),
        _ => ("error", "could not be reached"),
    };
    (short.into(), words.into())
}
