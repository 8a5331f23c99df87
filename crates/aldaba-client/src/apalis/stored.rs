//! Polls a queue until the end of a job is stored.

use apalis_core::backend::FetchById;
use apalis_core::error::BoxDynError;
use apalis_core::task::Task;
use apalis_core::task::status::Status;
use apalis_core::task::task_id::TaskId;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The first delay between two polls; it doubles each time.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(5);
/// The maximum delay between two polls.
const MAX_POLL_DELAY: Duration = Duration::from_secs(1);
/// How long an end may take to be stored. A worker with many tasks in memory can take hours; a dead one never stores it.
const STORE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

type Ask = dyn Fn(TaskId) -> BoxFuture<'static, Result<Option<Status>, BoxDynError>> + Send + Sync;

/// A queue that can be polled.
#[derive(Clone)]
pub(super) struct JobQueue {
    ask: Arc<Ask>,
}

/// The end of a job that a queue has stored.
#[derive(Debug, PartialEq, Eq)]
enum StoredEnd {
    /// The end that this worker has seen.
    Same,
    /// Another end: another worker has run the job too.
    Other,
    /// No end yet.
    Nothing,
}

impl JobQueue {
    pub(super) fn of<B, Compact>(backend: B) -> Self
    where
        B: FetchById<Task = Task<Compact>> + Clone + Send + Sync + 'static,
        Compact: Send + 'static,
    {
        let ask = move |id: TaskId| -> BoxFuture<'static, _> {
            let mut backend = backend.clone();
            Box::pin(async move {
                let task = backend.fetch_by_id(&id).await?;
                Ok(task.map(|task| task.status()))
            })
        };
        Self { ask: Arc::new(ask) }
    }

    /// Waits until the end of a job is stored. `false` if it never will be.
    pub(super) async fn has(&self, id: &TaskId, end: &Status) -> bool {
        let waited = tokio::time::timeout(STORE_TIMEOUT, self.found(id, end)).await;
        match waited {
            Ok(StoredEnd::Same) => return true,
            Ok(_) => tracing::info!(job = %id, "another worker has run this job; this end is not reported"),
            Err(_) => {
                tracing::warn!(job = %id, "the queue never stored the end of this job; no webhook is sent");
            }
        }
        false
    }

    async fn found(&self, id: &TaskId, end: &Status) -> StoredEnd {
        let mut wait = FIRST_POLL_DELAY;
        loop {
            match (self.ask)(id.clone()).await {
                Ok(stored) => match found(stored.as_ref(), end) {
                    StoredEnd::Nothing => {}
                    there => return there,
                },
                Err(error) => tracing::warn!(job = %id, %error, "the queue cannot be read; retrying"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_POLL_DELAY);
        }
    }
}

fn found(stored: Option<&Status>, end: &Status) -> StoredEnd {
    match stored {
        Some(status) if status == end => StoredEnd::Same,
        Some(Status::Done | Status::Failed | Status::Killed) => StoredEnd::Other,
        Some(_) => StoredEnd::Nothing,
        // A queue removes only jobs that have ended.
        None => StoredEnd::Same,
    }
}

impl fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobQueue").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{JobQueue, Status, StoredEnd, found};
    use apalis_core::task::task_id::TaskId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn only_the_end_that_was_seen_counts() {
        assert_eq!(found(Some(&Status::Done), &Status::Done), StoredEnd::Same);
        assert_eq!(found(Some(&Status::Failed), &Status::Done), StoredEnd::Other);
        assert_eq!(found(Some(&Status::Done), &Status::Killed), StoredEnd::Other);
        for status in [Status::Pending, Status::Queued, Status::Running] {
            assert_eq!(found(Some(&status), &Status::Done), StoredEnd::Nothing);
        }
    }

    #[test]
    fn a_job_that_is_gone_from_the_queue_has_ended() {
        assert_eq!(found(None, &Status::Done), StoredEnd::Same);
    }

    #[tokio::test]
    async fn a_queue_is_asked_until_it_has_the_end_also_where_it_cannot_answer() {
        let asked = Arc::new(AtomicUsize::new(0));
        let queue = JobQueue {
            ask: Arc::new({
                let asked = Arc::clone(&asked);
                move |_| {
                    let time = asked.fetch_add(1, Ordering::Relaxed);
                    Box::pin(async move {
                        match time {
                            0 => Ok(Some(Status::Queued)),
                            1 => Err("the database is locked".into()),
                            2 => Ok(Some(Status::Running)),
                            _ => Ok(Some(Status::Done)),
                        }
                    })
                }
            }),
        };
        assert!(queue.has(&TaskId::from_int(1), &Status::Done).await);
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }
}
