//! Marks that no sender asks about any more are removed, daily.

use crate::{Ledger, LedgerError, Receiver};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a mark is kept: longer than any sender of note tries again by itself.
pub const DEFAULT_KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A cleanup that failed is tried again after this long, or at its usual time if that is sooner.
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(5 * 60);

/// How long it rests between two at least, whatever was said.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// How long one cleanup may take. One that hangs would be the last.
const LONGEST_RUN: Duration = Duration::from_secs(60 * 60);

/// What the last cleanup has done.
#[derive(Clone, Debug)]
pub struct CleanupReport {
    /// How many there were before, since the task began, failed ones too.
    pub runs: u64,
    /// How many marks were removed, or why none could be.
    pub removed: Result<u64, Arc<LedgerError>>,
}

/// Cleans a receiver's ledger at regular times.
pub struct Cleanup<L> {
    receiver: Receiver<L>,
    keep: Duration,
    every: Duration,
    report: Box<dyn Fn(&CleanupReport) + Send + Sync>,
}

/// A cleanup that runs in the background, until this is dropped or stopped.
#[derive(Debug)]
pub struct CleanupTask {
    task: JoinHandle<()>,
    reports: watch::Receiver<Option<CleanupReport>>,
}

impl<L: Ledger> Cleanup<L> {
    /// Daily, of marks older than 30 days.
    pub fn of(receiver: &Receiver<L>) -> Self {
        Self { receiver: receiver.clone(), keep: DEFAULT_KEEP, every: DAY, report: Box::new(|_| {}) }
    }

    /// How long marks are kept. An event that comes again after its mark is gone is handled again: keep marks for as long as
    /// the sender tries, and for as long as somebody may send an event again by hand.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// How often it runs. The first run is at the start: a program that is deployed every day would have none otherwise.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Called after every run.
    #[must_use]
    pub fn report(mut self, report: impl Fn(&CleanupReport) + Send + Sync + 'static) -> Self {
        self.report = Box::new(report);
        self
    }

    /// Begins, in a task of the current tokio runtime. Several processes may do it on one ledger: what one has removed
    /// the others do not find.
    pub fn start(self) -> CleanupTask {
        let (sender, reports) = watch::channel(None);
        CleanupTask { task: tokio::spawn(self.run(sender)), reports }
    }

    async fn run(self, reports: watch::Sender<Option<CleanupReport>>) {
        for runs in 0.. {
            let removed = self.run_once().await;
            let pause = if removed.is_ok() { self.every } else { self.every.min(AGAIN_AFTER_FAILURE) };
            match &removed {
                Ok(removed) => tracing::info!(removed, keep = ?self.keep, "old marks of events were removed"),
                Err(error) => {
                    tracing::error!(%error, again_in = ?pause, "old marks of events could not be removed");
                }
            }
            let report = CleanupReport { runs, removed: removed.map_err(Arc::new) };
            self.tell(&report);
            reports.send_replace(Some(report));
            tokio::time::sleep(pause.max(SHORTEST_PAUSE)).await;
        }
    }

    /// A panic of whoever hears of it would end the cleanup for good, and nobody would know.
    fn tell(&self, report: &CleanupReport) {
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| (self.report)(report)));
        if told.is_err() {
            tracing::error!("what was to be told of a cleanup panicked; the cleanup goes on");
        }
    }

    async fn run_once(&self) -> Result<u64, LedgerError> {
        match tokio::time::timeout(LONGEST_RUN, self.receiver.clean(self.keep)).await {
            Ok(removed) => removed,
            Err(_) => {
                self.receiver.0.counters.cleanup_failed();
                Err(LedgerError::Unavailable("the cleanup took too long and was ended".into()))
            }
        }
    }
}

impl CleanupTask {
    /// What the last run has done, and word of the next.
    pub fn reports(&self) -> watch::Receiver<Option<CleanupReport>> {
        self.reports.clone()
    }

    /// Ends it, and waits until it has. A run that is under way is broken off; what it has removed stays removed.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for CleanupTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<L> fmt::Debug for Cleanup<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup")
            .field("keep", &self.keep)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}
