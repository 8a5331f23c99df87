//! The worker that retries in the background, and the request for one end of a job.

use super::builder::{DispatcherBuilder, Limits};
use super::retry_queue::{QueuedEnd, RetryQueue};
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

/// How long one background request may take.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);

/// What the handles of a dispatcher share.
pub(super) struct DispatcherState {
    client: Client,
    pub(super) app: String,
    pub(super) limits: Limits,
    pub(super) queue: RetryQueue,
    /// Limits the first requests that are made at the same time.
    pub(super) first_tries: Semaphore,
}

impl DispatcherState {
    pub(super) fn new(DispatcherBuilder { client, app, limits }: DispatcherBuilder) -> Self {
        let first_tries = Semaphore::new(limits.first_tries_at_once.min(Semaphore::MAX_PERMITS));
        Self { client, app, limits, queue: RetryQueue::default(), first_tries }
    }

    pub(super) async fn send(&self, end: &JobEnd, retries: Retries) -> Result<Option<JobRecord>, Error> {
        let client = self.client.with_retries(retries).idempotent(&key(end));
        client.app(&self.app).jobs().tell(end).await
    }

    /// Starts the worker if there is work and none runs: on the current runtime, else on the given one. Without
    /// either the next call starts it.
    pub(super) fn ensure_worker(self: &Arc<Self>, otherwise: Option<&Handle>) {
        let here = Handle::try_current().ok();
        if let Some(runtime) = here.as_ref().or(otherwise)
            && self.queue.claim_worker()
        {
            let worker = runtime.spawn(Arc::clone(self).work());
            self.queue.set_worker(worker.abort_handle());
        }
    }

    /// Sends queued ends until the queue is empty: one at a time until Aldaba has accepted one, then several.
    async fn work(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            // The first request has just failed, so a pause comes first.
            failures += 1;
            self.queue.pause(self.limits.pauses.background_pause(failures, clock::chance())).await;
            let (mut at_once, mut goes_on) = (1, true);
            let mut trying = FuturesUnordered::new();
            loop {
                while goes_on
                    && trying.len() < at_once
                    && let Some(waiting) = self.queue.take(clock::now())
                {
                    trying.push(self.try_again(waiting));
                }
                match trying.next().await {
                    Some(true) => (failures, at_once) = (0, self.limits.first_tries_at_once),
                    Some(false) => goes_on = false,
                    None => break,
                }
            }
            if self.queue.finish_if_empty() {
                return;
            }
        }
    }

    /// Sends one queued end again. `false`: it stays in the queue.
    async fn try_again(&self, waiting: Arc<QueuedEnd>) -> bool {
        let once = Retries::none().timeout(BACKGROUND_TIMEOUT).total(BACKGROUND_TIMEOUT);
        let sent = AssertUnwindSafe(self.send(&waiting.end, once)).catch_unwind().await;
        match sent {
            Ok(Ok(_)) => {
                self.queue.note_reached(true);
                self.queue.settled(&waiting, true);
            }
            Ok(Err(error)) if error.is_temporary() => {
                tracing::debug!(%error, "the end of a job was not accepted; retrying");
                self.queue.note_reached(!is_outage(&error));
                // The reason may be this end, so another one is tried next.
                self.queue.move_to_back(&waiting);
                self.queue.delay_by(error.retry_after());
                return false;
            }
            Ok(Err(error)) => {
                self.queue.note_reached(true);
                log_refusal(&waiting.end, &error);
                self.queue.settled(&waiting, false);
            }
            Err(panic) => {
                log_refusal(&waiting.end, &unexpected(&*panic));
                self.queue.settled(&waiting, false);
            }
        }
        true
    }
}

/// Whether another end would fail in the same way now: Aldaba is unreachable or busy, or another server answers.
pub(super) fn is_outage(error: &Error) -> bool {
    match error {
        Error::Api { status, .. } => matches!(status, 429 | 502..=504 | 507),
        Error::Request { .. } => false,
        _ => true,
    }
}

/// Logs an error, because no webhook is sent for this end.
pub(super) fn log_refusal(end: &JobEnd, error: &Error) {
    let job = &end.job_id;
    if error.status() == Some(413) {
        let bytes = serde_json::to_vec(end).map_or(0, |json| json.len());
        tracing::error!(job, bytes, %error, "the result of a job is too large; no webhook is sent for its end");
    } else {
        tracing::error!(job, %error, "Aldaba refused the end of a job; no webhook is sent for it");
    }
}

/// An error with the message of a panic, which shows best where it comes from.
pub(super) fn unexpected(panic: &(dyn std::any::Any + Send)) -> Error {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words");
    let detail = format!(
        "dispatching panicked ({words}). It needs a tokio runtime with IO and time enabled; where it has one, this \
         is a bug of aldaba-client"
    );
    Error::Request { detail }
}

/// The idempotency key: the same for every repeat of this end. The application is in the path.
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
    fn a_panic_is_reported_with_its_message() {
        let panic = std::panic::catch_unwind(|| panic!("the abacus broke")).unwrap_err();
        assert!(unexpected(&*panic).to_string().contains("the abacus broke"));
    }
}
