//! What a database has to bring along. The whole contract follows from it: a write goes to the backend's writer as an [`Op`], a
//! read runs an operation on a snapshot.

use crate::operations::{Monotonic, Op, Reading, Reply, Result, Slice};
use crate::*;
use aldaba_delivery::{MessageId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a list is walked in one read, so that others have their turn. The next read goes on from there.
const WALK_TIME: Duration = Duration::from_millis(4);

/// A database with one writer and snapshots.
pub trait Backend: Send + Sync + 'static {
    /// Queues an operation for the writer, or refuses it at once.
    fn write(&self, op: Op, reply: Reply);

    /// Runs a read on a snapshot of one moment.
    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static;

    /// The same for reads that only background tasks make.
    fn background_read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        self.read(read)
    }

    fn clock(&self) -> &Monotonic;

    /// How long a count of a replay may take.
    fn count_time(&self) -> Duration;

    /// A read that ends by the clock, with what it has found by then.
    fn walk<T, F>(&self, walk: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads, &Slice<'_>) -> Result<T> + Send + 'static,
    {
        let clock = self.clock().clone();
        self.read(move |reading| walk(reading, &Slice::begin(&clock, WALK_TIME)))
    }

    /// The same for as long as a count may take.
    fn count<T, F>(&self, count: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads, &Slice<'_>) -> Result<T> + Send + 'static,
    {
        let (clock, time) = (self.clock().clone(), self.count_time());
        self.read(move |reading| count(reading, &Slice::begin(&clock, time)))
    }
}

/// The reads that depend on how a backend keeps its rows and its counters.
pub trait BackendReads: Reading {
    /// When something last happened, by the rows that were written last.
    fn newest_moment(&self) -> Result<Option<Timestamp>>;

    /// When the last scheduled attempt of a delivery began, by the order in which attempts were written.
    fn last_scheduled_attempt(&self, message: MessageId, seq: Seq) -> Result<Option<Timestamp>>;

    fn application_attempts(
        &self,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>>;
}

impl<B: Backend> Retention for B {
    fn expire(
        &self,
        walk: RetentionWalk,
        rules: Arc<RetentionRules>,
        now: Timestamp,
        budget: RetentionBudget,
    ) -> Read<Expired> {
        let Some(removal) = walk.removal(&rules, now, budget) else {
            return self.background_read(move |reading| walk.search(reading, &rules, now, budget));
        };
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.write(Op::Remove(removal), Reply::Remove(done));
        Box::pin(async move { Ok(walk.after_removal(answered.await.map_err(|_| Error::Closed)??)) })
    }
}
