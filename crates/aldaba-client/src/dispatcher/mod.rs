//! Reports the ends of jobs to Aldaba, and never fails or delays a job.

mod background;
mod builder;
mod retry_queue;

pub use builder::DispatcherBuilder;

use crate::api::{Job, JobEnd, JobRecord, JobStatus};
use crate::retry::Retries;
use crate::{Client, Error, clock};
use background::{DispatcherState, is_outage, log_refusal, unexpected};
use futures_util::FutureExt;
use retry_queue::QueuedEnd;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The longest text of an error, in bytes. Aldaba refuses longer ones, so they are cut.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Notifies the URLs of jobs that the jobs finished, through an application of Aldaba. Clones share everything.
///
/// A repeat causes no second webhook. The idempotency key of a job's end consists of the job's id and its status.
/// A worker that crashes after a job, runs it again and reports its end again causes one webhook. This holds for
/// the same token, as long as Aldaba remembers the key (24 hours by default). A job that is to be reported again
/// needs a new id.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<DispatcherState>,
}

/// The outcome of a dispatch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Dispatched {
    /// The job has no URL. Nothing was sent.
    NoUrl,
    /// Aldaba has stored the end and delivers it.
    Accepted(Box<JobRecord>),
    /// Aldaba cannot be reached now. The background retries.
    Retrying,
    /// Aldaba refused the end. A retry would not help.
    Refused(Error),
    /// The queue is full or the dispatcher is shut down. The end is lost, counted and logged.
    Dropped,
}

/// The ends that a shutdown left unsent. Serialize it to keep them for the next start.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Leftover {
    /// The ends that Aldaba did not confirm. Pass each to [`Dispatcher::dispatch_end`] after the next start: those
    /// that Aldaba has stored already cause no second webhook.
    pub jobs: Vec<JobEnd>,
}

/// Omits results and URLs, which may be secret.
impl fmt::Debug for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs: Vec<_> = self.jobs.iter().map(|end| (&end.job_id, &end.job_type, end.status)).collect();
        f.debug_struct("Leftover").field("jobs", &jobs).finish()
    }
}

/// Counts of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherStats {
    /// Accepted, by the first request or a retry.
    pub accepted: u64,
    /// Waiting for a retry now.
    pub retrying: u64,
    /// Refused, by the first request or a retry.
    pub refused: u64,
    /// Lost: the queue was full, the time was over, or the dispatcher was shut down.
    pub dropped: u64,
}

impl Dispatcher {
    /// Begins to build a dispatcher for an application, by its id or uid.
    #[must_use]
    pub fn builder(client: Client, app: impl Into<String>) -> DispatcherBuilder {
        DispatcherBuilder::new(client, app.into())
    }

    fn new(builder: DispatcherBuilder) -> Self {
        Self { shared: Arc::new(DispatcherState::new(builder)) }
    }

    /// Notifies a job's URL that the job finished. Returns no error and never panics: a job must not fail because of
    /// its webhook. It takes at most as long as the first request, and no time while Aldaba is known to be down. An
    /// error text of more than 64 KiB is cut.
    ///
    /// If the future is dropped after its first poll, the background sends the end.
    pub async fn dispatch(
        &self,
        job: &Job,
        status: JobStatus,
        result: Option<Value>,
        error: Option<String>,
    ) -> Dispatched {
        let (result, completed_at) = (result.map(Into::into), Some(clock::timestamp()));
        self.dispatch_end(JobEnd { result, error, completed_at, ..JobEnd::new(job, status) }).await
    }

    /// Like [`dispatch`](Self::dispatch), for an end with its own time, such as one that a shutdown left over.
    pub async fn dispatch_end(&self, mut end: JobEnd) -> Dispatched {
        if end.webhook_url.as_deref().is_none_or(str::is_empty) {
            return Dispatched::NoUrl;
        }
        if let Some(error) = &mut end.error {
            error.truncate(error.floor_char_boundary(MAX_ERROR_BYTES));
        }
        let mut pending =
            PendingEnd { shared: &self.shared, runtime: Handle::try_current().ok(), end: Some(end) };
        let Some(end) = pending.end_unless_down() else { return Dispatched::Retrying };
        let first = AssertUnwindSafe(self.first(end)).catch_unwind().await;
        match first.unwrap_or_else(|panic| Err(Some(unexpected(&*panic)))) {
            Ok(record) => {
                pending.end = None;
                self.shared.queue.accepted();
                record.map_or(Dispatched::NoUrl, |record| Dispatched::Accepted(Box::new(record)))
            }
            Err(Some(error)) if !error.is_temporary() => {
                if let Some(end) = pending.end.take() {
                    log_refusal(&end, &error);
                }
                self.shared.queue.refused();
                Dispatched::Refused(error)
            }
            Err(error) => {
                let why =
                    error.as_ref().map_or("too many requests were under way".to_owned(), ToString::to_string);
                if pending.enqueue() {
                    tracing::warn!(why, "Aldaba cannot be reached; the end of a job is sent later");
                    Dispatched::Retrying
                } else {
                    tracing::error!(why, "Aldaba cannot be reached and the queue is full; a webhook is lost");
                    Dispatched::Dropped
                }
            }
        }
    }

