//! Sends a steady stream of events through the API, like a user.

use super::ApiAccess;
use super::receiver::DemoContext;
use super::scenario::{self, APPLICATION, ENDPOINT_COUNT, ENDPOINTS, EventKind};
use aldaba_client::{
    Client, Error as ClientError, NewApplication, NewEndpoint, NewEventType, NewMessage, Retries,
};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_signature::SigningKey;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Events per second of one connection: each waits for the disk.
const EVENTS_PER_CONNECTION: u64 = 20;
const MAX_CONNECTIONS: u64 = 32;
/// A sender that is further behind does not catch up.
const MAX_BEHIND: Duration = Duration::from_secs(1);
/// The pause while the counters are full, and before an event without a response is sent again.
const PAUSE: Duration = Duration::from_millis(200);
/// The attempts to send an event without a response.
const MAX_SEND_ATTEMPTS: u32 = 5;
/// The longest pause that a refusal with `Retry-After` causes.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The wait for the last responses.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the application, its event types and its endpoints.
pub(super) async fn set_up(
    access: &ApiAccess,
    addresses: &[SocketAddr; ENDPOINT_COUNT],
    keys: &[SigningKey; ENDPOINT_COUNT],
) -> Result<[EndpointId; ENDPOINT_COUNT], ClientError> {
    let client = access.client()?;
    let application = NewApplication::with_uid("The demo's sample application", APPLICATION);
    client.applications().create(&application).await?;
    for kind in EventKind::ALL {
        client.event_types().create(&NewEventType::new(kind.name(), "Of the demo")).await?;
    }
    let mut ids = [EndpointId::from_bytes([0; 20]); ENDPOINT_COUNT];
    for (lane, id) in ids.iter_mut().enumerate() {
        let script = &ENDPOINTS[lane];
        let endpoint = NewEndpoint {
            uid: Some(script.name.into()),
            description: Some(format!("The demo's {}", script.name)),
            policy: Some(script.policy.into()),
            event_types: Some(script.wants.iter().map(|kind| kind.name().into()).collect()),
            secret: Some(keys[lane].secret_text().as_str().into()),
            ..NewEndpoint::new(format!("http://{}/{}", addresses[lane], script.name))
        };
        let created = client.app(APPLICATION).endpoints().create(&endpoint).await?;
        *id = parsed(&created.id)?;
    }
    Ok(ids)
}

fn parsed<T: std::str::FromStr>(id: &str) -> Result<T, ClientError> {
    id.parse().map_err(|_| ClientError::Request { detail: format!("the server answered with the id `{id}`") })
}

/// Senders that share the events among them. They stop when it is dropped.
#[derive(Debug)]
pub(super) struct EventSenders {
    senders: JoinSet<()>,
    stop: watch::Sender<bool>,
    context: DemoContext,
}

impl EventSenders {
    pub(super) fn start(access: &ApiAccess, context: &DemoContext, rate: u64) -> Result<Self, ClientError> {
        let connections = rate.div_ceil(EVENTS_PER_CONNECTION).clamp(1, MAX_CONNECTIONS);
        let client = access.client()?.with_retries(Retries::none());
        let mut senders = JoinSet::new();
        let (stop, stopped) = watch::channel(false);
        for first in 0..connections {
            let sender = Sender {
                client: client.clone(),
                context: context.clone(),
                stopped: stopped.clone(),
                gap: Duration::from_secs(connections).div_f64(rate as f64),
                step: connections,
            };
            senders.spawn(sender.send_from(first, Duration::from_secs(first).div_f64(rate as f64)));
        }
        Ok(Self { senders, stop, context: context.clone() })
    }

    /// Sends nothing more. Pending requests may end; events without a response then count as not accepted.
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

    async fn send(&self, number: u64) {
        let event = NewMessage::new(EventKind::of(number).name(), scenario::payload(number));
        self.context.counters.lock().begin(number, self.context.clock.monotonic());
        for _ in 0..MAX_SEND_ATTEMPTS {
            // The same key each time: an event with a lost response must not become two.
            let client = self.client.idempotent(&scenario::event_id(number));
            let sent = client.app(APPLICATION).messages().send_quietly(&event).await;
            match sent.and_then(|message| parsed::<MessageId>(&message.id)) {
                Ok(message) => return self.context.counters.lock().accepted(number, message),
                Err(ClientError::Unreachable { .. } | ClientError::Timeout { .. }) => {
                    sleep(PAUSE).await;
                }
                Err(error) => return self.refused(number, &error).await,
            }
        }
        self.context.counters.lock().refused(number);
    }

    async fn refused(&self, number: u64, error: &ClientError) {
        {
            let mut counters = self.context.counters.lock();
            counters.refused(number);
            let status = error.status().map_or("no status".to_owned(), |status| status.to_string());
            let what = format!("did not accept an event: {status}");
            counters.recent_events.note(self.context.clock.monotonic(), "server", what, None);
        }
        sleep(error.retry_after().unwrap_or_default().min(MAX_PAUSE)).await;
    }
}
