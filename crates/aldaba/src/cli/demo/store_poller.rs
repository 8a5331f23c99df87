//! Polls the store for recorded attempts, the health of the endpoints, and the states of deliveries.

use super::counters::{EndpointHealth, RecordedAttempt, StoredFate};
use super::receiver::DemoContext;
use super::scenario::{ENDPOINT_COUNT, ENDPOINTS};
use crate::questions::ProcessQuestions;
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

/// Attempts are listed by their start and recorded at their end: an attempt may turn up this late. The longest
/// attempt of the demo is well below.
const LOOK_BACK: Duration = Duration::from_secs(5);
const PAGE: usize = 250;
/// Failed attempts of an endpoint whose deliveries one poll reads. The comparison at the end reads all.
const MAX_DELIVERIES_READ: usize = 100;
/// The pause between two polls: this, or a multiple of the poll's duration.
const PAUSE: Duration = Duration::from_millis(250);
const INTERVAL_FACTOR: u32 = 4;
/// The attempts to read from a busy store.
const TRIES: u32 = 20;

/// The demo's deliveries in the store.
#[derive(Clone, Debug)]
pub(super) struct StoreReader {
    pub(super) engine: Engine,
    pub(super) endpoints: [EndpointId; ENDPOINT_COUNT],
}

/// The task that polls the store.
#[derive(Debug)]
pub(super) struct StorePoller {
    store_reader: StoreReader,
    context: DemoContext,
    addresses: [SocketAddr; ENDPOINT_COUNT],
    /// Attempts that were reported to the counters, since `polled_at`.
    seen: [HashSet<AttemptId>; ENDPOINT_COUNT],
    /// When each endpoint was last polled; attempts that started before are read again from there.
    polled_at: [Timestamp; ENDPOINT_COUNT],
}

impl StorePoller {
    pub(super) fn new(
        store_reader: StoreReader,
        context: DemoContext,
        addresses: [SocketAddr; ENDPOINT_COUNT],
    ) -> Self {
        let polled_at = [context.clock.now(); ENDPOINT_COUNT];
        Self { store_reader, context, addresses, seen: Default::default(), polled_at }
    }

    /// Polls until it is stopped, and then once more, so that no recorded attempt is left out.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut last = false;
        while !last {
            let begun = self.context.clock.monotonic();
            // The next poll reads what a busy store has refused.
            let _ = self.poll().await;
            let took = self.context.clock.monotonic().saturating_sub(begun);
            last = tokio::select! {
                _ = &mut stopped => true,
                () = sleep(PAUSE.max(took * INTERVAL_FACTOR)) => false,
            };
        }
        let _ = self.poll().await;
    }

    async fn poll(&mut self) -> Result<(), Error> {
        self.poll_health().await?;
        for lane in 0..ENDPOINT_COUNT {
            self.poll_attempts(lane).await?;
        }
        Ok(())
    }

    async fn poll_attempts(&mut self, lane: usize) -> Result<(), Error> {
        let now = self.context.clock.now();
        let back = i64::try_from(LOOK_BACK.as_millis()).unwrap_or(0);
        let from = AttemptId::first_at(Timestamp::from_millis(self.polled_at[lane].millis() - back));
        let scope = AttemptScope::Endpoint(self.store_reader.endpoints[lane]);
        let (mut after, mut asked) = (from, 0);
        loop {
            let page = Page { after: Some(after), limit: PAGE };
            let query = AttemptsQuery::all(scope, page, Order::Ascending);
            let ListPage { items: attempts, stopped } = self.store_reader.questions().attempts(query).await?;
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
        self.polled_at[lane] = now;
        Ok(())
    }

    async fn tell(&self, lane: usize, attempt: &Attempt, asked: &mut usize) -> Result<(), Error> {
        let (answer, words) = answer(attempt);
        let message = attempt.message;
        self.context
            .counters
            .lock()
            .recorded(lane, RecordedAttempt { message, success: attempt.success, answer });
        if attempt.success || *asked == MAX_DELIVERIES_READ {
            return Ok(());
        }
        *asked += 1;
        let deliveries = self.store_reader.questions().deliveries(message).await?;
        let delivery =
            deliveries.iter().find(|delivery| delivery.endpoint == self.store_reader.endpoints[lane]);
        let Some(delivery) = delivery else { return Ok(()) };
        let (at, now) = (self.context.clock.monotonic(), self.context.clock.now());
        let mut counters = self.context.counters.lock();
        let then = match delivery.state {
            DeliveryState::Waiting { due_at } => format!("again in {} s", whole_seconds(due_at.since(now))),
            DeliveryState::Delivered { .. } => "delivered since".into(),
            DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => {
                counters.dead_lettered(lane, message);
                format!("dead letter after {} attempts", delivery.attempts)
            }
        };
        counters.recent_events.note(at, ENDPOINTS[lane].name, words, Some(then));
        Ok(())
    }

    async fn poll_health(&self) -> Result<(), Error> {
        let endpoints = self.store_reader.questions().endpoints(self.store_reader.endpoints.to_vec()).await?;
        let gates = self.store_reader.questions().gates().await?;
        let now = self.context.clock.now();
        let mut counters = self.context.counters.lock();
        for (lane, id) in self.store_reader.endpoints.iter().enumerate() {
            let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.id == *id) else { continue };
            let origin = format!("http://{}", self.addresses[lane]);
            let held = gates.iter().filter(|gate| gate.key.origin.as_str() == origin);
            let held = held.filter_map(|gate| gate.gate.held_until).max();
            let left = |until: Option<Timestamp>| until.filter(|until| *until > now).map(|t| t.since(now));
            let health = &endpoint.health;
            let health = match (health.status, left(held), left(health.quiet_until)) {
                (status, _, _) if status.is_given_up() => EndpointHealth::Failed,
                (_, Some(left), _) => EndpointHealth::Held(left),
                (_, _, Some(left)) => EndpointHealth::Quiet(left),
                _ if health.degraded() => EndpointHealth::Degraded,
                _ => EndpointHealth::Healthy,
            };
            counters.set_health(lane, health);
        }
        Ok(())
    }
}

impl StoreReader {
    fn questions(&self) -> ProcessQuestions<'_> {
        ProcessQuestions(&self.engine)
    }

    /// The states of the messages' deliveries, and when the first pending one is due.
    pub(super) async fn fates(
        &self,
        messages: Vec<MessageId>,
    ) -> Result<(HashMap<MessageId, [StoredFate; ENDPOINT_COUNT]>, Option<Timestamp>), Error> {
        let mut fates = HashMap::with_capacity(messages.len());
        let mut first_due = None;
        for message in messages {
            let deliveries = self.deliveries(message).await?;
            let of = |id: &EndpointId| deliveries.iter().find(|delivery| delivery.endpoint == *id);
            fates.insert(
                message,
                self.endpoints.each_ref().map(|id| of(id).map_or(StoredFate::Unknown, fate)),
            );
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
            match self.questions().deliveries(message).await {
                Err(Error::Busy | Error::Timeout) => sleep(PAUSE).await,
                read => return read,
            }
        }
        Err(Error::Busy)
    }
}

fn fate(delivery: &DeliveryStatus) -> StoredFate {
    match delivery.state {
        DeliveryState::Waiting { .. } => StoredFate::Waiting,
        DeliveryState::Delivered { .. } => StoredFate::Delivered,
        DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => StoredFate::Dead,
    }
}

fn whole_seconds(time: Duration) -> u128 {
    time.as_millis().div_ceil(1000)
}

/// The response, for the table and in words.
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
