//! Work that takes long is done aside: by threads that nobody else waits for, a few at a time.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// A place for one kind of such work. Each kind has its own, so that whoever brings much of one holds up no other.
#[derive(Clone, Debug)]
pub(crate) struct BlockingPool(Arc<Semaphore>);

impl BlockingPool {
    /// For half of the processors: the others are for all that is not aside.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_permits((processors / 2).max(1))
    }

    /// For so many at once.
    pub(crate) fn with_permits(permits: usize) -> Self {
        Self(Arc::new(Semaphore::new(permits)))
    }

    /// How many are free, with nothing under way.
    pub(crate) fn permits(&self) -> usize {
        self.0.available_permits()
    }

    /// In the order in which they come. A place stays taken until its work is done, also where nobody waits for it any more.
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
            // The runtime is ending, and this with it.
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
    async fn no_more_is_done_at_once_than_there_are_places() {
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
    async fn whoever_gives_up_frees_no_place_before_the_work_is_done() {
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
