//! Tells the end of jobs, and never gets in their way.

mod background;
mod builder;
mod line;

pub use builder::DispatcherBuilder;

use crate::api::{Job, JobEnd, JobRecord, JobStatus};
use crate::retry::Retries;
use crate::{Client, Error, clock};
use background::{Shared, is_outage, log_refusal, unexpected};
use futures_util::FutureExt;
use line::Waiting;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long an error's text may be, in bytes. Aldaba takes no longer one, and half of it is better than no webhook.
const LONGEST_ERROR: usize = 64 << 10;

/// Tells the end of jobs through an application of Aldaba. A handle: clones share everything.
///
/// A repeat is one webhook: the idempotency key of a job's end is made of the job's id and how it ended, and of
/// nothing else. A worker that crashes after a job, runs it again and tells its end again tells it once, as long as
/// it has the same token and Aldaba remembers the key (24 hours, unless its operator says otherwise). So a job that
/// is to be told of anew needs a new id.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<Shared>,
}

/// What became of the news of a job's end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Dispatched {
    /// The job has no URL: nobody wants to know, and nothing was sent.
    NoUrl,
    /// Aldaba has it on disk and delivers it.
    Accepted(Box<JobRecord>),
    /// Aldaba cannot be reached now; it is tried again in the background.
    Retrying,
    /// Aldaba does not take it, now or later.
    Refused(Error),
    /// As many wait already as may, or the dispatcher is shut down: it is lost, counted and logged.
    Dropped,
}

/// What was not accepted when the time for a shutdown was up. It can be written as JSON, and read again.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Leftover {
    /// The ends that were not told, or not for certain, with all that they were to tell. Each can be given to
    /// [`Dispatcher::dispatch_end`] after the next start: what Aldaba has had already is not told twice.
    pub jobs: Vec<JobEnd>,
}

/// Without results and URLs: they may be secret.
impl fmt::Debug for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs: Vec<_> = self.jobs.iter().map(|end| (&end.job_id, &end.job_type, end.status)).collect();
        f.debug_struct("Leftover").field("jobs", &jobs).finish()
    }
}

/// How often each outcome was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherStats {
    /// Accepted, at once or later.
    pub accepted: u64,
    /// Being retried in the background now.
    pub retrying: u64,
    /// Refused, at once or later.
    pub refused: u64,
    /// Lost: too many waited, it took too long, or the dispatcher was shut down.
    pub dropped: u64,
}

impl Dispatcher {
    /// For an application: its id or uid.
    #[must_use]
    pub fn builder(client: Client, app: impl Into<String>) -> DispatcherBuilder {
        DispatcherBuilder::new(client, app.into())
    }

    fn new(builder: DispatcherBuilder) -> Self {
        Self { shared: Arc::new(Shared::new(builder)) }
    }

    /// Tells that a job has ended. Never an error, never a panic: a job does not fail because of its webhook. It
    /// takes as long as the first try at most, and no time at all while Aldaba is known to be away. An error of more
    /// than 64 KiB is cut.
    ///
    /// Whoever gives up waiting, after the first poll, leaves it to the background, as if the first try had failed.
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

    /// The same, for an end that knows when it was: one that was left over at a shutdown, for one.
    pub async fn dispatch_end(&self, mut end: JobEnd) -> Dispatched {
        if end.webhook_url.as_deref().is_none_or(str::is_empty) {
            return Dispatched::NoUrl;
        }
        if let Some(error) = &mut end.error {
            error.truncate(error.floor_char_boundary(LONGEST_ERROR));
        }
        let mut untold = Untold { shared: &self.shared, runtime: Handle::try_current().ok(), end: Some(end) };
        let Some(end) = untold.end_while_aldaba_is_up() else { return Dispatched::Retrying };
        let first = AssertUnwindSafe(self.first(end)).catch_unwind().await;
        match first.unwrap_or_else(|panic| Err(Some(unexpected(&*panic)))) {
            Ok(record) => {
                untold.end = None;
                self.shared.line.accepted();
                record.map_or(Dispatched::NoUrl, |record| Dispatched::Accepted(Box::new(record)))
            }
            Err(Some(error)) if !error.is_temporary() => {
                if let Some(end) = untold.end.take() {
                    log_refusal(&end, &error);
                }
                self.shared.line.refused();
                Dispatched::Refused(error)
            }
            Err(error) => {
                let why =
                    error.as_ref().map_or("its turn did not come in time".to_owned(), ToString::to_string);
                if untold.joins_the_line() {
                    tracing::warn!(why, "Aldaba cannot be reached now; the end of a job is told later");
                    Dispatched::Retrying
                } else {
                    tracing::error!(why, "Aldaba cannot be reached, and no more may wait: a webhook is lost");
                    Dispatched::Dropped
                }
            }
        }
    }

