//! Accepts events: checks the payload, matches endpoints, one commit on disk, then the answer.
//!
//! One loop ([`Intake::settle`]) serves one event and many. A round takes one version of the application, matches every event
//! that has no result yet, and commits them together. If the application has changed meanwhile, the next round matches again.

mod accept;
mod check;
mod commit;
mod dispatch;
mod event;
pub(crate) mod matching;
mod new_application;
mod reopen;

pub use accept::Quotas;
pub use dispatch::{DispatchError, NewDispatch};
pub use event::{Direct, FromSource, NewEvent, SendError, SendReceipt};
pub use matching::{Mismatch, mismatches};

use crate::blocking_pool::BlockingPool;
use crate::configuration::DirectoryAccess;
use crate::delivering::ContentBudget;
use crate::scheduling::Inbox;
use crate::{Clock, Entropy, EventTypes, Tracer};
use accept::{check_delay, check_source};
use aldaba_delivery::Timestamp;
use aldaba_store::{Accept, Accepted, ApplicationRef, Content, Store, Tenant};
use matching::{MAX_INLINE_MATCH_COST, match_cost};
use std::sync::Arc;
use std::time::Duration;

/// How often events are matched again because the application's configuration changed.
const MAX_MATCH_ROUNDS: usize = 16;

/// Deliveries of one commit of several events, not counting those of its last event: others wait for it.
const MAX_DELIVERIES_PER_COMMIT: usize = 10_000;

pub(crate) struct Intake {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: DirectoryAccess,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: ContentBudget,
    pub(crate) event_types: EventTypes,
    pub(crate) idempotency_kept: Duration,
    pub(crate) quotas: Quotas,
    pub(crate) matching: BlockingPool,
    pub(crate) checking: BlockingPool,
    pub(crate) tracer: Tracer,
}

/// What holds for all events of a call.
#[derive(Clone, Copy)]
struct SendOptions {
    quotas: Quotas,
    /// How long to wait for a commit. `None`: as long as it takes.
    commit_timeout: Option<Duration>,
}

/// An event on its way through the intake.
struct IntakeItem<'e> {
    event: &'e NewEvent,
    content: Arc<Content>,
    /// Why it cannot be accepted, whatever the application's configuration.
    refusal: Option<SendError>,
    /// What its sender gets if the commit under way accepts it.
    submitted: Option<SendReceipt>,
    result: Option<Result<SendReceipt, SendError>>,
}

impl<'e> IntakeItem<'e> {
    fn new(event: &'e NewEvent) -> Self {
        Self { event, content: event.content(), refusal: None, submitted: None, result: None }
    }

    /// Whether it is to be matched and committed.
    fn is_open(&self) -> bool {
        self.result.is_none() && self.refusal.is_none()
    }

    fn into_result(self) -> Result<SendReceipt, SendError> {
        self.result.unwrap_or(Err(SendError::Unsettled))
    }
}

/// How a round has ended.
enum RoundEnd {
    /// Every event has a result.
    Settled,
    /// The application has changed since this version.
    Stale(Arc<Tenant>),
}

impl Intake {
    /// Accepts one event.
    pub(crate) async fn send(
        &self,
        which: &ApplicationRef,
        event: NewEvent,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        let mut item = [IntakeItem::new(&event)];
        self.check(which, &mut item).await;
        self.settle(which, &mut item, SendOptions { quotas: self.quotas, commit_timeout }).await?;
        let [item] = item;
        item.into_result()
    }

    /// Accepts several events of one application, in one commit unless they have very many deliveries or the configuration
    /// changes meanwhile. Each has a result of its own. An error is about all of them: nothing was stored, unless it is
    /// [`SendError::Late`].
    pub(crate) async fn send_many(
        &self,
        which: &ApplicationRef,
        events: Vec<NewEvent>,
        commit_timeout: Option<Duration>,
    ) -> Result<Vec<Result<SendReceipt, SendError>>, SendError> {
        let options = SendOptions { quotas: self.quotas, commit_timeout };
        let mut items: Vec<_> = events.iter().map(IntakeItem::new).collect();
        self.check(which, &mut items).await;
        self.settle(which, &mut items, options).await?;
        // An event alone is matched faster than all of them, so that fewer changes come in between.
        for item in items.iter_mut().filter(|item| item.result.is_none()) {
            if let Err(error) = self.settle(which, std::slice::from_mut(item), options).await {
                item.result = Some(Err(error));
            }
        }
        Ok(items.into_iter().map(IntakeItem::into_result).collect())
    }

