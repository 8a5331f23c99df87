//! One attempt: read the payload if it is not in memory, sign, send, report.

use crate::content::HeldContent;
use crate::dispatcher::{Event, Inbox};
use crate::gates::Probes;
use crate::target::Target;
use crate::{Clock, Transport, WireRequest, WireResponse};
use aldaba_delivery::{EndpointId, FailureKind, Outcome, Timestamp};
use aldaba_store::{Content, Error, Store, Waiting};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::AUTHORIZATION;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before a payload that could not be read is asked for again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// A delivery whose turn has come.
pub(crate) struct Start {
    pub(crate) endpoint: EndpointId,
    pub(crate) target: Arc<Target>,
    pub(crate) waiting: Waiting,
    pub(crate) content: Option<Arc<HeldContent>>,
    pub(crate) probes: Probes,
}

/// An attempt that is over.
pub(crate) struct Ended {
    pub(crate) start: Start,
    pub(crate) end: End,
}

pub(crate) enum End {
    Sent {
        response: WireResponse,
        started_at: Timestamp,
        took: Duration,
    },
    /// There is nothing left to send: the payload is gone.
    ContentGone,
    /// The store closed before anything was sent.
    CalledOff,
}

/// What every attempt uses.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Inbox,
}

impl Sender {
    pub(crate) fn spawn(&self, start: Start) {
        let sender = self.clone();
        tokio::spawn(async move {
            let inbox = sender.inbox.clone();
            let end = sender.run(&start).await;
            inbox.send(Event::Ended(Box::new(Ended { start, end })));
        });
    }

    async fn run(self, start: &Start) -> End {
        let content = match &start.content {
            Some(held) => Some(held.content().clone()),
            None => match self.read(start).await {
                Ok(content) => content.map(Arc::new),
                Err(Error::Closed) => return End::CalledOff,
                Err(_) => unreachable!("a failing read is repeated"),
            },
        };
        let Some(content) = content else {
            return End::ContentGone;
        };
        let (started_at, from) = (self.clock.now(), self.clock.monotonic());
        // A panic is a bug of ours; it ends as a failed attempt of one delivery, not as a stuck lane.
        let sending = AssertUnwindSafe(self.send(start, &content, started_at)).catch_unwind();
        let response = sending.await.unwrap_or_else(|_| own_failure("the attempt panicked"));
        let took = self.clock.monotonic().saturating_sub(from);
        End::Sent { response, started_at, took }
    }

    async fn send(&self, start: &Start, content: &Content, now: Timestamp) -> WireResponse {
        let target = &start.target;
        let address = match &target.address {
            Ok(address) => address,
            Err(why) => return own_failure(why),
        };
        let mut headers = target.profile.headers(start.waiting.message, now, &address.keys, &content.payload);
        if let Some(authorization) = &address.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let request = WireRequest {
            url: address.url.clone(),
            headers,
            body: content.payload.clone(),
            timeouts: target.policy.timeouts,
            redirects: target.policy.redirects,
        };
        self.transport.send(request).await
    }

    /// Reads the payload, as often as it takes: a store that cannot be read now is no failure of
    /// the receiver and must not use up an attempt.
    async fn read(&self, start: &Start) -> Result<Option<Content>, Error> {
        loop {
            match self.store.contents(vec![(start.target.app, start.waiting.message)]).await {
                Ok(mut contents) => return Ok(contents.pop().flatten()),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => {
                    tracing::warn!(%error, message = %start.waiting.message, "cannot read a payload");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }
}

fn own_failure(why: &'static str) -> WireResponse {
    WireResponse { outcome: Outcome::failed(FailureKind::Internal, why), body: Bytes::new() }
}
