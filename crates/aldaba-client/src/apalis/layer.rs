//! The layer around a worker's jobs that reports their ends.

use super::WebhookJob;
use super::end::{End, Run};
use super::stored::JobQueue;
use crate::{Dispatcher, Job, JobEnd, Leftover, clock};
use apalis_core::backend::FetchById;
use apalis_core::error::BoxDynError;
use apalis_core::layers::{Layer, Service};
use apalis_core::task::Task;
use apalis_core::task::status::Status;
use apalis_core::task::task_id::TaskId;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The layer that reports the ends of a worker's jobs, [once and at the end](super). Clones share everything.
#[derive(Clone, Debug)]
pub struct JobWebhooks {
    dispatcher: Dispatcher,
    when: When,
    /// The number of ends that were seen and not dispatched yet.
    open: watch::Sender<usize>,
}

#[derive(Clone, Debug)]
enum When {
    BeforeStored,
    AfterStored { queue: JobQueue, runtime: Handle },
}

impl JobWebhooks {
    /// Reports an end after the queue has stored it. The layer polls `backend`, a clone of the worker's own.
    ///
    /// If a worker is killed between the two, the job is done and its webhook is never sent.
    /// [`before_stored`](Self::before_stored) has no such gap.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn after_stored<B, Compact>(dispatcher: Dispatcher, backend: B) -> Self
    where
        B: FetchById<Task = Task<Compact>> + Clone + Send + Sync + 'static,
        Compact: Send + 'static,
    {
        let (queue, runtime) = (JobQueue::of(backend), Handle::current());
        Self::new(dispatcher, When::AfterStored { queue, runtime })
    }

    /// Reports an end before the queue stores it: the job waits for Aldaba, up to the dispatcher's [first
    /// try](crate::DispatcherBuilder::first_try). Works with every backend.
    ///
    /// If a worker is killed between the two, the job runs again after its webhook was sent. A second end with the same
    /// status is not sent again while Aldaba remembers the idempotency key of the first.
    #[must_use]
    pub fn before_stored(dispatcher: Dispatcher) -> Self {
        Self::new(dispatcher, When::BeforeStored)
    }

    fn new(dispatcher: Dispatcher, when: When) -> Self {
        Self { dispatcher, when, open: watch::Sender::new(0) }
    }

    /// Waits after the end of the worker until all ends are stored and Aldaba has accepted them, up to `limit` for each.
    /// The remaining ends are lost with the process; those of the dispatcher are returned.
    pub async fn finish(&self, limit: Duration) -> Leftover {
        let mut open = self.open.subscribe();
        if tokio::time::timeout(limit, open.wait_for(|open| *open == 0)).await.is_err() {
            tracing::warn!(
                jobs = *self.open.borrow(),
                "the ends of jobs were not stored in time; no webhook is sent"
            );
        }
        self.dispatcher.shutdown(limit).await
    }

    /// Never an error: a job does not fail because of its webhook.
    async fn tell(&self, id: TaskId, stored_as: Status, end: JobEnd) {
        match &self.when {
            When::BeforeStored => self.dispatch(end).await,
            When::AfterStored { queue, runtime } => {
                let (this, queue, open) = (self.clone(), queue.clone(), Open::new(&self.open));
                runtime.spawn(async move {
                    if queue.has(&id, &stored_as).await {
                        this.dispatch(end).await;
                    }
                    drop(open);
                });
            }
        }
    }

    async fn dispatch(&self, end: JobEnd) {
        // The dispatcher logs failures.
        self.dispatcher.dispatch_end(end).await;
    }
}

/// Counts one end until it is dispatched.
struct Open(watch::Sender<usize>);

impl Open {
    fn new(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl<S> Layer<S> for JobWebhooks {
    type Service = ReportEnds<S>;

    fn layer(&self, inner: S) -> ReportEnds<S> {
        ReportEnds { inner, webhooks: self.clone() }
    }
}

/// Runs jobs and reports their ends. Created by [`JobWebhooks`].
#[derive(Clone, Debug)]
pub struct ReportEnds<S> {
    inner: S,
    webhooks: JobWebhooks,
}

impl<S, Args> Service<Task<Args>> for ReportEnds<S>
where
    Args: WebhookJob,
    S: Service<Task<Args>>,
    S::Response: Serialize + Send,
    S::Error: Into<BoxDynError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<S::Response, BoxDynError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, task: Task<Args>) -> Self::Future {
        let (run, job) = (Run::of(task.ctx()), job(&task));
        let (future, webhooks) = (self.inner.call(task), self.webhooks.clone());
        Box::pin(async move {
            let result = future.await.map_err(Into::into);
            if let Err(error) = &result {
                run.settle(error);
            }
            if let Some((id, job)) = job
                && let Some(End { status, result, error }) = run.end(&result)
            {
                // The time of the end, not of its storage.
                let completed_at = Some(clock::timestamp());
                let result = result.map(Into::into);
                let end = JobEnd { result, error, completed_at, ..JobEnd::new(&job, status) };
                webhooks.tell(id, run.status(), end).await;
            }
            result
        })
    }
}

/// The job of a task, if it has a webhook URL.
fn job<Args: WebhookJob>(task: &Task<Args>) -> Option<(TaskId, Job)> {
    let url = task.args.webhook_url().filter(|url| !url.is_empty())?.to_owned();
    let Some(id) = task.task_id() else {
        tracing::warn!(job_type = task.args.job_type(), "a job has no id; no webhook is sent");
        return None;
    };
    let job = Job { id: id.to_string(), job_type: task.args.job_type().to_owned(), webhook_url: Some(url) };
    Some((id.clone(), job))
}
