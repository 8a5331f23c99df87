//! The real store on a database in memory, which breaks down as a real one may.
//!
//! [`Disk`] is what survives, `queue` is what a crash loses, `writer` moves the one to the other in the batches of the real
//! writer, and `observer` writes down what they do. Reads are snapshots that may be late and old.

mod disk;
mod faults;
mod observer;
mod planted;
mod queue;
mod replies;
mod writer;

pub use disk::Disk;
pub use faults::{CrashPoint, Faults, Span, Stage};
pub(crate) use replies::MAX_REPLY_DELAY;

use crate::entropy::Dice;
use crate::log::Log;
use crate::process::{Process, pause};
use crate::sabotage::Sabotage;
use aldaba_delivery::AppId;
use aldaba_engine::CLOCK_SETTING;
use aldaba_store::operations::{Class, Monotonic, Op, Reply, Result};
use aldaba_store::sqlite::plant;
use aldaba_store::{Backend, BackendReads, Change, Error, LiveCounts, Read, Store};
use bytes::Bytes;
use parking_lot::Mutex;
use queue::WaitingOps;
use replies::PendingReply;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a count of a replay may take.
const COUNT_TIME: Duration = Duration::from_millis(200);

/// The store of one life of the server. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct SimStore {
    disk: Arc<Mutex<Disk>>,
    log: Arc<Mutex<Log>>,
    process: Arc<Process>,
    faults: Arc<Faults>,
    dice: Arc<Mutex<Dice>>,
    /// Dice of their own, so that all else goes on as in a run without panics.
    panics: Arc<Mutex<Dice>>,
    queue: Arc<WaitingOps>,
    /// What is committed, and not told yet, in the order of the commits.
    unheard: Arc<Mutex<Vec<PendingReply>>>,
    clock: Monotonic,
    /// How much time passes between two looks at the clock, in microseconds.
    pace: Arc<AtomicU64>,
    /// The headers that came with the newest event of each source, for sabotage.
    last_headers: Arc<Mutex<BTreeMap<AppId, Option<Bytes>>>>,
    closed: Arc<watch::Sender<bool>>,
}

impl SimStore {
    /// Must be called on the runtime that the process lives on: the writer is a task of it.
    pub fn start(
        disk: Arc<Mutex<Disk>>,
        log: Arc<Mutex<Log>>,
        process: Arc<Process>,
        faults: Faults,
        dice: Dice,
    ) -> Self {
        let pace = Arc::new(AtomicU64::new(0));
        let clock = clock(&process, &pace);
        plant(faults.sabotage.map_or(&[], Sabotage::in_statements));
        disk.lock().restart(clock.clone());
        let store = Self {
            disk,
            log,
            process,
            faults: Arc::new(faults),
            panics: Arc::new(Mutex::new(Dice::of(dice.clone().throw(), "panics"))),
            dice: Arc::new(Mutex::new(dice)),
            queue: Arc::default(),
            unheard: Arc::default(),
            clock,
            pace,
            last_headers: Arc::default(),
            closed: Arc::new(watch::Sender::new(false)),
        };
        tokio::spawn(store.clone().write_all());
        store
    }

    /// Whether an operation is refused at once. Results never are.
    fn is_busy(&self, op: &Op) -> bool {
        let waits = op.class() != Class::Result && !matches!(op, Op::SettleSetting(..));
        waits && self.faults.is_busy(self.process.now(), &mut self.dice.lock())
    }

    pub(self) fn sabotage(&self, kind: Sabotage) -> bool {
        self.faults.sabotage == Some(kind)
    }
}

/// Of those that write without a read before it.
fn is_of_background_task(op: &Op) -> bool {
    let Op::Change(change, _) = op else { return false };
    matches!(**change, Change::NoteKeyUses { .. } | Change::PutSetting { name: CLOCK_SETTING, .. })
}

/// The time since the process began, by the true clock. Work that ends by it takes as long as `pace` says.
fn clock(process: &Arc<Process>, pace: &Arc<AtomicU64>) -> Monotonic {
    let (began, clock) = (process.now(), process.clock.clone());
    let (pace, passed) = (pace.clone(), AtomicU64::new(0));
    Monotonic::new(move || {
        let more = pace.load(Ordering::Relaxed);
        let passed = passed.fetch_add(more, Ordering::Relaxed) + more;
        aldaba_engine::Clock::now(&*clock).since(began) + Duration::from_micros(passed)
    })
}

impl Backend for SimStore {
    fn write(&self, mut op: Op, reply: Reply) {
        if is_of_background_task(&op)
            && self.faults.panics_in_write(self.process.now(), &mut self.panics.lock())
        {
            std::panic::resume_unwind(Box::new("planted in a write"));
        }
        if self.is_busy(&op) {
            return reply.call(Err(Error::Busy));
        }
        if let Some(outcome) = self.plant_in_op(&mut op) {
            return reply.call(Ok(outcome));
        }
        if !self.process.is_dead()
            && let Err(reply) = self.queue.put(op, reply)
        {
            reply.call(Err(Error::Closed));
        }
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        if *self.closed.borrow() {
            return Box::pin(std::future::ready(Err(Error::Closed)));
        }
        let plan = self.faults.read(self.process.now(), &mut self.dice.lock());
        let (disk, log) = (Arc::clone(&self.disk), Arc::clone(&self.log));
        // A snapshot that is taken at once is taken before anybody waits for it.
        let mut read = Some(read);
        let mut take = move || {
            let read = read.take()?;
            let snapshot = disk.lock().database.read(read);
            if let Err(error) = &snapshot {
                log.lock().failures.push(format!("a read has failed: {error}"));
            }
            Some(snapshot)
        };
        let early = if plan.before.is_zero() { take() } else { None };
        Box::pin(async move {
            pause(plan.before).await;
            let snapshot = early.or_else(take);
            pause(plan.after).await;
            snapshot.filter(|_| !plan.fails).unwrap_or(Err(Error::Timeout))
        })
    }

    /// It may panic: the task is restarted then.
    fn background_read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        if self.faults.panics_in_read(self.process.now(), &mut self.panics.lock()) {
            // Without the hook that prints: thousands of runs would fill the terminal.
            std::panic::resume_unwind(Box::new("planted in a read"));
        }
        self.read(read)
    }

    fn clock(&self) -> &Monotonic {
        &self.clock
    }

    fn count_time(&self) -> Duration {
        COUNT_TIME
    }
}

impl Store for SimStore {
    fn live_counts(&self) -> LiveCounts {
        self.disk.lock().live_counts()
    }

    fn check(&self) -> Read<()> {
        self.read(|_| Ok(()))
    }

    fn close(&self) -> Read<()> {
        self.queue.close();
        let mut closed = self.closed.subscribe();
        Box::pin(async move {
            let _ = closed.wait_for(|closed| *closed).await;
            Ok(())
        })
    }
}
