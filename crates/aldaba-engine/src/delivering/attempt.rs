//! One attempt: read the payload if it is not in memory, sign, send, decide.

use crate::configuration::HeaderContext;
use crate::delivering::content::{BudgetedContent, ContentBudget, ContentOwner};
use crate::delivering::target::Target;
use crate::recording::{DecidedAttempt, RequestResult};
use crate::scheduling::{Inbox, LaneClass, MayStart, SchedulingCommand, SchedulingEvent};
use crate::traces::{AttemptTrace, TRACEPARENT, describe_attempt};
use crate::{Clock, ClockTrust, Entropy, Tracer, Transport, Vault, WireRequest, WireResponse};
use aldaba_delivery::{EndpointId, FailureKind, Outcome};
use aldaba_store::{Content, Error, PendingDelivery, Store};
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait after a failure of this server.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A delivery that the scheduler has selected.
#[derive(Clone)]
pub(crate) struct AttemptRequest {
    pub(crate) endpoint: EndpointId,
    pub(crate) target: Arc<Target>,
    pub(crate) pending: PendingDelivery,
    pub(crate) content: Option<Arc<BudgetedContent>>,
    pub(crate) lane_class: LaneClass,
}

impl AttemptRequest {
    /// Whose part of the memory budget holds its payload.
    fn content_owner(&self) -> ContentOwner {
        ContentOwner { app: self.target.app, responsive: self.lane_class == LaneClass::Responsive }
    }
}

/// An attempt that is over.
pub(crate) struct AttemptResult {
    pub(crate) request: AttemptRequest,
    pub(crate) end: AttemptEnd,
}

/// How an attempt ended.
pub(crate) enum AttemptEnd {
    Sent(Box<DecidedAttempt>),
    /// The payload was removed; nothing can be sent.
    PayloadGone,
    /// Nothing was sent: the attempt may not start any more after it had waited for its payload, or this server could not
    /// send. The delivery is pending again.
    Returned,
    /// The store closed before anything was sent.
    Abandoned,
}

/// What every attempt uses.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trust: ClockTrust,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: ContentBudget,
    pub(crate) vault: Vault,
    pub(crate) tracer: Tracer,
}

