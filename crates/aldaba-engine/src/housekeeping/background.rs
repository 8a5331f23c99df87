//! All background tasks, and what happens when one panics.
//!
//! | name | what it does | after a panic |
//! | --- | --- | --- |
//! | `dispatcher` | owns the lanes | not restarted: the engine has failed, and the process ends; what was accepted is on disk |
//! | `retention` | removes data whose retention period is over | a new round |
//! | `orphans` | ends the pending deliveries of deleted applications | walks all deleted applications again |
//! | `erasures` | removes everything of applications that are erased | each goes on where its last commit left it |
//! | `stop-dates` | ends deliveries past their stop date | walks all endpoints again |
//! | `places` | gives deliveries of ordered endpoints their sequence numbers | searches for all of them again |
//! | `due-times` | corrects due times that a wrong clock has stored | walks them all again |
//! | `clock-watch` | stores the time of a trusted clock | goes on |
//! | `store-watch` | looks at failed endpoints, the oldest delivery, the dead letter and the scheduler | looks again |
//! | `key-uses` | writes when API keys were last used | goes on; nothing is forgotten |
//! | `operational-webhooks` | turns notices into messages | goes on; an organization whose notices panic backs off, and delays no other |
//! | `alerts` | judges the alert rules | judges again; nothing that fires is forgotten or told twice |
//! | `mails` | sends queued mails | goes on; a mail whose end was not written is sent again under its Message-ID |
//! | `sweep` | finds due work that memory does not know of | the same sweep again |
//! | `lane-reads` | reads endpoints and deliveries for lanes | the same read again |
//! | `replays` | moves replays on | the replay goes on where its last commit left it |
//! | `trace-export` | sends spans to the collector | goes on |
//! | `connection-ages` | closes idle connections to receivers | goes on with the next tick |
//! | `api-accept` | accepts connections of the API (in the server) | accepts again |
//! | `clock-requests` | does `aldaba clock trust` (in the server) | looks for the request again |
//! | `tls-certificate` | takes the listener's certificate anew when its files change (in the server) | reads the files again |
//! | `resume-requests` | does `aldaba restore --resume` (in the server) | looks for the request again |
//! | `metrics-accept` | accepts connections of `metrics_listen` (in the server) | accepts again |
//!
//! A restarted task waits first, longer each time ([`Restarts`]). The log has an error with its name, and
//! `GET /api/v1/health` lists it until it has run well for a while. The threads of the store are supervised by the store.
//! A panic of a single attempt, request or read is handled where that runs.

use crate::Clock;
use aldaba_store::{RestartedTask, Restarts};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

pub(crate) const ALERTS: &str = "alerts";
pub(crate) const OPERATIONAL: &str = "operational-webhooks";
pub(crate) const MAILS: &str = "mails";
pub(crate) const SWEEP: &str = "sweep";
pub(crate) const LANE_READS: &str = "lane-reads";
pub(crate) const REPLAYS: &str = "replays";
pub(crate) const CONNECTION_AGES: &str = "connection-ages";

/// The end of a background task without a panic: the store is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreClosed;

/// A task that runs as long as the engine.
pub(crate) trait Task: Send + 'static {
    const NAME: &'static str;

    /// Runs until the store is closed. After a panic it is called again, so it must not rely on unfinished work of an earlier
    /// run.
    fn run(&mut self) -> impl Future<Output = StoreClosed> + Send;
}

/// Starts background tasks, restarts those that panic, and knows which were restarted lately. Clones share the state.
#[derive(Clone)]
pub struct Background {
    clock: Arc<dyn Clock>,
    restarts: Restarts,
    running: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Background {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, restarts: Restarts::default(), running: Arc::default() }
    }

    /// Starts a task, which runs until the store is closed or [`stop`](Self::stop) is called.
    pub(crate) fn start<T: Task>(&self, mut task: T) {
        let background = self.clone();
        let supervised = tokio::spawn(async move {
            while let Err(panic) = AssertUnwindSafe(task.run()).catch_unwind().await {
                tokio::time::sleep(background.panicked(T::NAME, &*panic)).await;
            }
        });
        self.running.lock().push(supervised.abort_handle());
    }

    /// Stops all tasks, wherever they are.
    pub(crate) fn stop(&self) {
        self.running.lock().drain(..).for_each(|task| task.abort());
    }

    /// Runs work to its end. After a panic it starts from the beginning.
    pub async fn supervised<T, F>(&self, name: &'static str, mut run: impl FnMut() -> F + Send) -> T
    where
        F: Future<Output = T> + Send,
    {
        loop {
            match AssertUnwindSafe(async { run().await }).catch_unwind().await {
                Ok(end) => return end,
                Err(panic) => tokio::time::sleep(self.panicked(name, &*panic)).await,
            }
        }
    }

    /// Records a panic that a task has caught itself. Returns how long it should wait.
    pub(crate) fn panicked(&self, name: &'static str, panic: &(dyn Any + Send)) -> Duration {
        self.restarts.panicked(name, panic, self.clock.monotonic())
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.running.lock().iter().filter(|task| !task.is_finished()).count()
    }

    /// The tasks that panicked and have not run well for long enough since then.
    pub fn restarted(&self) -> Vec<RestartedTask> {
        self.restarts.recent(self.clock.monotonic())
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("restarts", &self.restarts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
