//! One attempt: read the payload if it is not in memory, sign, send, report.

use crate::configuration::HeaderContext;
use crate::delivering::content::{BudgetedContent, ContentBudget, ContentOwner};
use crate::delivering::target::Target;
use crate::recording::recorder::{DecidedAttempt, RequestResult};
use crate::scheduling::LaneClass;
use crate::scheduling::MayStart;
use crate::scheduling::{Event, Inbox};
use crate::{Clock, ClockTrust, Entropy, Transport, Vault, WireRequest, WireResponse};
use aldaba_delivery::{EndpointId, FailureKind, Outcome};
use aldaba_store::{Content, Error, PendingDelivery, Store};
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before something that failed on our side is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A delivery whose turn has come.
#[derive(Clone)]
pub(crate) struct AttemptRequest {
    pub(crate) endpoint: EndpointId,
    pub(crate) target: Arc<Target>,
    pub(crate) waiting: PendingDelivery,
    pub(crate) content: Option<Arc<BudgetedContent>>,
    pub(crate) lane_class: LaneClass,
}

impl AttemptRequest {
    /// On whose account its payload is in memory.
    fn content_owner(&self) -> ContentOwner {
        ContentOwner { app: self.target.app, responsive: self.lane_class == LaneClass::Responsive }
    }
}

/// An attempt that is over.
pub(crate) struct AttemptResult {
    pub(crate) start: AttemptRequest,
    pub(crate) end: AttemptEnd,
}

pub(crate) enum AttemptEnd {
    Sent(Box<DecidedAttempt>),
    /// There is nothing left to send: the payload is gone.
    ContentGone,
    /// It had to wait for its payload and meanwhile something came in between, or nothing could be
    /// sent from here: it waits for another turn.
    PutBack,
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
}

impl Sender {
    pub(crate) fn spawn(&self, start: AttemptRequest) {
        let sender = self.clone();
        tokio::spawn(async move {
            let mut start = start;
            let inbox = sender.inbox.clone();
            let content = start.content.take();
            // A panic is a bug of ours, and must not leave a delivery in flight for ever.
            let end = match AssertUnwindSafe(sender.run(&start, content)).catch_unwind().await {
                Ok(end) => end,
                Err(_) => {
                    tracing::error!(endpoint = %start.endpoint, "a bug: an attempt panicked; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                    AttemptEnd::PutBack
                }
            };
            inbox.send(Event::AttemptEnded(Box::new(AttemptResult { start, end })));
        });
    }

    async fn run(self, start: &AttemptRequest, content: Option<Arc<BudgetedContent>>) -> AttemptEnd {
        let held = match content {
            Some(held) => held,
            None => {
                let read = || self.read(start);
                match self.contents.load(start.waiting.message, start.content_owner(), read).await {
                    Ok(Some(_)) if !self.still_may_start(start).await => return AttemptEnd::PutBack,
                    Ok(Some(held)) if held.is_deleted() => return AttemptEnd::ContentGone,
                    Ok(Some(held)) => held,
                    Ok(None) => return AttemptEnd::ContentGone,
                    // A failing read is repeated; this one will never come.
                    Err(_) => return AttemptEnd::Abandoned,
                }
            }
        };
        let event_type = held.content().event_type.clone();
        let (started_at, from) = (self.clock.now(), self.clock.monotonic());
        // A panic is a bug of ours; it ends as a failed attempt of one delivery, not as a stuck lane.
        let sending = AssertUnwindSafe(self.send(start, held)).catch_unwind();
        let response = sending.await.unwrap_or_else(|_| own_failure("the attempt panicked"));
        if !response.outcome.uses_up_attempt(started_at.since(start.waiting.due_at)) {
            let error = &response.outcome;
            tracing::warn!(endpoint = %start.endpoint, %error, "cannot send; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
            return AttemptEnd::PutBack;
        }
        let took = self.clock.monotonic().saturating_sub(from);
        let sent = RequestResult { response, started_at, took, event_type };
        AttemptEnd::Sent(Box::new(DecidedAttempt::of(
            start,
            sent,
            self.clock.now(),
            &self.trust,
            &*self.entropy,
        )))
    }

    /// The payload, for an attempt without a turn. `None`: there is nothing left to send.
    pub(crate) async fn load(&self, start: &AttemptRequest) -> Result<Option<Arc<BudgetedContent>>, Error> {
        self.contents.load(start.waiting.message, start.content_owner(), || self.read(start)).await
    }

    /// Sends without a turn.
    pub(crate) async fn send_by_hand(
        &self,
        start: &AttemptRequest,
        held: Arc<BudgetedContent>,
    ) -> RequestResult {
        let event_type = held.content().event_type.clone();
        let (started_at, from) = (self.clock.now(), self.clock.monotonic());
        let sending = AssertUnwindSafe(self.send(start, held)).catch_unwind();
        let response = sending.await.unwrap_or_else(|_| own_failure("the attempt panicked"));
        RequestResult { response, started_at, took: self.clock.monotonic().saturating_sub(from), event_type }
    }

    async fn send(&self, start: &AttemptRequest, held: Arc<BudgetedContent>) -> WireResponse {
        let target = &start.target;
        let address = match &target.address {
            Ok(address) => address,
            Err(why) => return own_failure(why),
        };
        let content = held.content();
        let Ok(own) = self.vault.open_headers(target, start.endpoint, content) else {
            return own_failure("the message's headers were given for another address");
        };
        // Receivers hold the signed time against their own clocks.
        let now = self.clock.wall();
        let headers = target.profile.headers(&HeaderContext {
            message: start.waiting.message,
            event_id: content.event_id.as_deref(),
            event_type: &content.event_type,
            version: content.version.as_deref(),
            app: target.app,
            endpoint: start.endpoint,
            attempts: start.waiting.attempts,
            now,
            keys: &address.keys.at(self.trust.believed(self.clock.now())),
            body: &content.payload,
        });
        let request = WireRequest {
            url: address.url.clone(),
            headers: Target::with_own(&target.profile, address, &own, headers),
            body: held.into_bytes(),
            timeouts: target.policy.timeouts,
            redirects: target.policy.redirects,
            http2: address.http2,
            identity: address.identity.clone(),
        };
        self.transport.send(request).await
    }

    /// Asks again whether the attempt may start: reading its payload took time.
    async fn still_may_start(&self, start: &AttemptRequest) -> bool {
        loop {
            let (answer, answered) = oneshot::channel();
            self.inbox.send(Event::MayStart(Box::new(start.clone()), answer));
            match answered.await.unwrap_or(MayStart::No) {
                MayStart::Yes => return true,
                MayStart::At(at) => tokio::time::sleep(at.since(self.clock.now())).await,
                MayStart::No => return false,
            }
        }
    }

    /// Reads the payload, as often as it takes: a store that cannot be read now is no failure of
    /// the receiver and must not use up an attempt.
    async fn read(&self, start: &AttemptRequest) -> Result<Option<Content>, Error> {
        loop {
            match self.store.contents(vec![(start.target.app, start.waiting.message)]).await {
                Ok(mut contents) => return Ok(contents.pop().flatten()),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => {
                    tracing::warn!(%error, message = %start.waiting.message, "cannot read a payload");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

fn own_failure(why: &'static str) -> WireResponse {
    WireResponse { outcome: Outcome::failed(FailureKind::Internal, why), body: Bytes::new() }
}
