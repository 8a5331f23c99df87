//! Stops an engine, after a bug or on request.

use super::Engine;
use crate::scheduling::SchedulingCommand;
use std::time::Duration;

/// How long a stop waits for the collector of traces.
const LAST_EXPORT_TIMEOUT: Duration = Duration::from_secs(1);

impl Engine {
    /// Resolves if the dispatcher has panicked. Everything accepted is on disk; only a new start delivers it.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut failed = self.0.failed.subscribe();
        async move {
            if failed.wait_for(|failed| *failed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Starts no more requests. Events are still accepted, and delivered after the next start.
    pub fn stop_sending(&self) {
        self.0.inbox.send(SchedulingCommand::Halt);
    }

    /// Starts nothing more, waits for requests in flight up to `limit`, and closes the store. Returns how many were still in
    /// flight; they are sent again after the next start.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.drain(limit).await;
        self.close().await;
        left
    }

    /// The first half of a shutdown: starts nothing more, and waits for requests in flight up to `limit`.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.0.background.stop();
        let mails = self.0.mail_queue.drained(limit);
        let in_lanes = self.0.inbox.ask(SchedulingCommand::Stop);
        // Manual attempts are in no lane.
        let by_hand = tokio::time::timeout(limit, self.0.resender.ended());
        let (drained, ..) = tokio::join!(tokio::time::timeout(limit, in_lanes), by_hand, mails);
        let in_lanes = if drained.is_ok() { 0 } else { self.in_flight().await };
        in_lanes + self.0.resender.permits.taken()
    }

    /// The second half: writes what was submitted to the store, however long that takes, and releases the data folder.
    pub async fn close(&self) {
        if let Some(export) = &self.0.trace_export {
            // The task has been stopped; its spans are still in the queue.
            let _ = tokio::time::timeout(LAST_EXPORT_TIMEOUT, export.clone().run_once()).await;
        }
        if let Err(error) = self.0.uses.write(true).await {
            tracing::debug!(%error, "cannot note when keys were last used");
        }
        if let Err(error) = self.0.clock_watch.write().await {
            tracing::debug!(%error, "cannot note what the clock shows");
        }
        if let Err(error) = self.0.store.close().await {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }
}
