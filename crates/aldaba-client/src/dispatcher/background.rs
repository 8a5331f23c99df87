//! What is told later, and what is asked of Aldaba at all.

use super::builder::{DispatcherBuilder, Limits};
use super::line::{Line, Waiting};
use crate::api::{JobEnd, JobRecord, JobStatus};
use crate::retry::Retries;
use crate::{Client, Error, clock};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// One request of the background may take so long.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);

/// What the handles of a dispatcher share.
pub(super) struct Shared {
    client: Client,
    pub(super) app: String,
    pub(super) limits: Limits,
    pub(super) line: Line,
    /// The first tries that may be made now.
    pub(super) first_tries: Semaphore,
}

impl Shared {
    pub(super) fn new(DispatcherBuilder { client, app, limits }: DispatcherBuilder) -> Self {
        let first_tries = Semaphore::new(limits.first_tries_at_once.min(Semaphore::MAX_PERMITS));
        Self { client, app, limits, line: Line::default(), first_tries }
    }

    pub(super) async fn tell(&self, end: &JobEnd, retries: Retries) -> Result<Option<JobRecord>, Error> {
        let client = self.client.with_retries(retries).idempotent(&key(end));
        client.app(&self.app).jobs().tell(end).await
    }

    /// Sees to it that somebody works on what waits: on this runtime, or on the one that is given. Without either
    /// it waits for whoever comes next.
    pub(super) fn work_goes_on(self: &Arc<Self>, otherwise: Option<&Handle>) {
        let here = Handle::try_current().ok();
        if let Some(runtime) = here.as_ref().or(otherwise)
            && self.line.claim()
        {
            let worker = runtime.spawn(Arc::clone(self).work());
            self.line.worked_by(worker.abort_handle());
        }
    }

    /// Tells what waits until nothing waits any more: one at a time until Aldaba has taken one, then several.
    async fn work(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            // The first try has just failed: a pause comes first, too.
            failures += 1;
            self.line.pause(self.limits.pauses.background_pause(failures, clock::chance())).await;
            let (mut at_once, mut goes_on) = (1, true);
            let mut trying = FuturesUnordered::new();
            loop {
                while goes_on
                    && trying.len() < at_once
                    && let Some(waiting) = self.line.take(clock::now())
                {
                    trying.push(self.try_again(waiting));
                }
                match trying.next().await {
                    Some(true) => (failures, at_once) = (0, self.limits.first_tries_at_once),
                    Some(false) => goes_on = false,
                    None => break,
                }
            }
            if self.line.leave() {
                return;
            }
        }
    }

    /// `false`: it waits on.
    async fn try_again(&self, waiting: Arc<Waiting>) -> bool {
        let once = Retries::none().timeout(BACKGROUND_TIMEOUT).total(BACKGROUND_TIMEOUT);
        let told = AssertUnwindSafe(self.tell(&waiting.end, once)).catch_unwind().await;
        match told {
            Ok(Ok(_)) => {
                self.line.note_reached(true);
                self.line.settled(&waiting, true);
            }
            Ok(Err(error)) if error.is_temporary() => {
                tracing::debug!(%error, "Aldaba still does not take the end of a job");
                self.line.note_reached(!is_outage(&error));
                // Another one may fare better: perhaps it is this one that cannot be taken.
                self.line.to_the_end(&waiting);
                self.line.asks_for(error.retry_after());
                return false;
            }
            Ok(Err(error)) => {
                self.line.note_reached(true);
                log_refusal(&waiting.end, &error);
                self.line.settled(&waiting, false);
            }
            Err(panic) => {
                log_refusal(&waiting.end, &unexpected(&*panic));
                self.line.settled(&waiting, false);
            }
        }
        true
    }
}

/// Whether another end would fare the same now: Aldaba is not there, somebody else answers, or it is busy.
pub(super) fn is_outage(error: &Error) -> bool {
    match error {
        Error::Api { status, .. } => matches!(status, 429 | 502..=504 | 507),
        Error::Request { .. } => false,
        _ => true,
    }
}

/// Loud: nobody is told of this end.
pub(super) fn log_refusal(end: &JobEnd, error: &Error) {
    let job = &end.job_id;
    if error.status() == Some(413) {
        let bytes = serde_json::to_vec(end).map_or(0, |json| json.len());
        tracing::error!(job, bytes, %error, "the result of a job is too large for Aldaba: no webhook tells of its end");
    } else {
        tracing::error!(job, %error, "Aldaba does not take the end of a job: no webhook tells of it");
    }
}

/// What to say of a panic. What it says itself shows best whose fault it is.
pub(super) fn unexpected(panic: &(dyn std::any::Any + Send)) -> Error {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words");
    let detail = format!(
        "dispatching panicked ({words}). It needs a tokio runtime with IO and time enabled; where it has one, this \
         is a bug of aldaba-client"
    );
    Error::Request { detail }
}

/// The same for every time that a job ends so; the application is in the path.
fn key(end: &JobEnd) -> String {
    let status = end.status.map_or("", JobStatus::as_str);
    format!("job-{status}-{}", utf8_percent_encode(&end.job_id, NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Job;

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

    #[test]
    fn a_panic_is_told_with_its_own_words() {
        let panic = std::panic::catch_unwind(|| panic!("the abacus broke")).unwrap_err();
        assert!(unexpected(&*panic).to_string().contains("the abacus broke"));
    }
}
