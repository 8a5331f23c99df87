//! Replays: jobs that start new rounds for many settled deliveries.
//!
//! A replay is stored with its progress, and a task runs it step by step. The opened deliveries go to the lanes as if they had
//! just been accepted: throttles, gates and health apply to them.

mod step_queue;

#[cfg(test)]
mod tests;

use crate::configuration::Entries;
use crate::housekeeping::background::{self, Background};
use crate::scheduling::{Inbox, QueuedDelivery, SchedulingEvent};
use crate::{ChangeError, Clock, Entropy, IdempotencyDigest};
use aldaba_delivery::{AppId, EndpointId, OrgId, ReplayId};
use aldaba_store::{
    Actor, AuditAction, Change, Changed, Done, Endpoint, Error, IdempotencyKey, Replay, ReplayFilter,
    ReplayKind, ReplayState, ReplayStep, ReplayStepped, Store,
};
use std::sync::Arc;
use std::time::Duration;
use step_queue::{ApplicationQueue, StepQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Deliveries that one replay may open. For more, start another replay where this one ended.
pub const MAX_REPLAYED_DELIVERIES: u64 = 1_000_000;
/// Rows that a step reads. A step that takes the writer more than a few milliseconds ends earlier.
const STEP_ROWS: usize = 1000;
/// Deliveries that a step opens.
const STEP_DELIVERIES: usize = 100;
/// Steps at once: one is written while the next waits. Other replays wait here, so that retention does not wait behind all of
/// them.
const MAX_CONCURRENT_STEPS: usize = 2;
/// The shortest pause between two steps that opened nothing, so that a walk over a long history leaves the writer to others.
const MIN_STEP_PAUSE: Duration = Duration::from_millis(5);
/// The same pause, as a multiple of the step's time.
const STEP_PAUSE_FACTOR: u32 = 4;
/// How long until a failed step is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Rows of one read of a count, and of a whole count.
const COUNT_PAGE_ROWS: usize = 20_000;
const MAX_COUNTED_ROWS: usize = 1_000_000;
/// The longest time of a count: a caller waits for it.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// What to replay.
#[derive(Clone, Debug)]
pub struct NewReplay {
    pub org: OrgId,
    pub app: AppId,
    pub endpoint: EndpointId,
    pub kind: ReplayKind,
    pub filter: ReplayFilter,
    /// Deliveries that it opens per second at most.
    pub rate: u32,
}

/// How many deliveries a replay would open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCount {
    pub count: u64,
    /// There are more, which were not counted.
    pub at_least: bool,
}

/// Starts, runs and cancels replays.
#[derive(Clone)]
pub struct Replays(Arc<ReplayServices>);

struct ReplayServices {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    inbox: Inbox,
    entries: Entries,
    idempotency_kept: Duration,
    background: Background,
    step_queue: StepQueue,
    /// A replay is started from the store's writer thread.
    runtime: Handle,
}

