//! Ends the pending deliveries of deleted applications.
//!
//! Nothing is sent to their endpoints as soon as the dispatcher knows of the deletion. Deliveries that are due later are still
//! on disk, possibly very many. They end in slices with pauses, so that nothing else is delayed. A walk that a crash has
//! interrupted starts again after the next start.

use crate::Clock;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Cancel, Cancelled};
use crate::scheduling::{Inbox, SchedulingCommand, SchedulingEvent};
use aldaba_delivery::{AppId, Reason};
use aldaba_store::{Error, OrphansPage, OrphansQuery, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Endpoints and deliveries of one read.
const SEARCH_ROWS: usize = 1000;
/// Deliveries that end in one commit.
const MAX_ENDED_PER_COMMIT: usize = 100;
/// The shortest pause after a slice or a read. A longer slice is followed by a longer pause.
const MIN_SLICE_PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 2;
/// How long until a failed read or write is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct Orphans {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Inbox,
    /// Deleted applications.
    pub(crate) deleted: mpsc::UnboundedReceiver<AppId>,
}

impl Task for Orphans {
    const NAME: &'static str = "orphans";

    async fn run(&mut self) -> StoreClosed {
        if self.until_done(None).await.is_err() {
            return StoreClosed;
        }
        while let Some(app) = self.deleted.recv().await {
            if self.until_done(Some(app)).await.is_err() {
                break;
            }
        }
        StoreClosed
    }
}

impl Orphans {
    /// Ends the deliveries of one application, or of all deleted ones. `Err`: the store is closed.
    async fn until_done(&self, app: Option<AppId>) -> Result<(), Error> {
        loop {
            let end = match app {
                Some(app) => self.end_all_of(app).await,
                None => self.end_all().await,
            };
            match end {
                Ok(()) => return Ok(()),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => {
                    tracing::warn!(%error, "cannot end what waits for a deleted application; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn end_all(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let apps = self.store.deleted_applications(after, SEARCH_ROWS).await?;
            for app in &apps {
                self.end_all_of(*app).await?;
            }
            if apps.len() < SEARCH_ROWS {
                return Ok(());
            }
            after = apps.last().copied();
        }
    }

    async fn end_all_of(&self, app: AppId) -> Result<(), Error> {
        let mut after = None;
        loop {
            let began = self.clock.monotonic();
            let page = self.store.orphans(OrphansQuery { app, after, limit: SEARCH_ROWS }).await?;
            if !page.waiting.is_empty() {
                // After a start the dispatcher does not know of the deletion yet.
                self.inbox.send(SchedulingEvent::ApplicationDeleted(app));
            }
            self.pause(began).await;
            if !self.end(app, &page).await? {
                continue;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Ends deliveries. `false`: some have changed since they were read, and must be read again.
    async fn end(&self, app: AppId, page: &OrphansPage) -> Result<bool, Error> {
        let mut as_read = true;
        for slice in page.waiting.chunks(MAX_ENDED_PER_COMMIT) {
            let began = self.clock.monotonic();
            let cancel =
                |(endpoint, waiting): &(_, _)| Cancel { app, endpoint: *endpoint, pending: *waiting };
            let slice = slice.iter().map(cancel).collect();
            let fates =
                self.inbox.ask(|answer| SchedulingCommand::Cancel(None, slice, Reason::OF_DELETION, answer));
            let fates = fates.await.unwrap_or(Err(Error::Closed))?;
            // A delivery in flight is not sent again, whatever its attempt comes to.
            as_read &= !fates.contains(&Cancelled::Changed);
            self.pause(began).await;
        }
        Ok(as_read)
    }

    async fn pause(&self, began: Duration) {
        let took = self.clock.monotonic().saturating_sub(began);
        tokio::time::sleep(MIN_SLICE_PAUSE.max(took * PAUSE_FACTOR)).await;
    }
}

#[cfg(test)]
mod tests;
