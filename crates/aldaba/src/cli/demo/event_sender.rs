//! The steady stream of events, through the API as a user would send them.

use super::client::{Client, ClientError, Door};
use super::receiver::DemoContext;
use super::scenario::{self, APPLICATION, ENDPOINT_COUNT, ENDPOINTS, EventKind};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_signature::SigningKey;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Events a second that one connection is trusted with: each waits for the disk.
const EVENTS_PER_CONNECTION: u64 = 20;
const MAX_CONNECTIONS: u64 = 32;
/// A sender further behind than this does not try to catch up.
const MAX_BEHIND: Duration = Duration::from_secs(1);
/// The pause while the counters is full, and before an event is sent again whose answer was lost.
const PAUSE: Duration = Duration::from_millis(200);
const TRIES: u32 = 5;
/// How long the answers to the last events may take.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the application and its endpoints.
pub(super) async fn set_up(
    door: &Door,
    addresses: &[SocketAddr; ENDPOINT_COUNT],
    keys: &[SigningKey; ENDPOINT_COUNT],
) -> Result<[EndpointId; ENDPOINT_COUNT], ClientError> {
    let mut client = Client::new(door.clone());
    let application = json!({ "name": "The demo's sample application", "uid": APPLICATION });
    client.post("/app", "application", &application).await?;
    for kind in EventKind::ALL {
        let described = json!({ "name": kind.name(), "description": "Of the demo" });
        client.post("/event-type", kind.name(), &described).await?;
    }
    let mut ids = [EndpointId::from_bytes([0; 20]); ENDPOINT_COUNT];
    for (lane, id) in ids.iter_mut().enumerate() {
        let script = &ENDPOINTS[lane];
        let types: Vec<_> = script.wants.iter().map(|kind| kind.name()).collect();
        let endpoint = json!({
            "uid": script.name,
            "url": format!("http://{}/{}", addresses[lane], script.name),
            "description": format!("The demo's {}", script.name),
            "policy": script.policy,
            "eventTypes": types,
            "secret": *keys[lane].secret_text(),
        });
        let made = client.post(&format!("/app/{APPLICATION}/endpoint"), script.name, &endpoint).await?;
        *id = id_of(&made)?;
    }
    Ok(ids)
}

fn id_of<T: std::str::FromStr>(made: &Value) -> Result<T, ClientError> {
    let id = made.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    id.ok_or_else(|| ClientError::Broken("an answer without an id".into()))
}

/// Senders that share the events among them. They stop when it is dropped.
#[derive(Debug)]
pub(super) struct EventSenders {
    senders: JoinSet<()>,
    stop: watch::Sender<bool>,
    context: DemoContext,
}

impl EventSenders {
    pub(super) fn start(door: &Door, context: &DemoContext, rate: u64) -> Self {
        let connections = rate.div_ceil(EVENTS_PER_CONNECTION).clamp(1, MAX_CONNECTIONS);
        let mut senders = JoinSet::new();
        let (stop, stopped) = watch::channel(false);
        for first in 0..connections {
            let sender = Sender {
                client: Client::new(door.clone()),
                context: context.clone(),
                stopped: stopped.clone(),
                gap: Duration::from_secs(connections).div_f64(rate as f64),
                step: connections,
            };
            senders.spawn(sender.send_from(first, Duration::from_secs(first).div_f64(rate as f64)));
        }
        Self { senders, stop, context: context.clone() }
    }

    /// Nothing more is sent. Whoever waits for an answer may hear it; what is not answered then
    /// counts as not accepted.
    pub(super) async fn stop(mut self) {
        let _ = self.stop.send(true);
        let all_heard = async { while self.senders.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_RESPONSES_TIMEOUT, all_heard).await;
        self.senders.shutdown().await;
        self.context.counters.lock().refuse_unanswered();
    }
}

struct Sender {
    client: Client,
    context: DemoContext,
    stopped: watch::Receiver<bool>,
    gap: Duration,
    step: u64,
}

impl Sender {
    /// Sends every `step`th event from `number` on, the first one `offset` from now.
    async fn send_from(mut self, mut number: u64, offset: Duration) {
        let mut due = self.context.clock.monotonic() + offset;
        loop {
            let now = self.context.clock.monotonic();
            if self.is_stopped_within(due.saturating_sub(now)).await {
                return;
            }
            while !self.context.counters.lock().has_capacity() {
                if self.is_stopped_within(PAUSE).await {
                    return;
                }
            }
            self.send(number).await;
            number += self.step;
            due = (due + self.gap).max(self.context.clock.monotonic().saturating_sub(MAX_BEHIND));
        }
    }

    async fn is_stopped_within(&mut self, time: Duration) -> bool {
        tokio::select! {
            _ = self.stopped.wait_for(|stopped| *stopped) => true,
            () = sleep(time) => false,
        }
    }

    async fn send(&mut self, number: u64) {
        let event = json!({
            "eventType": EventKind::of(number).name(),
            "payload": scenario::payload(number),
        });
        self.context.counters.lock().begin(number, self.context.clock.monotonic());
        for _ in 0..TRIES {
            // The same key each time: an answer that was lost must not make two of it.
            let key = scenario::event_id(number);
            let answer = self.client.post(&format!("/app/{APPLICATION}/msg"), &key, &event).await;
            match answer.and_then(|made| id_of::<MessageId>(&made)) {
                Ok(message) => return self.context.counters.lock().accepted(number, message),
                Err(ClientError::Broken(_)) => sleep(PAUSE).await,
                Err(refused) => return self.refused(number, refused).await,
            }
        }
        self.context.counters.lock().refused(number);
    }

    async fn refused(&self, number: u64, error: ClientError) {
        let ClientError::Refused { status, pause, .. } = error else { return };
        {
            let mut counters = self.context.counters.lock();
            counters.refused(number);
            let what = format!("did not accept an event: {}", status.as_u16());
            counters.recent_events.note(self.context.clock.monotonic(), "server", what, None);
        }
        sleep(pause.unwrap_or_default()).await;
    }
}
