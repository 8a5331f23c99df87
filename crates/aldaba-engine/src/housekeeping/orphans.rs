//! Ends what waits for the endpoints of deleted applications.
//!
//! Nothing is sent to them any more from the moment the lanes have heard of it; but what was to be sent later is still on
//! disk, and there may be very much of it. It ends in slices with pauses between them, so that nobody else feels it. A
//! walk that a crash has cut off is begun again by the next start.

use crate::Clock;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Cancel, Cancelled};
use crate::scheduling::{Event, Inbox};
use aldaba_delivery::{AppId, Reason};
use aldaba_store::{Error, OrphansPage, OrphansQuery, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Endpoints and deliveries that one read looks at.
const SEARCH_ROWS: usize = 1000;
/// Deliveries that end in one commit.
const MAX_ENDED_PER_COMMIT: usize = 100;
/// The shortest pause after a slice or a read. What takes longer is followed by a pause that is longer as well.
const MIN_SLICE_PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 2;
/// How long until something that the store could not do is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct Orphans {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Inbox,
    /// Applications that were deleted.
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
    /// Of one application, or of all that are deleted. `Err`: the store is closed.
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
                // At a start the lanes have not heard of it yet.
                self.inbox.send(Event::ApplicationDeleted(app));
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

    /// `false`: something was not what it was when it was read, and must be read again.
    async fn end(&self, app: AppId, page: &OrphansPage) -> Result<bool, Error> {
        let mut as_read = true;
        for slice in page.waiting.chunks(MAX_ENDED_PER_COMMIT) {
            let began = self.clock.monotonic();
            let cancel =
                |(endpoint, waiting): &(_, _)| Cancel { app, endpoint: *endpoint, waiting: *waiting };
            let slice = slice.iter().map(cancel).collect();
            let fates = self.inbox.ask(|answer| Event::Cancel(None, slice, Reason::OF_DELETION, answer));
            let fates = fates.await.unwrap_or(Err(Error::Closed))?;
            // One in flight is its lane's business: whatever comes of it, it is not sent again.
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
