//! The daily removal of old marks.

use crate::{Ledger, LedgerError, Receiver};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a mark is kept: longer than any known sender retries.
pub const DEFAULT_KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A failed cleanup is retried after this time, or at its usual time if that is sooner.
const RETRY_DELAY: Duration = Duration::from_secs(5 * 60);

/// The minimum time between two cleanups, whatever the setting.
const MIN_PAUSE: Duration = Duration::from_millis(50);

/// How long one cleanup may take. Without a limit, one that hangs would be the last.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The result of one cleanup.
#[derive(Clone, Debug)]
pub struct CleanupReport {
    /// The number of cleanups before this one since the task started, including failed ones.
    pub runs: u64,
    /// The number of removed marks, or the error.
    pub removed: Result<u64, Arc<LedgerError>>,
}

/// Cleans a receiver's ledger periodically.
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
    /// A daily cleanup of marks older than 30 days.
    pub fn of(receiver: &Receiver<L>) -> Self {
        Self { receiver: receiver.clone(), keep: DEFAULT_KEEP, every: DAY, report: Box::new(|_| {}) }
    }

    /// Sets how long marks are kept. An event that is sent again after its mark was removed is handled again: keep marks for
    /// as long as the sender retries, and for as long as somebody may resend an event.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the period. The first run is at the start: otherwise a program that is deployed daily would have no run.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets a callback that runs after every cleanup.
    #[must_use]
    pub fn report(mut self, report: impl Fn(&CleanupReport) + Send + Sync + 'static) -> Self {
        self.report = Box::new(report);
        self
    }

    /// Starts the cleanup in a task of the current tokio runtime. Several processes may clean one ledger.
    pub fn start(self) -> CleanupTask {
        let (sender, reports) = watch::channel(None);
        CleanupTask { task: tokio::spawn(self.run(sender)), reports }
    }

    async fn run(self, reports: watch::Sender<Option<CleanupReport>>) {
        for runs in 0.. {
            let removed = self.run_once().await;
            let pause = if removed.is_ok() { self.every } else { self.every.min(RETRY_DELAY) };
            match &removed {
                Ok(removed) => tracing::info!(removed, keep = ?self.keep, "removed old marks"),
                Err(error) => {
                    tracing::error!(%error, again_in = ?pause, "old marks could not be removed");
                }
            }
            let report = CleanupReport { runs, removed: removed.map_err(Arc::new) };
            self.tell(&report);
            reports.send_replace(Some(report));
            tokio::time::sleep(pause.max(MIN_PAUSE)).await;
        }
    }

    /// Calls the callback. A panic there must not end the cleanup.
    fn tell(&self, report: &CleanupReport) {
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| (self.report)(report)));
        if told.is_err() {
            tracing::error!("the callback of a cleanup panicked; the cleanup continues");
        }
    }

    async fn run_once(&self) -> Result<u64, LedgerError> {
        match tokio::time::timeout(CLEANUP_TIMEOUT, self.receiver.clean(self.keep)).await {
            Ok(removed) => removed,
            Err(_) => {
                self.receiver.0.counters.cleanup_failed();
                Err(LedgerError::Unavailable("the cleanup exceeded its time limit and was cancelled".into()))
            }
        }
    }
}

impl CleanupTask {
    /// The report of the last run; the channel changes with each run.
    pub fn reports(&self) -> watch::Receiver<Option<CleanupReport>> {
        self.reports.clone()
    }

    /// Stops the task and waits for its end. A running cleanup is cancelled; what it has removed stays removed.
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
