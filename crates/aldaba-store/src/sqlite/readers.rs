//! The readers: threads with a read-only connection each, and a limit of time for every read.

use super::failure::Failure;
use super::reader::Reader;
use super::threads::Threads;
use super::types::Types;
use super::watchdog::Watchdog;
use crate::backend::BackendReads;
use crate::{Error, Read};
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    limit: usize,
    line: Mutex<ReadQueue>,
    arrived: Condvar,
}

#[derive(Default)]
struct ReadQueue {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// Ends the threads and waits for them.
#[derive(Debug)]
pub(super) struct ReaderThreads {
    readers: Vec<JoinHandle<()>>,
    watchdog: JoinHandle<()>,
    watch: Arc<Watchdog>,
}

impl Readers {
    pub(super) fn start(
        connections: Vec<Connection>,
        limit: usize,
        read_limit: Duration,
        supervised: &Threads,
    ) -> std::io::Result<(Arc<Self>, ReaderThreads)> {
        let readers = Arc::new(Self { limit, line: Mutex::default(), arrived: Condvar::new() });
        let handles = connections.iter().map(Connection::get_interrupt_handle).collect();
        let watch = Arc::new(Watchdog::new(handles, read_limit));
        let threads = connections
            .into_iter()
            .enumerate()
            .map(|(number, connection)| {
                let (readers, watch) = (Arc::clone(&readers), Arc::clone(&watch));
                let name = format!("aldaba-reader-{number}");
                supervised.spawn("store-reader", name, move || readers.run(&connection, number, &watch))
            })
            .collect::<Result<Vec<_>, _>>();
        let watchdog = {
            let watch = Arc::clone(&watch);
            supervised.spawn("store-read-limit", "aldaba-watch".into(), move || watch.run())
        };
        match (threads, watchdog) {
            (Ok(threads), Ok(watchdog)) => Ok((readers, ReaderThreads { readers: threads, watchdog, watch })),
            (Err(error), _) | (_, Err(error)) => {
                readers.close();
                watch.close();
                Err(error)
            }
        }
    }

    /// Starts a read at once; what is returned only waits for its end.
    pub(super) fn read<T, F>(&self, failure: &Arc<Failure>, types: &Arc<Types>, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let (failure, types) = (Arc::clone(failure), Arc::clone(types));
        let job: Job = Box::new(move |connection| {
            // The caller may have gone away in the meantime.
            if answer.is_closed() {
                return;
            }
            let result = Reader::on_snapshot(connection, &types, |reader| read(reader));
            if let Err(Error::Failed(message)) = &result {
                failure.mark(message);
            }
            let _ = answer.send(result);
        });
        let handed_over = self.put(job);
        Box::pin(async move {
            handed_over?;
            answered.await.unwrap_or_else(|_| Err(Error::Failed("a read ended without an answer".into())))
        })
    }

    fn put(&self, job: Job) -> Result<(), Error> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(Error::Closed);
        }
        if line.jobs.len() >= self.limit {
            return Err(Error::Busy);
        }
        line.jobs.push_back(job);
        drop(line);
        self.arrived.notify_one();
        Ok(())
    }

    fn run(&self, connection: &Connection, number: usize, watch: &Watchdog) {
        while let Some(job) = self.take() {
            let _watched = watch.over(number);
            if catch_unwind(AssertUnwindSafe(|| job(connection))).is_err() {
                tracing::error!("a read panicked");
            }
        }
    }

    fn take(&self) -> Option<Job> {
        let mut line = self.line.lock();
        loop {
            if let Some(job) = line.jobs.pop_front() {
                return Some(job);
            }
            if line.closed {
                return None;
            }
            self.arrived.wait(&mut line);
        }
    }

    /// Nothing more is taken in; what waits is still read.
    pub(super) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_all();
    }
}

impl ReaderThreads {
    /// To be called after [`Readers::close`].
    pub(super) fn join(self) {
        for reader in self.readers {
            let _ = reader.join();
        }
        self.watch.close();
        let _ = self.watchdog.join();
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("limit", &self.limit).finish_non_exhaustive()
    }
}
