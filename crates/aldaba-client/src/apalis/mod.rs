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
//! A job says by [`WebhookJob`] where its webhook goes and what kind of job it is. Its id is the task's; the result is
//! what the handler returns, as JSON; the error is the error's own text, without what apalis puts around it.
//!
//! The status is the one that the queue stores, because it decides whether the job runs again. apalis takes it from the
//! handler, inside all layers. A layer of yours that makes a success of a failure, or the other way round, does not change
//! it: the webhook tells the queue's status, and a result or an error only where it agrees with that. Such a job is told
//! as `completed` without a result, or as `failed` with an error that says what a layer has done.
//!
//! # One webhook, at the end
//!
//! A job has ended when its queue does not run it again. The queue decides that by the task's status and attempts, and
//! so does this layer: `Done` is completed, `Killed` is failed (an [`AbortError`]), and `Failed` is
//! failed once as many attempts were made as the task has (`max_attempts`, 25 where a job does not say). A run that
//! fails before goes back into the queue, and nothing is told. Retries within a worker (`.retry(…)`) are one run here,
//! because the layer is around them.
//!
//! # After the end is stored
//!
//! apalis has no place that is called after an end is stored. A layer's future, an acknowledger (`ack_with`) and the
//! worker's events all come *before*: the backend's own layer, which is outside every layer of a user, puts the end into
//! a channel, and the backend writes it when it is polled the next time. That takes milliseconds for a worker that is
//! free, and much longer for one with a small `concurrency` and a large batch: apalis writes nothing while tasks of a
//! batch wait in its memory. A write can also have no effect at all, where the queue had given the worker up.
//!
//! So [`JobWebhooks::after_stored`] asks the backend ([`FetchById`]) until it gives the end back that this worker has
//! seen, and dispatches then. It asks for jobs with a URL only, a few times at first and then once a second. An end
//! that never gets there is not told: the queue runs such a job again, and that run is told.
//!
//! # What a crash does
//!
//! | killed | `after_stored` | `before_stored` |
//! | --- | --- | --- |
//! | before the job has ended | the queue runs it again, one webhook | the same |
//! | ended, not stored | the queue runs it again, one webhook | the same: Aldaba takes a job's end once, by its id and status |
//! | stored, not dispatched | **no webhook**: the queue is done with the job | cannot be: it was dispatched before |
//!
//! [`JobWebhooks::before_stored`] closes the last gap, and has a price: the webhook may be there before the end is
//! stored, and if the worker is killed in between, the job runs again after its webhook has gone out. A second run that
//! ends differently tells that, too. It also needs Aldaba to answer: a dispatch that is retried in the background
//! ([`Dispatched::Retrying`](crate::Dispatched::Retrying)) is in memory only, in both cases.
//!
//! # What else to know
//!
//! - Add the layer first. Inside `.retry(…)` it would see every attempt; inside `.timeout(…)` it would not see the end.
//! - A panic ends the worker, unless there is `.catch_panic()`; then it is a failure like any other. apalis itself would
//!   leave such a task, and one that `.timeout(…)` has cut off, as `Running` for as long as the worker lives. The layer
//!   gives it the status that apalis gives to the same error elsewhere, with or without a webhook.
//! - A layer that refuses a job before its handler is called would leave it `Queued` for as long as the worker lives. This
//!   layer gives it the status of the error here, too: with an `AbortError` that is its end, and it is told; with any
//!   other the queue tries it again, for as long as it is refused, because apalis counts no attempt.
//! - `RetryAfterError` and `DeferredError` are no ends: apalis makes such a task `Pending`. A mistake of apalis-sqlite 1.0
//!   leaves it so for ever: it forgets to unlock the task, and fetches only those that nobody has locked. On SQLite return
//!   an ordinary error, which the queue tries again; PostgreSQL fetches such a task again, at once.
//! - Dispatching needs tokio; a worker on another runtime cannot use this layer.
//!
//! [`AbortError`]: apalis_core::error::AbortError
//! [`FetchById`]: apalis_core::backend::FetchById

mod end;
mod layer;
mod stored;

pub use layer::{JobWebhooks, ReportEnds};

/// What a job says about its webhook. For the arguments of a task.
pub trait WebhookJob {
    /// Who wants to know how the job ended; nobody, if there is none.
    fn webhook_url(&self) -> Option<&str>;

    /// What kind of job it is, such as `email.send`.
    fn job_type(&self) -> &str;
}
