//! The embedded backend: SQLite in one folder.
//!
//! One thread writes ([`Database::run_batch`] in a loop), a few read. Everything that arrives while a commit
//! is syncing goes into the next one, so the disk decides how many operations share an fsync.

mod batch;
mod checkpoint;
mod commits;
mod connect;
mod copies;
mod failure;
mod files;
mod lock;
mod migrations;
mod open;
mod opening;
mod options;
#[cfg(test)]
mod plan;
mod program;
mod queue;
mod reader;
mod readers;
#[cfg(feature = "simulation")]
mod simulated;
mod space;
mod threads;
mod transaction;
mod types;
mod watchdog;
mod watermark;
mod writer;

pub use crate::operations::Monotonic;
pub use batch::{Database, Observer};
pub use connect::sqlite_version;
pub use copies::{
    CopyError, CopyLimits, CopyProgress, FolderState, PendingCounts, Restored, Restoring, RestoringError,
    Snapshot, finish_copy, known_schema,
};
pub use files::has_database;
pub use open::{OpenError, in_memory};
pub use opening::{Loss, Opening};
pub use options::Options;
#[cfg(feature = "simulation")]
pub use simulated::{Planted, in_memory_for_good, plant, without_bugs};

use crate::backend::{Backend, BackendReads};
use crate::operations::{LiveCounts, Op, Reply, Result};
use crate::{DiskState, Error, Read, RestartedTask, Store};
use failure::Failure;
use parking_lot::Mutex;
use queue::WriteQueue;
use readers::Readers;
use space::Space;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use threads::Threads;
use tokio::sync::watch;
use types::Types;

/// A page of the write-ahead log: 4 KiB, and its head.
const PAGE_BYTES: u64 = 4096 + 24;

/// A store in one folder. Dropping it closes it, and waits until everything handed over is written.
#[derive(Debug)]
pub struct SqliteStore {
    queue: Arc<WriteQueue>,
    readers: Arc<Readers>,
    failure: Arc<Failure>,
    log_pages: Arc<AtomicU32>,
    clock: Monotonic,
    types: Arc<Types>,
    live: LiveCounts,
    /// How much of the time of a read a count takes before it returns what it has.
    count_time: Duration,
    closed: watch::Sender<bool>,
    space: Space,
    threads: Threads,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Takes the folder for this store alone, and brings its database to the present schema.
    pub fn open(options: &Options) -> std::result::Result<Self, OpenError> {
        Opening::begin(options)?.finish()
    }

    /// How many pages the write-ahead log had after the last commit.
    pub fn log_pages(&self) -> u32 {
        self.log_pages.load(Ordering::Relaxed)
    }
}

impl Backend for SqliteStore {
    fn write(&self, op: Op, reply: Reply) {
        if op.makes_deliveries() && self.space.is_low() {
            return reply.call(Err(Error::Full));
        }
        self.queue.put(op, reply, &self.failure);
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        self.readers.read(&self.failure, &self.types, read)
    }

    fn clock(&self) -> &Monotonic {
        &self.clock
    }

    fn count_time(&self) -> Duration {
        self.count_time
    }
}

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
    fn failed(&self) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin(self.failure.wait())
    }

    fn disk(&self) -> DiskState {
        DiskState {
            log_bytes: Some(u64::from(self.log_pages()) * PAGE_BYTES),
            free_bytes: self.space.available(),
            is_low: self.space.is_low(),
        }
    }

    fn live_counts(&self) -> LiveCounts {
        self.live.clone()
    }

    fn restarted(&self) -> Vec<RestartedTask> {
        self.threads.restarted()
    }

    fn check(&self) -> Read<()> {
        if let Some(error) = self.failure.get() {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.read(|reading| crate::operations::setting::read(reading, "check").map(drop))
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
