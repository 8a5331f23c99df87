//! Webhooks for the end of jobs that [apalis](https://docs.rs/apalis) runs. Needs the feature `apalis`.
//!
//! ```ignore
//! let webhooks = JobWebhooks::after_stored(dispatcher, storage.clone());
//! let worker = WorkerBuilder::new("emails")
//!     .backend(storage)
//!     .layer(webhooks.clone()) // first, so that it is around all others
//!     .retry(RetryPolicy::retries(2))
//!     .build(send_email);
//! worker.run().await?;
//! webhooks.finish(Duration::from_secs(10)).await;
//! ```
//!
//! A job names its webhook URL and its type by [`WebhookJob`]. Its id is the task's; the result is the handler's return
//! value as JSON; the error is the text of the handler's error, without the text that apalis adds.
//!
//! The status is the one that the queue stores, because it decides whether the job runs again. apalis takes it from the
//! handler, inside all layers. A layer of yours that turns a failure into a success, or the reverse, does not change it.
//! The webhook has the queue's status, and a result or an error only if it agrees with that. Such a job is reported as
//! `completed` without a result, or as `failed` with an error that names the layer's change.
//!
//! # One webhook, at the end
//!
//! A job has ended when its queue does not run it again. The queue decides by the task's status and attempts, and so does
//! this layer: `Done` is completed, `Killed` is failed (an [`AbortError`]), and `Failed` is failed after the task's last
//! attempt (`max_attempts`, 25 by default). An earlier failed run returns to the queue and is not reported. Retries
//! within a worker (`.retry(…)`) are one run here, because the layer is around them.
//!
//! # After the end is stored
//!
//! apalis calls nothing after an end is stored. A layer's future, an acknowledger (`ack_with`) and the worker's events
//! all come *before*: the backend's own layer, outside of every user's layer, puts the end into a channel, and the
//! backend writes it at its next poll. That takes milliseconds in an idle worker, and much longer with a small
//! `concurrency` and a large batch: apalis writes nothing while tasks of a batch wait in its memory. A write can also
//! have no effect, if the queue has given up the worker.
//!
//! So [`JobWebhooks::after_stored`] polls the backend ([`FetchById`]) until it returns the end that this worker has seen,
//! and then dispatches. It polls only for jobs with a URL, frequently at first and then once a second. An end that is
//! never stored is not reported: the queue runs such a job again, and that run is reported.
//!
//! # Crashes
//!
//! | killed | `after_stored` | `before_stored` |
//! | --- | --- | --- |
//! | before the job has ended | the queue runs it again, one webhook | the same |
//! | ended, not stored | the queue runs it again, one webhook | the same: Aldaba takes a job's end once, by its id and status |
//! | stored, not dispatched | **no webhook**: the queue is done with the job | cannot be: it was dispatched before |
//!
//! [`JobWebhooks::before_stored`] closes the last gap at a price: the webhook may arrive before the end is stored, and if
//! the worker is killed in between, the job runs again after its webhook. If the second run ends differently, that is
//! reported too. It also requires an answer of Aldaba: a dispatch that is retried in the background
//! ([`Dispatched::Retrying`](crate::Dispatched::Retrying)) is in memory only, in both cases.
//!
//! # Notes
//!
//! - Add the layer first. Inside `.retry(…)` it would see every attempt; inside `.timeout(…)` it would not see the end.
//! - A panic ends the worker, unless there is `.catch_panic()`; then it is an ordinary failure. apalis itself would leave
//!   such a task, and one that `.timeout(…)` has cancelled, as `Running` while the worker lives. The layer sets the status
//!   that apalis sets for the same error elsewhere, with or without a webhook.
//! - A layer that rejects a job before its handler would leave it `Queued` while the worker lives. This layer sets the
//!   status of the error here too: an `AbortError` ends the job, which is reported; after any other error the queue retries
//!   it as long as it is rejected, because apalis counts no attempt.
//! - `RetryAfterError` and `DeferredError` do not end a job: apalis makes such a task `Pending`. A bug of apalis-sqlite 1.0
//!   leaves it pending forever: it does not unlock the task, and fetches only unlocked ones. On SQLite return an ordinary
//!   error, after which the queue retries; PostgreSQL fetches such a task again immediately.
//! - Dispatching needs tokio; a worker on another runtime cannot use this layer.
//!
//! [`AbortError`]: apalis_core::error::AbortError
//! [`FetchById`]: apalis_core::backend::FetchById

mod end;
mod layer;
mod stored;

pub use layer::{JobWebhooks, ReportEnds};

/// The webhook of a job. Implement it for the arguments of a task.
pub trait WebhookJob {
    /// The URL to notify when the job finished, if any.
    fn webhook_url(&self) -> Option<&str>;

    /// The type of the job, such as `email.send`.
    fn job_type(&self) -> &str;
}
