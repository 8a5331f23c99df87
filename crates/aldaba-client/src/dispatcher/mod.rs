//! Tells the end of jobs, and never gets in their way.

mod line;

use crate::api::{Job, JobEnd, JobRecord, JobStatus};
use crate::retry::Retries;
use crate::{Client, Error, clock};
use futures_util::FutureExt;
use line::{Line, Place, Waiting};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Tells the end of jobs through an application of Aldaba. A handle: clones share everything.
///
/// A repeat is one webhook: the idempotency key of a job's end is made of the job's id and how it ended, and of
/// nothing else. A worker that crashes after a job, runs it again and tells its end again tells it once, as long as
/// it has the same token and Aldaba remembers the key (24 hours, unless its operator says otherwise). So a job that
/// is to be told of anew needs a new id.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    app: String,
    limits: Limits,
    line: Line,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    first_try: Duration,
    give_up_after: Duration,
    most_waiting: usize,
    most_bytes: usize,
    pauses: Retries,
}

/// One request of the background may take so long.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Makes a [`Dispatcher`].
#[derive(Clone, Debug)]
pub struct DispatcherBuilder {
    client: Client,
    app: String,
    limits: Limits,
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
    /// Lost: too many waited, it took too long, or the dispatcher was shut down.
    pub dropped: u64,
}

impl Dispatcher {
    /// For an application: its id or uid.
    #[must_use]
    pub fn builder(client: Client, app: impl Into<String>) -> DispatcherBuilder {
        let limits = Limits {
            first_try: Duration::from_secs(2),
            give_up_after: Duration::from_secs(3600),
            most_waiting: 1000,
            most_bytes: 64 << 20,
            pauses: Retries::default().attempts(u32::MAX).pauses(FIRST_PAUSE, LONGEST_PAUSE),
        };
        DispatcherBuilder { client, app: app.into(), limits }
    }

    /// Tells that a job has ended. Never an error, never a panic: a job does not fail because of its webhook. It
    /// takes as long as the first try at most.
    pub async fn dispatch(
        &self,
        job: &Job,
        status: JobStatus,
        result: Option<Value>,
        error: Option<String>,
    ) -> Dispatched {
        let completed_at = Some(clock::timestamp());
        self.dispatch_end(JobEnd { result, error, completed_at, ..JobEnd::new(job, status) }).await
    }

    /// The same, for an end that knows when it was.
    pub(crate) async fn dispatch_end(&self, end: JobEnd) -> Dispatched {
        if end.webhook_url.as_deref().is_none_or(str::is_empty) {
            return Dispatched::NoUrl;
        }
        let first = AssertUnwindSafe(self.first(end)).catch_unwind().await;
        first.unwrap_or_else(|_| {
            self.shared.line.refused();
            let detail = "the dispatcher needs a tokio runtime with IO and time enabled".to_owned();
            Dispatched::Refused(Error::Request { detail })
        })
    }

    async fn first(&self, end: JobEnd) -> Dispatched {
        let limits = &self.shared.limits;
        let once = Retries::none().timeout(limits.first_try).total(limits.first_try);
        match self.shared.tell(&end, once).await {
            Ok(record) => {
                self.shared.line.accepted();
                record.map_or(Dispatched::NoUrl, |record| Dispatched::Accepted(Box::new(record)))
            }
            Err(error) if error.is_temporary() => {
                let until = clock::now() + limits.give_up_after;
                let place = self.shared.line.join(Waiting::new(end, until), limits);
                if place == Place::Full {
                    tracing::error!(%error, "Aldaba cannot be reached, and no more may wait: a webhook is lost");
                    return Dispatched::Dropped;
                }
                tracing::warn!(%error, "Aldaba cannot be reached; the end of a job is told later");
                if place == Place::First {
                    let worker = tokio::spawn(Arc::clone(&self.shared).work());
                    self.shared.line.worked_by(worker.abort_handle());
                }
                Dispatched::Retrying
            }
            Err(error) => {
                self.shared.line.refused();
                tracing::error!(%error, "Aldaba does not take the end of a job");
                Dispatched::Refused(error)
            }
        }
    }

    /// Waits until everything that is being retried has been accepted, but not longer than `limit`; what is left then
    /// is given up. From now on nothing is retried any more.
    pub async fn shutdown(&self, limit: Duration) -> Leftover {
        let line = &self.shared.line;
        line.close();
        // Its end is seen below: the line is empty or it is not.
        let _ = tokio::time::timeout(limit, line.emptied()).await;
        let left = line.give_up();
        if !left.is_empty() {
            tracing::error!(count = left.len(), "ends of jobs are given up: Aldaba was not reached in time");
        }
        Leftover { jobs: left.into_iter().map(|end| job_of(&end)).collect() }
    }

