//! Ends reads that take too long: a long read keeps the write-ahead log from starting over.

use parking_lot::{Condvar, Mutex};
use rusqlite::InterruptHandle;
use std::time::Duration;

/// A read is looked at this often within its limit, so it may last this much of the limit longer.
const CHECKS_PER_LIMIT: u32 = 4;

pub(super) struct Watchdog {
    tick: Duration,
    handles: Vec<InterruptHandle>,
    reads: Mutex<Reads>,
    changed: Condvar,
}

struct Reads {
    /// For each reader: how many looks its present read has lasted.
    running: Vec<Option<u32>>,
    /// The thread waits for the first read, not for the next look.
    asleep: bool,
    closed: bool,
}

/// While it lives, its reader's read is watched.
pub(super) struct Watched<'a> {
    watchdog: &'a Watchdog,
    reader: usize,
}

impl Watchdog {
    pub(super) fn new(handles: Vec<InterruptHandle>, limit: Duration) -> Self {
        let reads = Reads { running: handles.iter().map(|_| None).collect(), asleep: false, closed: false };
        Self { tick: limit / CHECKS_PER_LIMIT, handles, reads: Mutex::new(reads), changed: Condvar::new() }
    }

    pub(super) fn over(&self, reader: usize) -> Watched<'_> {
        let mut reads = self.reads.lock();
        reads.running[reader] = Some(0);
        let asleep = std::mem::take(&mut reads.asleep);
        drop(reads);
        if asleep {
            self.changed.notify_one();
        }
        Watched { watchdog: self, reader }
    }

    /// The thread: asleep while nothing is read.
    pub(super) fn run(&self) {
        let mut reads = self.reads.lock();
        while !reads.closed {
            if reads.running.iter().all(Option::is_none) {
                reads.asleep = true;
                self.changed.wait(&mut reads);
            } else if self.changed.wait_for(&mut reads, self.tick).timed_out() {
                self.look(&mut reads);
            }
        }
    }

    /// Interrupts under the lock, so that a read can not end and another one begin in between. A
    /// read of several statements may be met between two of them, where an interrupt does nothing:
    /// it is repeated at every look.
    fn look(&self, reads: &mut Reads) {
        for (checks, handle) in reads.running.iter_mut().zip(&self.handles) {
            if let Some(checks) = checks {
                *checks += 1;
                if *checks > CHECKS_PER_LIMIT {
                    handle.interrupt();
                }
            }
        }
    }

    pub(super) fn close(&self) {
        self.reads.lock().closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.watchdog.reads.lock().running[self.reader] = None;
    }
}

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").field("tick", &self.tick).finish_non_exhaustive()
    }
}
