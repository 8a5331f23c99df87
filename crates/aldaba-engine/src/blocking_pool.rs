//! Runs blocking work on threads of its own, a few jobs at a time.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// A pool for one kind of work. Each kind has its own pool, so that a flood of one delays no other.
#[derive(Clone, Debug)]
pub(crate) struct BlockingPool(Arc<Semaphore>);

impl BlockingPool {
    /// Uses half of the processors and leaves the others to the runtime.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_permits((processors / 2).max(1))
    }

    /// Runs at most `permits` jobs at once.
    pub(crate) fn with_permits(permits: usize) -> Self {
        Self(Arc::new(Semaphore::new(permits)))
    }

    /// How many jobs may start now.
    pub(crate) fn permits(&self) -> usize {
        self.0.available_permits()
    }

    /// Runs `work`, in order of arrival. It keeps its permit until it is done, even if the caller gives up.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let permit = self.0.clone().acquire_owned().await;
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        match working.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn no_more_jobs_run_at_once_than_there_are_permits() {
        let pool = BlockingPool::new();
        let permits = pool.0.available_permits();
        let (now, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = |number: usize| {
            let (pool, now, max) = (pool.clone(), now.clone(), max.clone());
            async move {
                pool.run(move || {
                    max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    number
                })
                .await
            }
        };
        let done = futures_util::future::join_all((0..20).map(work)).await;
        assert_eq!(done, (0..20).collect::<Vec<_>>());
        assert!(max.load(Ordering::SeqCst) <= permits);
    }

    #[tokio::test]
    async fn a_cancelled_caller_frees_no_permit_before_its_job_is_done() {
        let pool = BlockingPool::with_permits(1);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(move || ended.recv().is_ok()).await }
        });
        while pool.0.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        first.abort();
        assert!(first.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(pool.0.available_permits(), 0);
        end.send(()).unwrap();
        assert_eq!(pool.run(|| 7).await, 7);
    }
}
