//! Senders: each sends what it has to say to the URL of a source until it hears that it is safe, as real ones do.

use super::{Client, OrderOutcome};
use crate::log::{Heard, InboundRequest, Said};
use crate::sabotage::Sabotage;
use crate::scenario::{EVENT_TYPES, Forgery, LABEL, Naming, SourcePlan, Webhook};
use aldaba_delivery::Timestamp;
use aldaba_engine::{
    EventTrace, ForwardedHeaders, InboundEvent, InspectedRequest, LoadedSource, ReceiveError, Reception,
    SendError,
};
use aldaba_signature::{HashKind, Scheme, SigningKey};
use aldaba_store::{Error, Seq};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;

/// Every so many events have a body that is no JSON.
const RAW: usize = 5;

/// What goes over the wire to a source.
struct Written {
    headers: HeaderMap,
    body: Bytes,
    id: Option<String>,
    event_type: String,
    /// `None`: nothing shows that it is the sender who sends it.
    key: Option<usize>,
}

impl Client {
    pub(super) async fn send_webhook(&self, number: usize, webhook: &Webhook) -> OrderOutcome {
        let plan = &self.world.scenario.sources[webhook.source];
        let (token, app, old_url, label, key) = {
            let mut notes = self.world.notes.lock();
            let (sent, unknown) = notes.tries.entry(number).or_default();
            let (label, key) = (format!("{number}-{sent}"), *unknown % plan.keys.len());
            *sent += 1;
            let source = &notes.sources[&webhook.source];
            let old_url = webhook.old_url && source.tokens.len() > 1;
            let token = if old_url { source.tokens.first() } else { source.tokens.last() };
            (token.expect("a source has a token").clone(), source.app, old_url, label, key)
        };
        let written = write(plan, webhook, key, &label, self.process.now());
        let failed = self.world.disk.lock().failed_rounds(app, written.id.as_deref());
        let index = self.note_inbound(webhook.source, &written, label, old_url, failed.clone());
        let Written { headers, body, id, event_type, .. } = written;
        let asking = self.at_door(&token, headers, &body, (id.clone(), event_type));
        let said = match webhook.timeout {
            None => asking.await,
            Some(timeout) => tokio::time::timeout(timeout, asking).await.unwrap_or(Said::Nothing),
        };
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        let (on_disk, still_failed) = {
            let disk = self.world.disk.lock();
            (disk.has_event(app, id.as_deref(), &body), disk.failed_rounds(app, id.as_deref()) == failed)
        };
        let at = self.process.now();
        let mut log = self.world.log.lock();
        log.note(at, || format!("inbound request {index}: {said:?}"));
        let step = log.step();
        log.inbound[index].heard = Some(Heard { step, at, said, on_disk, still_failed });
        match said {
            // Its owner has changed the key; the sender is told.
            Said::NotVerified if webhook.forgery.is_none() => {
                self.world.notes.lock().tries.entry(number).or_default().1 += 1;
                OrderOutcome::Refused
            }
            Said::NotNow | Said::TookLong | Said::Nothing => OrderOutcome::Refused,
            _ => OrderOutcome::Done,
        }
    }

    fn note_inbound(
        &self,
        source: usize,
        written: &Written,
        label: String,
        old_url: bool,
        failed: Vec<Seq>,
    ) -> usize {
        let at = self.process.now();
        let mut log = self.world.log.lock();
        let (step, index) = (log.step(), log.inbound.len());
        let Written { id, event_type, key, .. } = written;
        log.note(at, || {
            format!("inbound request {index} at source {source}: {label} {id:?} {event_type} by {key:?}")
        });
        let (id, event_type, body) = (id.clone(), event_type.clone(), written.body.clone());
        let key = *key;
        log.inbound.push(InboundRequest {
            step,
            at,
            source,
            id,
            event_type,
            body,
            key,
            old_url,
            label,
            heard: None,
            failed,
        });
        index
    }

    /// What the server does with a request to a source's URL, but for what it does of all requests. What is `real` is
    /// what the sender means; the door has to find it out.
    async fn at_door(
        &self,
        token: &str,
        headers: HeaderMap,
        body: &Bytes,
        real: (Option<String>, String),
    ) -> Said {
        let door = match self.engine.source_cache().find(token).await {
            Ok(Some(door)) => door,
            Ok(None) => return Said::NoSource,
            Err(_) => return Said::NotNow,
        };
        let event = match self.engine.inspect(&door, &headers, body).await {
            Ok(InspectedRequest::Event(event)) => event,
            Ok(InspectedRequest::Ignored) => return Said::Ignored,
            Err(error) if error.is_unauthorized() && !self.sabotage(Sabotage::TakeForged) => {
                return Said::NotVerified;
            }
            Err(error) if error.is_unauthorized() => InboundEvent {
                id: real.0,
                event_type: real.1,
                headers: ForwardedHeaders::default(),
                trace: EventTrace::default(),
            },
            other => return self.surprised(&format!("an inbound request was answered with {other:?}")),
        };
        self.hand_in(door, event, body.clone()).await
    }