    /// Accepts messages of the server itself, as [`Self::send_many`] does, without schemas and quotas.
    pub(crate) async fn send_own(
        &self,
        which: &ApplicationRef,
        events: &[NewEvent],
    ) -> Result<Vec<Result<SendReceipt, SendError>>, SendError> {
        let mut items: Vec<_> = events.iter().map(IntakeItem::new).collect();
        let options = SendOptions { quotas: Quotas::default(), commit_timeout: None };
        self.settle(which, &mut items, options).await?;
        Ok(items.into_iter().map(IntakeItem::into_result).collect())
    }

    /// Runs rounds until every event has a result, or the application has changed too often. An error is about all events;
    /// once one has a result, an error becomes the result of the others.
    async fn settle(
        &self,
        which: &ApplicationRef,
        items: &mut [IntakeItem<'_>],
        options: SendOptions,
    ) -> Result<(), SendError> {
        // The old version is kept until the next one is read, which shares most of its parts.
        let mut old = None;
        for _ in 0..MAX_MATCH_ROUNDS {
            match self.round(which, &mut old, items, options).await {
                Ok(RoundEnd::Settled) => break,
                Ok(RoundEnd::Stale(tenant)) => {
                    self.directory.forget(which, &tenant);
                    old = Some(tenant);
                }
                Err(error) if items.iter().all(|item| item.result.is_none()) => return Err(error),
                Err(error) => {
                    for item in items {
                        item.result.get_or_insert_with(|| Err(error.clone()));
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Commits the open events by one version of the application, then refuses what cannot be accepted.
    async fn round(
        &self,
        which: &ApplicationRef,
        old: &mut Option<Arc<Tenant>>,
        items: &mut [IntakeItem<'_>],
        options: SendOptions,
    ) -> Result<RoundEnd, SendError> {
        let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
        items.iter().try_for_each(|item| check_source(&tenant, item.event))?;
        drop(old.take());
        let now = self.clock.now();
        let (mut next, mut match_cost_so_far) = (0, 0);
        loop {
            let (mut batch, mut deliveries) = (Vec::with_capacity(items.len() - next), 0);
            while next < items.len() && deliveries < MAX_DELIVERIES_PER_COMMIT {
                let item = &mut items[next];
                next += 1;
                if !item.is_open() {
                    continue;
                }
                if match_cost_so_far > MAX_INLINE_MATCH_COST {
                    match_cost_so_far = 0;
                    tokio::task::yield_now().await;
                }
                let accept = self.matched(&tenant, item.event, &item.content, now, options.quotas).await;
                match_cost_so_far += match_cost(&tenant, item.event.payload.len());
                if let Err(refusal) = check_delay(&accept) {
                    item.refusal = Some(refusal);
                    continue;
                }
                deliveries += accept.deliveries.len();
                item.submitted = Some(SendReceipt::new(&accept.message));
                batch.push(accept);
            }
            if batch.is_empty() {
                break;
            }
            if !self.commit_items(batch, items, now, options).await? {
                return Ok(RoundEnd::Stale(tenant));
            }
        }
        for item in items.iter_mut().filter(|item| item.result.is_none()) {
            if let Some(refusal) = item.refusal.clone() {
                let app = tenant.application.id;
                item.result = Some(self.refuse(app, item.event, refusal, options.commit_timeout).await);
            }
        }
        Ok(RoundEnd::Settled)
    }

    /// Commits a batch and gives the submitted events their results. `false`: the application has changed.
    async fn commit_items(
        &self,
        batch: Vec<Accept>,
        items: &mut [IntakeItem<'_>],
        now: Timestamp,
        options: SendOptions,
    ) -> Result<bool, SendError> {
        let from = self.tracer.commit_begins();
        for item in items.iter() {
            if let Some(SendReceipt::New { message, .. }) = item.submitted {
                self.tracer.joins(message, &item.event.trace);
            }
        }
        let accepted = self.commit(batch, options.commit_timeout).await;
        let submitted = items.iter_mut().filter_map(|item| Some((item.submitted.take()?, item)));
        let mut is_current = true;
        for ((receipt, item), accepted) in submitted.zip(accepted?) {
            if let (SendReceipt::New { message, .. }, Accepted::New { .. }) = (&receipt, &accepted) {
                self.tracer.committed(from, *message, &item.event.trace);
            }
            item.result = self.result(item.event, receipt, &accepted, now);
            is_current &= item.result.is_some();
        }
        Ok(is_current)
    }
}