impl Replays {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        inbox: Inbox,
        entries: Entries,
        idempotency_kept: Duration,
        background: Background,
    ) -> Self {
        let step_queue = StepQueue::new(MAX_CONCURRENT_STEPS);
        let runtime = Handle::current();
        Self(Arc::new(ReplayServices {
            store,
            clock,
            entropy,
            inbox,
            entries,
            idempotency_kept,
            background,
            step_queue,
            runtime,
        }))
    }

    /// Continues the replays that were running before the restart.
    pub(crate) fn resume(&self, running: &[Replay]) {
        for replay in running {
            self.run(replay);
        }
    }

    /// Starts a replay. An idempotency key that was used before returns its replay.
    pub async fn start(
        &self,
        actor: &Actor,
        new: NewReplay,
        once: IdempotencyDigest,
    ) -> Result<Replay, ChangeError> {
        let replay = self.planned(new);
        let expires_at = replay.created_at + self.0.idempotency_kept;
        let idempotency = once.map(|digest| IdempotencyKey { digest, expires_at });
        let change = Change::StartReplay { replay: replay.clone(), idempotency };
        let (replays, begins) = (self.clone(), replay.clone());
        let begin = move |changed: &Changed| {
            if let Changed::Done { .. } = changed {
                replays.run(&begins);
            }
        };
        match self.change(actor, change.audit_action(), change, begin).await? {
            Changed::Done { .. } => Ok(replay),
            Changed::Repeated { resource } => {
                let id = ReplayId::from_bytes(resource);
                let before = self.0.store.replay(replay.org, id).await?;
                before.ok_or_else(|| ChangeError::MadeAndGone(id.to_string()))
            }
            Changed::TooMany => Err(ChangeError::TooManyReplays),
            _ => Err(ChangeError::NotFound),
        }
    }

    /// Counts what a replay would open, without opening anything.
    pub async fn count(&self, new: NewReplay) -> Result<ReplayCount, ChangeError> {
        let replay = self.planned(new);
        let begun = self.0.clock.monotonic();
        let is_over = || self.0.clock.monotonic().saturating_sub(begun) >= COUNT_TIMEOUT;
        let (mut count, mut rows, mut after) = (0, 0, None);
        // A read may return fewer rows.
        while rows < MAX_COUNTED_ROWS && !is_over() {
            let page = self.0.store.count_replay(replay.clone(), after, COUNT_PAGE_ROWS).await?;
            count += page.matched;
            rows += page.rows;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(ReplayCount { count, at_least: false }),
            }
        }
        Ok(ReplayCount { count, at_least: true })
    }

    /// Cancels a replay. `false`: it was over already.
    pub async fn cancel(&self, actor: &Actor, replay: &Replay) -> Result<bool, ChangeError> {
        let at = self.0.clock.now();
        let change = Change::CancelReplay { org: replay.org, replay: replay.id, at };
        let action = change.audit_action().of_app(replay.app).at_endpoint(replay.endpoint);
        match self.change(actor, action, change, |_| ()).await? {
            Changed::Done { .. } => Ok(true),
            Changed::Stale => Ok(false),
            _ => Err(ChangeError::NotFound),
        }
    }

    /// The replay of dead deliveries that follows the resume of an endpoint.
    pub(crate) fn recovery(&self, endpoint: &Endpoint, rate: u32) -> Replay {
        let filter = ReplayFilter { dead: true, ..ReplayFilter::nothing(self.0.clock.now()) };
        let (org, app, endpoint, kind) = (endpoint.org, endpoint.app, endpoint.id, ReplayKind::Recover);
        self.planned(NewReplay { org, app, endpoint, kind, filter, rate })
    }

    fn planned(&self, new: NewReplay) -> Replay {
        let NewReplay { org, app, endpoint, kind, filter, rate } = new;
        let now = self.0.clock.now();
        Replay {
            id: ReplayId::new(now, self.0.entropy.bytes()),
            org,
            app,
            endpoint,
            kind,
            filter,
            rate,
            state: ReplayState::Running,
            reached: None,
            looked_at: 0,
            opened: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// Runs `then` after the commit, whether or not the caller still waits.
    async fn change(
        &self,
        actor: &Actor,
        action: AuditAction,
        change: Change,
        then: impl FnOnce(&Changed) + Send + 'static,
    ) -> Result<Changed, Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if let Ok(changed) = &result {
                then(changed);
            }
            let _ = answer.send(result);
        });
        let entry = self.0.entries.entry(actor, action);
        self.0.store.change(change, Some(entry), done);
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Runs a replay until it is over.
    pub(crate) fn run(&self, replay: &Replay) {
        let (inner, id, rate) = (self.0.clone(), replay.id, replay.rate.max(1));
        let queue = self.0.step_queue.queue(replay.app);
        self.0.runtime.spawn(async move {
            inner.background.supervised(background::REPLAYS, || inner.run(id, rate, &queue)).await;
        });
    }
}

impl ReplayServices {
    async fn run(&self, id: ReplayId, rate: u32, queue: &ApplicationQueue) {
        // Small steps for a low rate, so that deliveries do not come in bursts.
        let open = usize::try_from(rate / 10).unwrap_or(STEP_DELIVERIES).clamp(1, STEP_DELIVERIES);
        loop {
            // Held only during the step: a slow replay must not delay others.
            let Some(permit) = self.step_queue.next(queue).await else { return };
            let begun = self.clock.monotonic();
            let stepped = self.step(id, open).await;
            let took = self.clock.monotonic().saturating_sub(begun);
            let application_permit = permit.application_permit();
            match stepped {
                Ok(ReplayStepped { replay: Some(replay), opened })
                    if replay.state == ReplayState::Running =>
                {
                    if opened.is_empty() {
                        // Other replays of the application wait too, so that all its walks together leave the writer to others.
                        tokio::time::sleep(MIN_STEP_PAUSE.max(took * STEP_PAUSE_FACTOR)).await;
                        continue;
                    }
                    drop(application_permit);
                    let share = Duration::from_secs(1) * opened.len() as u32 / rate;
                    tokio::time::sleep(share.max(MIN_STEP_PAUSE)).await;
                }
                Ok(ReplayStepped { replay: Some(replay), .. }) => {
                    tracing::info!(replay = %replay.id, endpoint = %replay.endpoint, opened = replay.opened,
                        looked_at = replay.looked_at, state = ?replay.state, "a replay is over");
                    return;
                }
                Ok(_) | Err(Error::Closed) => return,
                Err(error) => {
                    drop(application_permit);
                    tracing::debug!(%error, replay = %id, "a replay waits for the store");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn step(&self, id: ReplayId, open: usize) -> Result<ReplayStepped, Error> {
        let step =
            ReplayStep { id, look: STEP_ROWS, open, most: MAX_REPLAYED_DELIVERIES, now: self.clock.now() };
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let done = Done::new(move |result: Result<ReplayStepped, Error>| {
            // Lanes are told in the order of the commits.
            if let Ok(ReplayStepped { replay: Some(replay), opened }) = &result
                && !opened.is_empty()
            {
                let offer =
                    |waiting| QueuedDelivery { endpoint: replay.endpoint, pending: waiting, content: None };
                inbox
                    .send(SchedulingEvent::Accepted(replay.app, opened.iter().copied().map(offer).collect()));
                if opened.iter().any(|waiting| waiting.sequence.is_none()) {
                    inbox.send(SchedulingEvent::SequencingNeeded);
                }
            }
            let _ = answer.send(result);
        });
        self.store.step_replay(step, done);
        answered.await.map_err(|_| Error::Closed)?
    }
}

impl std::fmt::Debug for Replays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replays")
    }
}