    async fn hand_in(&self, door: Arc<LoadedSource>, event: InboundEvent, body: Bytes) -> Said {
        if self.sabotage(Sabotage::AnswerFirst) {
            let engine = self.engine.clone();
            tokio::spawn(async move { engine.receive(&door, event, body, ()).await });
            return Said::New(None);
        }
        match self.engine.receive(&door, event, body, ()).await {
            Ok(Reception::New(message)) => Said::New(Some(message)),
            Ok(Reception::Duplicate(message)) => Said::Duplicate(message),
            Ok(Reception::Reopened(message)) => Said::Reopened(message),
            Err(ReceiveError::OtherBody(message)) if self.sabotage(Sabotage::HideConflict) => {
                Said::Duplicate(message)
            }
            Err(ReceiveError::OtherBody(message)) => Said::OtherBody(message),
            Err(ReceiveError::Send(SendError::NotFound)) => Said::NoSource,
            Err(ReceiveError::Send(SendError::Late | SendError::Store(Error::Closed))) => Said::TookLong,
            Err(ReceiveError::Send(
                SendError::Store(Error::Busy | Error::Full | Error::Timeout) | SendError::Unsettled,
            )) => Said::NotNow,
            other => self.surprised(&format!("an event of a source was answered with {other:?}")),
        }
    }

    fn surprised(&self, surprise: &str) -> Said {
        if !self.process.is_dead() {
            self.world.notes.lock().surprises.push(surprise.to_owned());
        }
        Said::Ignored
    }

    fn sabotage(&self, kind: Sabotage) -> bool {
        self.world.scenario.sabotage == Some(kind)
    }
}

/// Of the type that the source has.
fn write(plan: &SourcePlan, webhook: &Webhook, key: usize, label: &str, now: Timestamp) -> Written {
    let Webhook { source, event, variant, forgery, .. } = *webhook;
    let event_type = EVENT_TYPES[event % EVENT_TYPES.len()];
    let raw = event % RAW == 0;
    let state = if forgery.is_some() { "a guess".to_owned() } else { client_state(source, key) };
    // Bytes at the end that mean nothing, and must come out all the same.
    let body = match plan.naming {
        Naming::ByNothing => format!(
            r#"{{"value":[{{"clientState":"{state}","changeType":"{event_type}"}}],"event":{event},"source":{source}}} "#
        ).into_bytes(),
        _ if raw => [format!("{source} {event} {variant} ").as_bytes(), b"\xff\x00\xfe \r\n"].concat(),
        _ => format!(r#" {{"event":{event},"source":{source},"type":"{event_type}","variant":{variant}}}{}"#, "\n ")
            .into_bytes(),
    };
    let body = Bytes::from(body);
    let signer = match forgery {
        Some(Forgery::OtherKey | Forgery::OldTime) => &SigningKey::generate_hmac([255; 24]),
        _ => &plan.keys[key],
    };
    let signed_body = if forgery == Some(Forgery::OtherBytes) { &b"{}"[..] } else { &body[..] };
    let mut headers = HeaderMap::new();
    let mut put = |name: &'static str, value: &str| {
        headers.insert(name, HeaderValue::from_str(value).expect("visible ASCII"));
    };
    put(LABEL, label);
    let unsigned = forgery == Some(Forgery::Unsigned);
    let mut id = None;
    match plan.naming {
        Naming::ById => {
            let (name, seconds) = (format!("evt-{event}"), now.millis().div_euclid(1000));
            // With the right key, an hour ago.
            let (signer, seconds) = match forgery {
                Some(Forgery::OldTime) => (&plan.keys[key], seconds - 3600),
                _ => (signer, seconds),
            };
            put("webhook-id", &name);
            put("webhook-timestamp", &seconds.to_string());
            if !unsigned {
                put("webhook-signature", &signer.sign(&name, seconds, signed_body));
            }
            id = Some(name);
        }
        Naming::ByBody => {
            put("x-webhook-event", event_type);
            if !unsigned {
                let scheme = Scheme::Hex(HashKind::Sha256);
                put("x-webhook-signature", &scheme.sign(std::slice::from_ref(signer), "", 0, signed_body));
            }
        }
        Naming::ByNothing => {}
    }
    let known = !(raw && plan.naming == Naming::ById);
    let event_type = if known { event_type } else { "standard-webhooks.event" };
    Written { headers, body, id, event_type: event_type.into(), key: forgery.is_none().then_some(key) }
}

/// What Microsoft Graph shows in the place of a signature.
pub(super) fn client_state(source: usize, key: usize) -> String {
    format!("state-{source}-{key}")
}