    /// Makes the first request. `Err(None)`: no request was permitted in time.
    async fn first(&self, end: &JobEnd) -> Result<Option<JobRecord>, Option<Error>> {
        let (queue, limit, started) = (&self.shared.queue, self.shared.limits.first_try, clock::now());
        let turn = tokio::time::timeout(limit, self.shared.first_tries.acquire()).await;
        let waited = clock::now() - started;
        // After a long wait a timeout would say nothing about Aldaba.
        if turn.is_err() || waited > limit / 2 || queue.is_down() {
            return Err(None);
        }
        let rest = limit.saturating_sub(waited);
        let sent = self.shared.send(end, Retries::none().timeout(rest).total(rest)).await;
        queue.note_reached(!sent.as_ref().is_err_and(is_outage));
        queue.delay_by(sent.as_ref().err().and_then(Error::retry_after));
        sent.map_err(Some)
    }

    /// Waits until every queued end was accepted, at most for `limit`, and returns the rest. From now on nothing is
    /// retried.
    pub async fn shutdown(&self, limit: Duration) -> Leftover {
        let queue = &self.shared.queue;
        queue.close();
        self.shared.ensure_worker(None);
        // Whether it finished in time shows in what the queue has left.
        let _ = tokio::time::timeout(limit, queue.until_empty()).await;
        let left = queue.drain();
        if !left.is_empty() {
            tracing::error!(count = left.len(), "ends of jobs were not sent before the shutdown");
        }
        Leftover { jobs: left }
    }

    /// The counts of all dispatches so far.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        self.shared.queue.stats()
    }
}

/// An end that was neither accepted nor refused yet. Dropping it queues it for the background.
struct PendingEnd<'a> {
    shared: &'a Arc<DispatcherState>,
    /// The runtime of the dispatch.
    runtime: Option<Handle>,
    end: Option<JobEnd>,
}

impl PendingEnd<'_> {
    fn waiting(&mut self) -> Option<Box<QueuedEnd>> {
        let give_up_after = self.shared.limits.give_up_after;
        self.end.take().map(|end| QueuedEnd::new(end, clock::now(), give_up_after))
    }

    /// `None`: Aldaba is known to be down, and the end is queued.
    fn end_unless_down(&mut self) -> Option<&JobEnd> {
        if self.shared.queue.is_down() {
            let waiting = self.waiting()?;
            match self.shared.queue.enqueue_if_down(waiting, &self.shared.limits) {
                Ok(()) => self.shared.ensure_worker(self.runtime.as_ref()),
                Err(waiting) => self.end = Some(waiting.end),
            }
        }
        self.end.as_ref()
    }

    /// Queues the end. `false`: the queue is full, and the end is lost.
    fn enqueue(&mut self) -> bool {
        let Some(waiting) = self.waiting() else { return false };
        let joined = self.shared.queue.enqueue(waiting, &self.shared.limits);
        self.shared.ensure_worker(self.runtime.as_ref());
        joined
    }
}

impl Drop for PendingEnd<'_> {
    fn drop(&mut self) {
        if self.end.is_none() {
            return;
        }
        if self.enqueue() {
            tracing::warn!("a dispatch was cancelled; the background sends the end of the job");
        } else {
            tracing::error!("a dispatch was cancelled and the queue is full; a webhook is lost");
        }
    }
}

/// Omits queued ends: their results and URLs may be secret.
impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DispatcherState { app, limits, .. } = &*self.shared;
        f.debug_struct("Dispatcher")
            .field("app", app)
            .field("limits", limits)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
