//! What remembers which events were handled. There are two kinds, and the difference is all that matters: a
//! *transactional* ledger marks an event in the very transaction in which the handler works, so that both come
//! true or neither; a *lease* ledger marks it beside the work, and a crash between the two makes it run again.

use crate::Event;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How often an event that arrives has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Once, as long as the handler does its business in the transaction that it is given.
    ExactlyOnceEffect,
    /// Once as a rule; again where a crash or an expired lease comes between the work and its mark.
    AtLeastOnce,
}

/// What came of asking for an event.
#[derive(Debug)]
pub enum Claim<W> {
    /// Nobody has handled it: it is the caller's, until the work is completed, abandoned or dropped.
    New(W),
    /// It was handled before.
    Duplicate,
    /// An event of this id was handled before, or is being handled, and its body is another one.
    OtherBody,
    /// Somebody is still at it, and the caller's patience is over.
    InProgress,
}

/// The ledger could not do its part. Nothing was handled; except where a lease could not be completed: then the effect has
/// happened, is not marked, and may happen again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// It cannot be reached, or is in trouble: the sender should try again.
    #[error("the ledger is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The work lost its lease, or its transaction could not be committed: it was not marked as done, as far as is known.
    /// A connection can be lost between a commit and its answer; then the next copy finds out.
    #[error("the work was not completed: {0}")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Remembers which events were handled, so that each has its effect once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no ledger",
    note = "name the type of the ledger that the receiver was made with"
)]
pub trait Ledger: Send + Sync + 'static {
    /// What the handler works in while the event is its own: a transaction, or a lease.
    type Work: Work;

    /// What the ledger promises about repeated events.
    const GUARANTEE: Guarantee;

    /// Takes an event for whoever asks first. While another one is at it, this waits for the end of that work, as
    /// long as `patience` lasts.
    ///
    /// A future that is dropped before its end must leave nothing claimed: some frameworks drop the futures of requests
    /// whose connections were closed.
    fn claim(
        &self,
        event: &Event,
        patience: Duration,
    ) -> impl Future<Output = Result<Claim<Self::Work>, LedgerError>> + Send;

    /// Keeps what a handler has failed with, after its work was abandoned. The note is no mark: the event is anybody's. The
    /// answer does not wait for it, so that it may come after the next copy was handled; then it must change nothing.
    ///
    /// Where a ledger has no place for it, nothing is kept.
    fn note_failure(
        &self,
        event: &Event,
        error: &str,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send {
        let _ = (event, error);
        async { Ok(()) }
    }

    /// What was noted of an event whose handler has failed. `None`: nothing, or it was handled since.
    fn failure(
        &self,
        event_id: &str,
    ) -> impl Future<Output = Result<Option<FailedEvent>, LedgerError>> + Send {
        let _ = event_id;
        async { Ok(None) }
    }

    /// Removes marks that are older than this, and says how many there were. Notes of failures that are as old go too.
    fn clean(&self, older_than: Duration) -> impl Future<Output = Result<u64, LedgerError>> + Send;
}

/// An event whose handler has failed, and that was not handled since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedEvent {
    /// The type of the event.
    pub event_type: String,
    /// What the handler failed with the last time, up to [`FailedEvent::LONGEST_ERROR`] bytes of it.
    pub error: String,
    /// When that was, in UTC: `2026-01-31T12:30:45.678Z`.
    pub failed_at: String,
}

impl FailedEvent {
    /// How many bytes of an error are kept.
    pub const LONGEST_ERROR: usize = 4096;

    /// As much of an error as is kept.
    pub fn kept(error: &str) -> &str {
        &error[..error.floor_char_boundary(Self::LONGEST_ERROR)]
    }
}

/// An event that is being handled. Dropping it abandons it.
pub trait Work: Send + 'static {
    /// The handler has done its part: from now on the event is a duplicate.
    fn complete(self) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// The handler has failed: the event is anybody's again.
    fn abandon(self) -> impl Future<Output = ()> + Send;
}

impl<L: Ledger> Ledger for Arc<L> {
    type Work = L::Work;

    const GUARANTEE: Guarantee = L::GUARANTEE;

    async fn claim(&self, event: &Event, patience: Duration) -> Result<Claim<Self::Work>, LedgerError> {
        (**self).claim(event, patience).await
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        (**self).note_failure(event, error).await
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        (**self).failure(event_id).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        (**self).clean(older_than).await
    }
}
