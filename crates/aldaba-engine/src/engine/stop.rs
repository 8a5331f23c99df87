//! An engine ends: by a bug, or because somebody wants it to.

use super::Engine;
use crate::scheduling::Event;
use std::time::Duration;

impl Engine {
    /// Resolves if delivering has ended by a bug. What was accepted is safe on disk; only a fresh start
    /// delivers it.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut failed = self.0.failed.subscribe();
        async move {
            if failed.wait_for(|failed| *failed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Starts no more requests, from now on. Events are still accepted, and wait on disk for the next
    /// start.
    pub fn stop_sending(&self) {
        self.0.inbox.send(Event::Halt);
    }

    /// Starts nothing more, waits for the requests in flight as long as `limit`, and closes the
    /// store. Returns how many were still in flight: their deliveries are tried again after the
    /// next start.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.drain(limit).await;
        self.close().await;
        left
    }

    /// The first half of a shutdown: nothing more is started, and requests in flight may end.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.0.background.stop();
        let in_lanes = self.0.inbox.ask(Event::Stop);
        // Those made by hand are in no lane.
        let by_hand = tokio::time::timeout(limit, self.0.resender.ended());
        let (landed, _) = tokio::join!(tokio::time::timeout(limit, in_lanes), by_hand);
        let in_lanes = if landed.is_ok() { 0 } else { self.in_flight().await };
        in_lanes + self.0.resender.permits.taken()
    }

    /// The second half: what was handed to the store is written, for as long as the disk takes, and its folder is
    /// free.
    pub async fn close(&self) {
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
