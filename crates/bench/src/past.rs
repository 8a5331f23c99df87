//! A history: messages and attempts of one endpoint over four weeks, written directly into the store of a stopped server.
//! Through the API they would all have the same time.

use crate::Result;
use aldaba_delivery::{AppId, AttemptId, Ending, EndpointId, MessageId, OrgId, Timestamp, Transition};
use aldaba_store::{
    Accept, Accepted, ApplicationRef, Content, Done, Error, Hour, NewAttempt, NewDelivery, NewMessage,
    Record, Recorded, StoreOptions, SumUp, Trigger,
};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Messages in one commit.
const BATCH: usize = 1000;
pub(crate) const SPAN: Duration = Duration::from_secs(28 * 24 * 3600);
/// One in this many failed, and one in this many has another type and channel.
pub(crate) const RARE: usize = 1000;

pub(crate) struct Past<'a> {
    pub(crate) org: &'a str,
    pub(crate) app: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) attempts: usize,
    /// The end of the history.
    pub(crate) now: Timestamp,
}

impl Past<'_> {
    fn moment(&self, number: usize) -> Timestamp {
        let ago = SPAN.mul_f64(1.0 - number as f64 / self.attempts as f64);
        self.now.before(ago)
    }

    /// The id of an attempt in the middle, as an iterator.
    pub(crate) fn middle(&self) -> AttemptId {
        AttemptId::first_at(self.moment(self.attempts / 2))
    }

    pub(crate) async fn write(&self, folder: &Path) -> Result<()> {
        let store = aldaba_store::open(&StoreOptions::new(folder))?;
        let org: OrgId = self.org.parse()?;
        let which = ApplicationRef { org, key: self.app.to_owned() };
        let version = store.tenant(which).await?.ok_or("there is no such application")?.version;
        let (app, endpoint) = (self.app.parse()?, self.endpoint.parse()?);
        for first in (0..self.attempts).step_by(BATCH) {
            let numbers = first..self.attempts.min(first + BATCH);
            let accepts: Vec<_> =
                numbers.clone().map(|n| self.accept(n, org, app, endpoint, version)).collect();
            let accepted = ask(|done| store.accept(accepts.clone(), done)).await?;
            let mut records = Vec::with_capacity(BATCH);
            for ((number, accept), accepted) in numbers.zip(&accepts).zip(accepted) {
                let Accepted::New { first } = accepted else { return Err("not accepted".into()) };
                let (message, at) = (accept.message.id, accept.message.created_at);
                let attempt = self.attempt(number, at, accept.message.content.event_type.clone());
                let record = Record {
                    seq: first,
                    org: Some(org),
                    app,
                    endpoint,
                    message,
                    clock_start: at,
                    attempts_before: 0,
                    attempt: Some(attempt),
                    transition: Transition::Settle(Ending::Delivered),
                    at,
                    health: None,
                    gates: Vec::new(),
                    notices: Vec::new(),
                    mails: Vec::new(),
                    audit: None,
                    idempotency: None,
                };
                records.push(record);
            }
            let recorded = ask(|done| store.record(records, done)).await?;
            if recorded.iter().any(|recorded| *recorded != Recorded::Applied) {
                return Err("not recorded".into());
            }
        }
        // Hour by hour, as the server does.
        let through = Hour(Hour::of(self.now).0 - 1);
        for last in [false, true] {
            let step = SumUp { through, endpoints: vec![endpoint], last };
            ask(|done| store.sum_up(step, done)).await?;
        }
        Ok(store.close().await?)
    }

    fn accept(&self, number: usize, org: OrgId, app: AppId, endpoint: EndpointId, version: u64) -> Accept {
        let at = self.moment(number);
        let rare = number % RARE == RARE / 2;
        let payload = Bytes::from(format!(r#"{{"number":{number},"padding":"{:.<64}"}}"#, ""));
        let event_type = if rare { "invoice.disputed" } else { "invoice.paid" };
        Accept {
            org,
            app,
            version,
            message: NewMessage {
                id: MessageId::new(at, random(number, 1)),
                content: Arc::new(Content::new(event_type, payload)),
                channels: vec![if rare { "rare".into() } else { "usual".into() }],
                tags: Vec::new(),
                headers: Vec::new(),
                event_id_until: None,
                created_at: at,
                deliver_at: None,
                payload_until: None,
                only_for: None,
                job: None,
            },
            deliveries: vec![NewDelivery { endpoint, due_at: at, ordered: false, skipped: None }],
            idempotency: None,
            quota: None,
            direct: None,
            creates: None,
        }
    }

    fn attempt(&self, number: usize, at: Timestamp, event_type: Arc<str>) -> NewAttempt {
        let success = !number.is_multiple_of(RARE);
        NewAttempt {
            id: AttemptId::new(at, random(number, 2)),
            started_at: at,
            duration: Duration::from_millis(12),
            status_code: Some(if success { 200 } else { 503 }),
            failure: None,
            error: if success { String::new() } else { "HTTP 503: Service Unavailable".into() },
            response: Bytes::from_static(b"ok"),
            trigger: Trigger::Scheduled,
            success,
            event_type,
        }
    }
}

/// Deterministic and without repetition.
fn random(number: usize, kind: u8) -> [u8; 15] {
    let mut bytes = [kind; 15];
    bytes[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[7..].copy_from_slice(&(number as u64).to_be_bytes());
    bytes
}

async fn ask<T: Send + 'static>(write: impl FnOnce(Done<T>)) -> std::result::Result<T, Error> {
    let (told, fate) = oneshot::channel();
    write(Done::new(move |result| drop(told.send(result))));
    fate.await.unwrap_or(Err(Error::Closed))
}