    /// Waits for its turn and tells it. An error without a reason: its turn did not come.
    async fn first(&self, end: &JobEnd) -> Result<Option<JobRecord>, Option<Error>> {
        let (line, limit, started) = (&self.shared.line, self.shared.limits.first_try, clock::now());
        let turn = tokio::time::timeout(limit, self.shared.first_tries.acquire()).await;
        let waited = clock::now() - started;
        // One that others have kept waiting for long has too little time left to tell anything about Aldaba.
        if turn.is_err() || waited > limit / 2 || line.is_down() {
            return Err(None);
        }
        let rest = limit.saturating_sub(waited);
        let told = self.shared.tell(end, Retries::none().timeout(rest).total(rest)).await;
        line.note_reached(!told.as_ref().is_err_and(is_outage));
        line.asks_for(told.as_ref().err().and_then(Error::retry_after));
        told.map_err(Some)
    }

    /// Waits until everything that is being retried has been accepted, but not longer than `limit`; what is left then
    /// is given up. From now on nothing is retried any more.
    pub async fn shutdown(&self, limit: Duration) -> Leftover {
        let line = &self.shared.line;
        line.close();
        self.shared.work_goes_on(None);
        // Its end is seen below: the line is empty or it is not.
        let _ = tokio::time::timeout(limit, line.emptied()).await;
        let left = line.give_up();
        if !left.is_empty() {
            tracing::error!(count = left.len(), "ends of jobs are given up: Aldaba was not reached in time");
        }
        Leftover { jobs: left }
    }

    /// What became of all that was dispatched.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        self.shared.line.stats()
    }
}

/// An end that nobody has taken or refused yet. Whoever drops it leaves it to the background.
struct Untold<'a> {
    shared: &'a Arc<Shared>,
    /// Where it was first dispatched.
    runtime: Option<Handle>,
    end: Option<JobEnd>,
}

impl Untold<'_> {
    fn waiting(&mut self) -> Option<Box<Waiting>> {
        let give_up_after = self.shared.limits.give_up_after;
        self.end.take().map(|end| Waiting::new(end, clock::now(), give_up_after))
    }

    /// None: Aldaba is known to be away, and it waits with the others.
    fn end_while_aldaba_is_up(&mut self) -> Option<&JobEnd> {
        if self.shared.line.is_down() {
            let waiting = self.waiting()?;
            match self.shared.line.join_if_down(waiting, &self.shared.limits) {
                Ok(()) => self.shared.work_goes_on(self.runtime.as_ref()),
                Err(waiting) => self.end = Some(waiting.end),
            }
        }
        self.end.as_ref()
    }

    /// `false`: no more may wait, and it is lost.
    fn joins_the_line(&mut self) -> bool {
        let Some(waiting) = self.waiting() else { return false };
        let joined = self.shared.line.join(waiting, &self.shared.limits);
        self.shared.work_goes_on(self.runtime.as_ref());
        joined
    }
}

impl Drop for Untold<'_> {
    fn drop(&mut self) {
        if self.end.is_none() {
            return;
        }
        if self.joins_the_line() {
            tracing::warn!(
                "nobody waits for a dispatch any more; the end of the job is told in the background"
            );
        } else {
            tracing::error!("nobody waits for a dispatch any more, and no more may wait: a webhook is lost");
        }
    }
}

/// Without what waits: results and URLs may be secret.
impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { app, limits, .. } = &*self.shared;
        f.debug_struct("Dispatcher")
            .field("app", app)
            .field("limits", limits)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
