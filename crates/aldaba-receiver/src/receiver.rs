use crate::counters::Counters;
use crate::running_tasks::RunningTasks;
use crate::{
    Builder, Challenge, Clock, DuplicateRate, Guarantee, Ledger, LedgerError, OnFailure, WhenSenderLeaves,
};
use aldaba_signature::inbound::Inspector;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Receives the webhooks of one sender: verifies each, runs its handler once, and returns the answer. Clones are handles
/// on the same receiver.
pub struct Receiver<L>(pub(crate) Arc<ReceiverParts<L>>);

pub(crate) struct ReceiverParts<L> {
    pub(crate) inspector: Inspector,
    pub(crate) ledger: L,
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) running_tasks: RunningTasks,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) wait_timeout: Duration,
    pub(crate) on_failure: OnFailure,
    pub(crate) when_sender_leaves: WhenSenderLeaves,
    pub(crate) max_body: usize,
    pub(crate) body_time: Duration,
    pub(crate) handler_time: Duration,
    pub(crate) after_commit_time: Duration,
    pub(crate) clock: Clock,
    pub(crate) challenge: Option<Challenge>,
    pub(crate) duplicate_window: Duration,
}

impl<L: Ledger> Receiver<L> {
    /// A receiver with the default limits; [`Receiver::builder`] sets others.
    pub fn new(inspector: Inspector, ledger: L) -> Self {
        Self::builder(inspector, ledger).build()
    }

    /// A builder of a receiver that verifies requests with `inspector` and remembers events in `ledger`.
    pub fn builder(inspector: Inspector, ledger: L) -> Builder<L> {
        Builder::new(inspector, ledger)
    }

    /// The guarantee of the ledger: how often an event has its effect.
    pub const fn guarantee(&self) -> Guarantee {
        L::GUARANTEE
    }

    /// The ledger of this receiver.
    pub fn ledger(&self) -> &L {
        &self.0.ledger
    }

    /// How many events were duplicates, since this receiver was built.
    pub fn duplicate_rate(&self) -> DuplicateRate {
        self.0.counters.duplicate_rate()
    }

    /// How many events were duplicates within this time, as the ledger has counted them: of all processes that use it, and of
    /// those before a restart. By whole hours, of which the present one is the last. A ledger that keeps no counts
    /// ([`Ledger::KEEPS_COUNTS`]) has what this receiver has counted since it was built.
    pub async fn duplicate_rate_within(&self, window: Duration) -> Result<DuplicateRate, LedgerError> {
        if !L::KEEPS_COUNTS {
            return Ok(self.duplicate_rate());
        }
        self.store_counts().await?;
        self.0.ledger.counts(window).await
    }

    /// Removes marks older than this and returns their number. An event without its mark is new again: keep marks for as long
    /// as the sender may send the event, including manual resends. [`Cleanup`](crate::Cleanup) calls this daily.
    pub async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let cleaned = self.0.ledger.clean(older_than).await;
        match &cleaned {
            Ok(marks) => self.0.counters.cleaned(*marks),
            Err(_) => self.0.counters.cleanup_failed(),
        }
        cleaned
    }

    /// Waits for running handlers and actions, up to `limit`, and returns how many still run. Call it before the program
    /// ends: a handler continues after its sender has disconnected, and an HTTP server does not wait for it.
    ///
    /// Afterwards what was counted is stored, within the same limit once more.
    pub async fn finish(&self, limit: Duration) -> usize {
        let running = self.0.running_tasks.ended(limit).await;
        if L::KEEPS_COUNTS && !matches!(tokio::time::timeout(limit, self.store_counts()).await, Ok(Ok(()))) {
            tracing::debug!("the last events were not counted");
        }
        running
    }
}

impl<L> Clone for Receiver<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L> fmt::Debug for Receiver<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("options", &self.0.options).finish_non_exhaustive()
    }
}