    /// What became of all that was dispatched.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        self.shared.line.stats()
    }
}

fn job_of(end: &JobEnd) -> (Job, JobStatus) {
    let job =
        Job { id: end.job_id.clone(), job_type: end.job_type.clone(), webhook_url: end.webhook_url.clone() };
    (job, end.status.unwrap_or(JobStatus::Failed))
}

/// The same for every time that a job ends so; the application is in the path.
fn key(end: &JobEnd) -> String {
    let status = end.status.map_or("", JobStatus::as_str);
    format!("job-{status}-{}", utf8_percent_encode(&end.job_id, NON_ALPHANUMERIC))
}

impl Shared {
    async fn tell(&self, end: &JobEnd, retries: Retries) -> Result<Option<JobRecord>, Error> {
        let client = self.client.with_retries(retries).idempotent(&key(end));
        client.app(&self.app).jobs().tell(end).await
    }

    /// Tells what waits, one after the other, until nothing waits any more. There is one of these at most.
    async fn work(self: Arc<Self>) {
        let once = Retries::none().timeout(BACKGROUND_TIMEOUT).total(BACKGROUND_TIMEOUT);
        let mut failures = 0;
        loop {
            // The first try has just failed: a pause comes first, too.
            failures += 1;
            self.line.pause(self.limits.pauses.background_pause(failures, clock::chance())).await;
            while let Some(waiting) = self.line.head(clock::now()) {
                let told = AssertUnwindSafe(self.tell(&waiting.end, once)).catch_unwind().await;
                match told {
                    Ok(Ok(_)) => {
                        failures = 0;
                        self.line.settled(&waiting, true);
                    }
                    Ok(Err(error)) if error.is_temporary() => {
                        tracing::debug!(%error, "Aldaba still cannot be reached");
                        // Another one may fare better: perhaps it is this one that cannot be taken.
                        self.line.to_the_end(&waiting);
                        if let Error::Api { retry_after: Some(after), .. } = error {
                            self.line.pause(after.min(LONGEST_PAUSE)).await;
                        }
                        break;
                    }
                    Ok(Err(error)) => {
                        tracing::error!(%error, "Aldaba does not take the end of a job");
                        self.line.settled(&waiting, false);
                    }
                    Err(_) => self.line.settled(&waiting, false),
                }
            }
            if self.line.leave() {
                return;
            }
        }
    }
}

impl DispatcherBuilder {
    /// How long the first try may take: for so long a job may have to wait for its dispatch. 2 s if not given.
    #[must_use]
    pub fn first_try(mut self, first_try: Duration) -> Self {
        self.limits.first_try = first_try;
        self
    }

    /// For how long it is tried again to reach Aldaba. An hour if not given.
    #[must_use]
    pub fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.limits.give_up_after = give_up_after;
        self
    }

    /// How many may wait in memory to be tried again. 1,000 if not given.
    #[must_use]
    pub fn most_waiting(mut self, most_waiting: usize) -> Self {
        self.limits.most_waiting = most_waiting;
        self
    }

    /// How many bytes those may have that wait. 64 MiB if not given.
    #[must_use]
    pub fn most_bytes(mut self, most_bytes: usize) -> Self {
        self.limits.most_bytes = most_bytes;
        self
    }

    /// The pause before the first try in the background, doubled after each that fails, up to `longest`. 500 ms and
    /// 30 s if not given.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.limits.pauses = self.limits.pauses.pauses(first, longest);
        self
    }

    /// The dispatcher.
    #[must_use]
    pub fn build(self) -> Dispatcher {
        let Self { client, app, limits } = self;
        Dispatcher { shared: Arc::new(Shared { client, app, limits, line: Line::default() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_end_is_the_job_and_how_it_ended() {
        let end = |id: &str, status| {
            let job = Job { id: id.into(), job_type: "a".into(), webhook_url: None };
            key(&JobEnd { completed_at: Some(clock::timestamp()), ..JobEnd::new(&job, status) })
        };
        assert_eq!(end("1", JobStatus::Completed), end("1", JobStatus::Completed));
        assert_ne!(end("1", JobStatus::Completed), end("1", JobStatus::Failed));
        assert_ne!(end("a-1", JobStatus::Completed), end("a_1", JobStatus::Completed));
        assert!(end("ñ\n\u{0} ", JobStatus::Failed).bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