impl Sender {
    /// Makes an attempt in a task of its own.
    pub(crate) fn spawn(&self, request: AttemptRequest) {
        let sender = self.clone();
        tokio::spawn(async move {
            let mut request = request;
            let inbox = sender.inbox.clone();
            let content = request.content.take();
            // A panic is a bug, and must not leave a delivery in flight for ever.
            let end = match AssertUnwindSafe(sender.run(&request, content)).catch_unwind().await {
                Ok(end) => end,
                Err(_) => {
                    tracing::error!(endpoint = %request.endpoint, "a bug: an attempt panicked; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                    AttemptEnd::Returned
                }
            };
            inbox.send(SchedulingEvent::AttemptEnded(Box::new(AttemptResult { request, end })));
        });
    }

    async fn run(self, request: &AttemptRequest, content: Option<Arc<BudgetedContent>>) -> AttemptEnd {
        let content = match content {
            Some(content) => content,
            None => match self.load(request).await {
                Ok(Some(_)) if !self.still_may_start(request).await => return AttemptEnd::Returned,
                Ok(Some(content)) if content.is_deleted() => return AttemptEnd::PayloadGone,
                Ok(Some(content)) => content,
                Ok(None) => return AttemptEnd::PayloadGone,
                Err(_) => return AttemptEnd::Abandoned,
            },
        };
        let result = self.request(request, content).await;
        let outcome = &result.response.outcome;
        if !outcome.uses_up_attempt(result.started_at.since(request.pending.due_at)) {
            tracing::warn!(endpoint = %request.endpoint, error = %outcome, "cannot send; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
            return AttemptEnd::Returned;
        }
        let now = self.clock.now();
        AttemptEnd::Sent(Box::new(DecidedAttempt::of(request, result, now, &self.trust, &*self.entropy)))
    }

    /// Loads the payload. `None`: it was removed. An error: the store has closed.
    pub(crate) async fn load(&self, request: &AttemptRequest) -> Result<Option<Arc<BudgetedContent>>, Error> {
        let read = || self.read(request);
        self.contents.load(request.pending.message, request.content_owner(), read).await
    }

    /// Sends the request and measures its time. A panic is a bug; it becomes a failed attempt of this delivery alone.
    pub(crate) async fn request(
        &self,
        request: &AttemptRequest,
        content: Arc<BudgetedContent>,
    ) -> RequestResult {
        let event_type = content.content().event_type.clone();
        let (started_at, from) = (self.clock.now(), self.clock.monotonic());
        let message = request.pending.message;
        let trace = self.tracer.attempt(message, request.target.profile.sends_traceparent());
        let sending = AssertUnwindSafe(self.send(request, content, trace.as_ref())).catch_unwind();
        let response = sending.await.unwrap_or_else(|_| own_failure("the attempt panicked"));
        let to = self.clock.monotonic();
        if let Some(trace) = trace {
            let describe = |span: &mut _| describe_attempt(span, request, &response.outcome);
            self.tracer.attempted(&trace, message, (from, to), describe);
        }
        RequestResult { response, started_at, took: to.saturating_sub(from), event_type }
    }

    async fn send(
        &self,
        request: &AttemptRequest,
        content: Arc<BudgetedContent>,
        trace: Option<&AttemptTrace>,
    ) -> WireResponse {
        let target = &request.target;
        let address = match &target.address {
            Ok(address) => address,
            Err(why) => return own_failure(why),
        };
        let Ok(own) = self.vault.open_headers(target, request.endpoint, content.content()) else {
            return own_failure("the message's headers were given for another address");
        };
        // Receivers compare the signed time with their own clocks.
        let now = self.clock.wall();
        let message = content.content();
        let headers = target.profile.headers(&HeaderContext {
            message: request.pending.message,
            event_id: message.event_id.as_deref(),
            event_type: &message.event_type,
            version: message.version.as_deref(),
            app: target.app,
            endpoint: request.endpoint,
            attempts: request.pending.attempts,
            now,
            keys: &address.keys.at(self.trust.believed(self.clock.now())),
            body: &message.payload,
            traceparent: trace.and_then(|trace| trace.header.as_ref()),
        });
        let mut headers = Target::with_own(&target.profile, address, &own, headers);
        if let Some(header) =
            trace.and_then(|trace| trace.header.as_ref()).filter(|_| self.tracer.tells_all())
        {
            // An endpoint's own header of this name stays.
            headers.entry(TRACEPARENT).or_insert_with(|| header.clone());
        }
        let request = WireRequest {
            url: address.url.clone(),
            headers,
            body: content.into_bytes(),
            timeouts: target.policy.timeouts,
            redirects: target.policy.redirects,
            http2: address.http2,
            identity: address.identity.clone(),
        };
        self.transport.send(request).await
    }

    /// Whether the attempt may start after it had to wait for its payload.
    async fn still_may_start(&self, request: &AttemptRequest) -> bool {
        loop {
            let (answer, answered) = oneshot::channel();
            self.inbox.send(SchedulingCommand::Start(Box::new(request.clone()), answer));
            match answered.await.unwrap_or(MayStart::No) {
                MayStart::Yes => return true,
                MayStart::At(at) => tokio::time::sleep(at.since(self.clock.now())).await,
                MayStart::No => return false,
            }
        }
    }

    /// Reads the payload until the read succeeds: an unavailable store is no failure of the receiver, and must not use up
    /// an attempt.
    async fn read(&self, request: &AttemptRequest) -> Result<Option<Content>, Error> {
        loop {
            match self.store.contents(vec![(request.target.app, request.pending.message)]).await {
                Ok(mut contents) => return Ok(contents.pop().flatten()),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => {
                    tracing::warn!(%error, message = %request.pending.message, "cannot read a payload");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

fn own_failure(why: &'static str) -> WireResponse {
    WireResponse { outcome: Outcome::failed(FailureKind::Internal, why), body: Bytes::new() }
}
