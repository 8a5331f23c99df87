//! The way out, with receivers that misbehave on the other side.

use crate::entropy::Dice;
use crate::log::{Fate, Request, RequestEnd};
use crate::process::{Process, pause};
use crate::receiver::Reaction;
use crate::sabotage::Sabotage;
use crate::scenario::{LABEL, door_number};
use crate::world::World;
use aldaba_delivery::{FailureKind, MessageId, Outcome, ResponseHead, RetryAfter};
use aldaba_engine::{Sending, Transport, WireRequest, WireResponse};
use aldaba_signature::{Verifier, VerifyingKey};
use bytes::Bytes;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

#[derive(Clone)]
pub struct SimTransport(Arc<TransportState>);

struct TransportState {
    world: Arc<World>,
    process: Arc<Process>,
    dice: Mutex<Dice>,
    verifiers: Vec<Verifier>,
}

impl SimTransport {
    pub fn new(world: Arc<World>, process: Arc<Process>, dice: Dice) -> Self {
        let doors = world.scenario.doors.iter();
        let verifiers = doors.map(|door| Verifier::new([VerifyingKey::from(&door.key)])).collect();
        Self(Arc::new(TransportState { world, process, dice: Mutex::new(dice), verifiers }))
    }
}

impl Transport for SimTransport {
    fn send(&self, request: WireRequest) -> Sending {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.send(request).await })
    }
}

impl TransportState {
    async fn send(&self, request: WireRequest) -> WireResponse {
        if self.process.is_dead() {
            return std::future::pending().await;
        }
        let door = door_number(request.url.path()).expect("every URL has the number of its door");
        let mood = self.world.scenario.mood(door, self.process.now());
        let reaction = mood.react(request.timeouts, &mut self.dice.lock());
        let sent = self.arrives(door, &request);
        let second = self.sabotage(Sabotage::SendTwice).then(|| self.arrives(door, &request));
        self.ends(sent, reaction).await;
        if let Some(second) = second {
            self.ends(second, Reaction { after: std::time::Duration::ZERO, ..reaction }).await;
        }
        let failed = !matches!(reaction.fate, Fate::Answered { status: 200, .. });
        if failed && self.sabotage(Sabotage::RetryInside) {
            let again = self.arrives(door, &request);
            self.ends(again, reaction).await;
        }
        self.report(reaction.fate)
    }

    /// The receiver's side: writes down what came. Returns the number of the request.
    fn arrives(&self, door: usize, request: &WireRequest) -> usize {
        let now = self.process.now();
        let header = |name: &str| {
            let value = request
                .headers
                .get(format!("webhook-{name}"))
                .or_else(|| request.headers.get(format!("svix-{name}")));
            value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let (id, time, signature) = (header("id"), header("timestamp"), header("signature"));
        let mut body = request.body.to_vec();
        if self.sabotage(Sabotage::ChangeBody) {
            body.push(b' ');
        }
        let seconds = now.millis().div_euclid(1000);
        let signed = self.verifiers[door].verify(&id, &time, &signature, &body, seconds).is_ok();
        let message: MessageId = id.parse().expect("the id header is a message id");
        let mut log = self.world.log.lock();
        log.note(now, || format!("request {message} to door {door}"));
        let step = log.step();
        let life = self.process.number;
        let label = request.headers.get(LABEL).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = body.into();
        log.requests.push(Request { step, at: now, life, door, message, signed, body, label, end: None });
        log.requests.len() - 1
    }

    async fn ends(&self, sent: usize, reaction: Reaction) {
        pause(reaction.after).await;
        if self.process.is_dead() {
            return std::future::pending().await;
        }
        let at = self.process.now();
        let mut log = self.world.log.lock();
        log.note(at, || format!("request {sent} ends: {:?}", reaction.fate));
        let step = log.step();
        log.requests[sent].end = Some(RequestEnd { step, at, fate: reaction.fate });
    }

    fn report(&self, fate: Fate) -> WireResponse {
        let outcome = match fate {
            // Not by `panic!`: the hook would print a trace for every one of them.
            Fate::Panicked => std::panic::resume_unwind(Box::new("a bug in the sending")),
            Fate::Failed(kind) => Outcome::failed(kind, text(kind)),
            Fate::Answered { status, retry_after } => {
                let wish = retry_after.filter(|_| !self.sabotage(Sabotage::HideRetryAfter));
                let pretended = self.sabotage(Sabotage::PretendSuccess);
                Outcome::Response(ResponseHead {
                    status: if pretended { 200 } else { status },
                    phrase: "".into(),
                    retry_after: wish.map(|wish| RetryAfter::Seconds(wish.as_secs())),
                })
            }
        };
        WireResponse { outcome, body: Bytes::from_static(b"body") }
    }

    fn sabotage(&self, kind: Sabotage) -> bool {
        self.world.scenario.sabotage == Some(kind)
    }
}

fn text(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Dns => "no such host",
        FailureKind::Connect => "connection refused",
        FailureKind::Broken => "connection closed before the answer was complete",
        _ => "no answer in time",
    }
}

impl fmt::Debug for SimTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimTransport")
    }
}
