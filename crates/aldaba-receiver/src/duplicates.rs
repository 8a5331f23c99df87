//! The rate of duplicates over a window, from counts that the ledger keeps.

use crate::opening::LEDGER_TIMEOUT;
use crate::{DuplicateRate, Ledger, LedgerError, Outcome, Receiver};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long counts are collected before they are stored. A crash loses the counts of this time, and nothing else.
const STORE_DELAY: Duration = Duration::from_secs(10);

const HOUR: Duration = Duration::from_secs(60 * 60);

impl<L: Ledger> Receiver<L> {
    /// Counts the outcome of a request.
    pub(crate) fn count(&self, outcome: Outcome) {
        self.0.counters.event(outcome);
        if !L::KEEPS_COUNTS || !self.0.counters.must_store() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return self.0.counters.stores() };
        // The task must not keep the ledger of a dropped receiver.
        let parts = Arc::downgrade(&self.0);
        runtime.spawn(async move {
            tokio::time::sleep(STORE_DELAY).await;
            let Some(parts) = parts.upgrade() else { return };
            parts.counters.stores();
            let receiver = Self(parts);
            if let Err(error) = receiver.store_counts().await {
                tracing::debug!(%error, "events were not counted; their counts are stored with later ones");
            }
        });
    }

    /// Stores what was counted. Logs the rate of duplicates if there were any.
    pub(crate) async fn store_counts(&self) -> Result<(), LedgerError> {
        let (counters, ledger) = (&self.0.counters, &self.0.ledger);
        let seen = counters.take_unstored();
        if seen.total == 0 {
            return Ok(());
        }
        let unstored = PutBack(self, Some(seen));
        within_timeout(ledger.count(seen)).await?;
        unstored.are_stored();
        let window = self.0.options.duplicate_window;
        let rate = within_timeout(ledger.counts(window)).await?;
        counters.rate_within_window(rate);
        if seen.duplicates > 0 {
            let DuplicateRate { total, duplicates } = rate;
            let hours = window.as_secs().div_ceil(HOUR.as_secs()).max(1);
            tracing::info!(
                receiver = counters.name(),
                duplicates,
                total,
                hours,
                "duplicate rate: {rate} of {total} events within {hours} h"
            );
        }
        Ok(())
    }
}

async fn within_timeout<T>(work: impl Future<Output = Result<T, LedgerError>>) -> Result<T, LedgerError> {
    match tokio::time::timeout(LEDGER_TIMEOUT, work).await {
        Ok(result) => result,
        Err(_) => Err(LedgerError::Unavailable("no answer in time".into())),
    }
}

/// Puts counts back that were not stored, also when the work is dropped.
struct PutBack<'a, L: Ledger>(&'a Receiver<L>, Option<DuplicateRate>);

impl<L: Ledger> PutBack<'_, L> {
    fn are_stored(mut self) {
        self.1 = None;
    }
}

impl<L: Ledger> Drop for PutBack<'_, L> {
    fn drop(&mut self) {
        if let Some(seen) = self.1.take() {
            self.0.0.counters.add_unstored(seen);
        }
    }
}
