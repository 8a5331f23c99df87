//! A store in memory that keeps the contract, and breaks down as a real one may.
//!
//! [`Disk`] is what survives, `queue` is what a crash loses, `writer` moves the one to the other in
//! batches. Reads are snapshots that may be late and old.

mod apply;
mod audit;
mod change;
mod credentials;
mod deliveries;
mod disk;
mod dispatch;
mod due_times;
mod event_types;
mod expunge;
mod faults;
mod health;
mod lists;
mod places;
mod profiles;
mod query;
mod queue;
mod reads;
mod replay;
mod retention;
mod sources;
mod statistics;
mod writer;

pub use disk::Disk;
pub use faults::{CrashPoint, Faults, Span, Stage};

use crate::entropy::Dice;
use crate::log::Log;
use crate::process::{Process, pause};
use crate::sabotage::Sabotage;
use aldaba_delivery::{AppId, AttemptId};
use aldaba_store::{
    Accept, Accepted, Accepts, Done, Error, Read, Record, Recorded, Records, RequestDigest, Resent, Store,
};
use parking_lot::Mutex;
use queue::{Op, Queue};
use std::sync::Arc;
use tokio::sync::watch;

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
    queue: Arc<Queue>,
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
        let store = Self {
            disk,
            log,
            process,
            faults: Arc::new(faults),
            panics: Arc::new(Mutex::new(Dice::of(dice.clone().throw(), "panics"))),
            dice: Arc::new(Mutex::new(dice)),
            queue: Arc::default(),
            closed: Arc::new(watch::Sender::new(false)),
        };
        tokio::spawn(store.clone().write());
        store
    }

    /// Whether an event or a command is refused at once.
    fn busy(&self) -> bool {
        self.faults.is_busy(self.process.now(), &mut self.dice.lock())
    }

    fn put(&self, op: Op) {
        if self.process.is_dead() {
            return;
        }
        if let Err(op) = self.queue.put(op) {
            op.refuse(Error::Closed);
        }
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Disk) -> T + Send + 'static,
    {
        if *self.closed.borrow() {
            return Box::pin(std::future::ready(Err(Error::Closed)));
        }
        let plan = self.faults.read(self.process.now(), &mut self.dice.lock());
        let disk = Arc::clone(&self.disk);
        // A snapshot that is taken at once is taken before anybody waits for it.
        let mut read = Some(read);
        let mut take = move |disk: &Disk| read.take().map(|read| read(disk));
        let early = if plan.before.is_zero() { take(&disk.lock()) } else { None };
        Box::pin(async move {
            pause(plan.before).await;
            let snapshot = match early {
                Some(snapshot) => Some(snapshot),
                None => take(&disk.lock()),
            };
            pause(plan.after).await;
            snapshot.filter(|_| !plan.fails).ok_or(Error::Timeout)
        })
    }
}

impl SimStore {
    /// A read that only a background task makes. It may panic: the task is restarted then.
    fn background_read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Disk) -> T + Send + 'static,
    {
        if self.faults.panics(self.process.now(), &mut self.panics.lock()) {
            // Without the hook that prints: thousands of runs would fill the terminal.
            std::panic::resume_unwind(Box::new("planted in a read"));
        }
        self.read(read)
    }
}

impl Store for SimStore {
    fn check(&self) -> Read<()> {
        self.read(|_| ())
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

impl Accepts for SimStore {
    fn accept(&self, batch: Vec<Accept>, done: Done<Vec<Accepted>>) {
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        if self.sabotage(Sabotage::LookThenStore) {
            let disk = self.disk.lock();
            if let Some(message) = batch.iter().find_map(|accept| disk.looked_up(accept)) {
                return done.call(Ok(vec![Accepted::EventIdTaken { message }]));
            }
        }
        self.put(Op::Accept(batch, done));
    }
}

impl Records for SimStore {
    fn record(&self, batch: Vec<Record>, done: Done<Vec<Recorded>>) {
        self.put(Op::Record(batch, done));
    }

    fn resent(&self, resent: Resent, done: Done<()>) {
        self.put(Op::Resent(Box::new(resent), done));
    }

    fn attempt_of_key(&self, app: AppId, digest: RequestDigest) -> Read<Option<AttemptId>> {
        self.read(move |disk| disk.request(*app.as_bytes(), digest).map(AttemptId::from_bytes))
    }
}
