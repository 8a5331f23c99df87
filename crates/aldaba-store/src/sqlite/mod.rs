//! The embedded backend: SQLite in one folder.
//!
//! One thread writes ([`run_batch`] in a loop), a few read. Everything that arrives while a commit
//! is syncing goes into the next one, so the disk decides how many operations share an fsync.

mod accept;
mod attempt_list;
mod audit;
mod batch;
mod change;
mod checkpoint;
mod codes;
mod commits;
mod connect;
mod contract;
mod cost;
mod counters;
mod credentials;
mod deliveries;
mod delivery_list;
mod directory;
mod dispatch;
mod due_times;
mod event_type;
mod expunge;
mod failure;
mod files;
mod filters;
mod health;
mod history;
mod keys;
mod lanes;
mod lock;
mod message_list;
mod migrations;
mod monotonic;
mod names;
mod notice;
mod op;
mod open;
mod opening;
mod options;
mod ordering;
mod pace;
mod places;
#[cfg(test)]
mod plan;
mod policy;
mod profile;
mod queue;
mod quota;
mod readers;
mod record;
mod remove;
mod replay;
mod retention;
mod rows;
mod setting;
mod source;
mod source_states;
mod space;
mod statistics;
mod stop_dates;
mod subject;
mod threads;
mod types;
mod used;
mod walk;
mod watchdog;
mod watermark;
mod writer;

pub use batch::{Rules, run_batch};
pub use files::has_database;
pub use monotonic::Monotonic;
pub use op::{Op, Outcome};
pub use open::{OpenError, in_memory};
pub use opening::{Loss, Opening};
pub use options::Options;
pub use types::Types;

use crate::{Read, RestartedTask, Store};
use failure::Failure;
use monotonic::Slice;
use op::Reply;
use parking_lot::Mutex;
use queue::Queue;
use readers::Readers;
use rusqlite::Connection;
use space::Space;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use threads::Threads;
use tokio::sync::watch;

/// A store in one folder. Dropping it closes it, and waits until everything handed over is written.
#[derive(Debug)]
pub struct SqliteStore {
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    failure: Arc<Failure>,
    log_pages: Arc<AtomicU32>,
    clock: Monotonic,
    types: Arc<Types>,
    /// How much of the time of a read a count takes before it hands back what it has.
    count_slice: Duration,
    closed: watch::Sender<bool>,
    space: Space,
    threads: Threads,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Takes the folder for this store alone, and brings its database to the present schema.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        Opening::begin(options)?.finish()
    }

    /// Resolves once the store has failed for good, with the reason. The process should end with it:
    /// what the disk holds is uncertain, and only a fresh start reads it again.
    pub fn failed(&self) -> impl Future<Output = String> + Send + 'static {
        self.failure.wait()
    }

    /// How many pages the write-ahead log had after the last commit.
    pub fn log_pages(&self) -> u32 {
        self.log_pages.load(Ordering::Relaxed)
    }

    fn write(&self, op: Op, reply: Reply) {
        self.queue.put(op, reply, &self.failure);
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.readers.read(&self.failure, read)
    }

    /// A read that ends by the clock, with what it has found by then.
    fn walk<T, F>(&self, walk: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Slice<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let clock = self.clock.clone();
        self.read(move |connection| walk(connection, &Slice::begin(&clock, WALK)))
    }
}

/// How long a list is walked in one read, so that others have their turn; the next read goes on from there.
const WALK: Duration = Duration::from_millis(4);

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue.close();
        // The last owner may have been a `Done`: the writer's thread can not wait for itself.
        if let Some(thread) = self.thread.get_mut().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn restarted(&self) -> Vec<RestartedTask> {
        self.threads.restarted()
    }

    fn check(&self) -> Read<()> {
        if let Some(error) = self.failure.get() {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM setting LIMIT 1")?.exists(()).map(drop)
        })
    }

    fn close(&self) -> Read<()> {
        self.queue.close();
        // Handles of a closed store may be kept for long.
        self.space.stop();
        let mut closed = self.closed.subscribe();
        let failure = Arc::clone(&self.failure);
        Box::pin(async move {
            // The sender lives in the store and in the thread; if both are gone it is closed too.
            let _ = closed.wait_for(|closed| *closed).await;
            failure.get().map_or(Ok(()), Err)
        })
    }
}
