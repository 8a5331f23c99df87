//! Inspects large bodies on a blocking pool, fairly by organization and by source: a flood to one source or
//! organization delays another by one body at most.

use crate::blocking_pool::BlockingPool;
use aldaba_delivery::{OrgId, SourceId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Large bodies of one source that wait or are inspected. More are refused, because they would hold memory
/// for long.
const MAX_QUEUED_PER_SOURCE: usize = 32;

/// Clones share the queues.
#[derive(Clone, Debug)]
pub(crate) struct InspectionQueue {
    blocking_pool: BlockingPool,
    sources: FairQueues<SourceId>,
    /// Each holds the first waiting body of its sources' queues.
    organizations: FairQueues<OrgId>,
}

impl InspectionQueue {
    pub(crate) fn new(blocking_pool: BlockingPool) -> Self {
        // An organization that is alone may use all permits; the next one to come is served next.
        let permits = blocking_pool.permits();
        Self {
            blocking_pool,
            sources: FairQueues::new(1, MAX_QUEUED_PER_SOURCE),
            organizations: FairQueues::new(permits, usize::MAX),
        }
    }

    /// Runs `work` in its turn. `None`: the queue of this source is full. The permits are held until the
    /// work is done, even if the caller gives up.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        (org, source): (OrgId, SourceId),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let of_source = self.sources.join(source)?.wait().await;
        let of_organization = self.organizations.join(org)?.wait().await;
        let work = move || {
            let done = work();
            drop((of_organization, of_source));
            done
        };
        Some(self.blocking_pool.run(work).await)
    }
}

/// FIFO queues by key. Clones share the queues.
#[derive(Debug)]
struct FairQueues<K> {
    /// How many of one queue run at once.
    concurrency: usize,
    /// The capacity of one queue, running ones included.
    capacity: usize,
    queues: Arc<Mutex<HashMap<K, QueueState>>>,
}

#[derive(Debug)]
struct QueueState {
    concurrency: Arc<Semaphore>,
    len: usize,
}

impl<K: Copy + Eq + Hash> FairQueues<K> {
    fn new(concurrency: usize, capacity: usize) -> Self {
        Self { concurrency, capacity, queues: Arc::default() }
    }

    /// Joins a queue. `None`: it is full.
    fn join(&self, key: K) -> Option<QueueTicket<K>> {
        let mut queues = self.queues.lock();
        let new = || QueueState { concurrency: Arc::new(Semaphore::new(self.concurrency)), len: 0 };
        let queue = queues.entry(key).or_insert_with(new);
        if queue.len >= self.capacity {
            return None;
        }
        queue.len += 1;
        Some(QueueTicket { concurrency: queue.concurrency.clone(), queues: self.queues.clone(), key })
    }
}

impl<K> Clone for FairQueues<K> {
    fn clone(&self) -> Self {
        Self { concurrency: self.concurrency, capacity: self.capacity, queues: self.queues.clone() }
    }
}

/// A position in a queue, released on drop.
struct QueueTicket<K: Eq + Hash> {
    concurrency: Arc<Semaphore>,
    queues: Arc<Mutex<HashMap<K, QueueState>>>,
    key: K,
}

impl<K: Eq + Hash> QueueTicket<K> {
    /// Waits until this ticket may run.
    async fn wait(self) -> (Option<OwnedSemaphorePermit>, Self) {
        (self.concurrency.clone().acquire_owned().await.ok(), self)
    }
}

impl<K: Eq + Hash> Drop for QueueTicket<K> {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.len -= 1;
            if queue.len == 0 {
                queues.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The ids of a source and its organization.
    fn source(org: u8, number: u8) -> (OrgId, SourceId) {
        (OrgId::from_bytes([org; 20]), SourceId::from_bytes([number; 20]))
    }

    #[tokio::test]
    async fn a_flooded_source_makes_another_wait_for_one_body_and_not_for_all() {
        let inspections = InspectionQueue::new(BlockingPool::with_permits(1));
        let (end, ended) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |number: u8| {
            let order = order.clone();
            move || order.lock().push(number)
        };
        let mut tasks = Vec::new();
        let mut start = |number: u8, work: Box<dyn FnOnce() + Send>| {
            let inspections = inspections.clone();
            tasks.push(tokio::spawn(async move { inspections.run(source(1, number), work).await }));
        };
        start(1, Box::new(move || _ = ended.recv()));
        for _ in 1..MAX_QUEUED_PER_SOURCE {
            start(1, Box::new(note(1)));
        }
        tokio::task::yield_now().await;
        start(2, Box::new(note(2)));
        while inspections.sources.queues.lock().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(inspections.run(source(1, 1), || ()).await, None, "the queue is full");
        end.send(()).unwrap();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Some(()));
        }
        let position = order.lock().iter().position(|number| *number == 2).unwrap();
        assert!(position <= 1, "it came {position} others later");
        assert!(inspections.sources.queues.lock().is_empty(), "empty queues are removed");
    }

    #[tokio::test]
    async fn a_cancelled_caller_leaves_the_queue() {
        let inspections = InspectionQueue::new(BlockingPool::with_permits(1));
        let (end, ended) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let inspections = inspections.clone();
            async move { inspections.run(source(1, 1), move || _ = ended.recv()).await }
        });
        let second = tokio::spawn({
            let inspections = inspections.clone();
            async move { inspections.run(source(1, 1), || ()).await }
        });
        while inspections.sources.queues.lock().get(&source(1, 1).1).is_none_or(|queue| queue.len < 2) {
            tokio::task::yield_now().await;
        }
        second.abort();
        assert!(second.await.is_err());
        assert_eq!(inspections.sources.queues.lock()[&source(1, 1).1].len, 1);
        end.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Some(()));
        assert!(inspections.sources.queues.lock().is_empty());
    }

    #[tokio::test]
    async fn an_organization_with_many_flooded_sources_makes_another_wait_for_one_body() {
        let inspections = InspectionQueue::new(BlockingPool::with_permits(1));
        let (end, ended) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        let mut start = |key: (OrgId, SourceId), work: Box<dyn FnOnce() + Send>| {
            let inspections = inspections.clone();
            tasks.push(tokio::spawn(async move { inspections.run(key, work).await }));
        };
        let note = |number: u8| {
            let order = order.clone();
            Box::new(move || order.lock().push(number))
        };
        start(source(1, 0), Box::new(move || _ = ended.recv()));
        (1..100).for_each(|number| start(source(1, number), note(1)));
        while inspections.sources.queues.lock().len() < 100 {
            tokio::task::yield_now().await;
        }
        start(source(2, 200), note(2));
        while inspections.organizations.queues.lock().len() < 2 {
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Some(()));
        }
        let position = order.lock().iter().position(|number| *number == 2).unwrap();
        assert!(position <= 1, "it came {position} others later");
        assert!(inspections.organizations.queues.lock().is_empty(), "empty queues are removed");
    }

    #[tokio::test]
    async fn an_organization_that_is_alone_uses_all_permits() {
        let inspections = InspectionQueue::new(BlockingPool::with_permits(2));
        let both = Arc::new(std::sync::Barrier::new(2));
        let run = |number: u8| {
            let (inspections, both) = (inspections.clone(), both.clone());
            async move { inspections.run(source(1, number), move || _ = both.wait()).await }
        };
        let both_ran = futures_util::future::join(run(1), run(2));
        let limit = std::time::Duration::from_secs(10);
        assert_eq!(tokio::time::timeout(limit, both_ran).await.unwrap(), (Some(()), Some(())));
    }
}
