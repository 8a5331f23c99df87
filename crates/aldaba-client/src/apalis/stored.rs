//! Whether the end of a job is in its queue.

use apalis_core::backend::FetchById;
use apalis_core::error::BoxDynError;
use apalis_core::task::Task;
use apalis_core::task::status::Status;
use apalis_core::task::task_id::TaskId;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How soon the queue is asked again, at first; then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// And never longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How long an end may take to be stored. A worker with much in its memory can take hours; one that is dead never does.
const MOST_WAIT: Duration = Duration::from_secs(24 * 3600);

type Ask = dyn Fn(TaskId) -> BoxFuture<'static, Result<Option<Status>, BoxDynError>> + Send + Sync;

/// A queue that says what it has stored.
#[derive(Clone)]
pub(super) struct JobQueue {
    ask: Arc<Ask>,
}

/// What a queue has stored of a job that has ended.
#[derive(Debug, PartialEq, Eq)]
enum StoredEnd {
    /// The end that was seen.
    Same,
    /// Another end: somebody else has run the job, too.
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

    /// Waits until the end of a job is stored. `false` if that end never will be.
    pub(super) async fn has(&self, id: &TaskId, end: &Status) -> bool {
        let waited = tokio::time::timeout(MOST_WAIT, self.found(id, end)).await;
        match waited {
            Ok(StoredEnd::Same) => return true,
            Ok(_) => tracing::info!(job = %id, "another worker has run this job; this end is not told"),
            Err(_) => {
                tracing::warn!(job = %id, "the end of this job was never stored; no webhook tells of it");
            }
        }
        false
    }

    async fn found(&self, id: &TaskId, end: &Status) -> StoredEnd {
        let mut wait = FIRST_WAIT;
        loop {
            match (self.ask)(id.clone()).await {
                Ok(stored) => match found(stored.as_ref(), end) {
                    StoredEnd::Nothing => {}
                    there => return there,
                },
                Err(error) => tracing::warn!(job = %id, %error, "the queue does not say what it has stored"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

fn found(stored: Option<&Status>, end: &Status) -> StoredEnd {
    match stored {
        Some(status) if status == end => StoredEnd::Same,
        Some(Status::Done | Status::Failed | Status::Killed) => StoredEnd::Other,
        Some(_) => StoredEnd::Nothing,
        // A queue removes only what has ended.
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
