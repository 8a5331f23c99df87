//! Ledgers remember which events were handled. There are two kinds. A *transactional* ledger marks an event in the
//! transaction of its handler: both are committed or neither. A *lease* ledger marks it separately: after a crash between
//! the work and the mark the event is handled again.

use crate::{DuplicateRate, Event};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How often an event has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Once, for everything that the handler writes in its transaction.
    ExactlyOnceEffect,
    /// Once as a rule; again after a crash or an expired lease between the work and its mark.
    AtLeastOnce,
}

/// The result of a claim.
#[derive(Debug)]
pub enum Claim<W> {
    /// The event is new. The caller has it until the work is completed, abandoned or dropped.
    New(W),
    /// The event was handled before.
    Duplicate,
    /// An event with this id and another body was handled before, or is being handled.
    OtherBody,
    /// Another copy is still being handled, and the wait has timed out.
    InProgress,
}

/// The ledger failed. Nothing was handled, except when a lease could not be completed: then the effect happened, is not
/// marked, and may happen again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The ledger cannot be reached, or reports an error: the sender should retry.
    #[error("the ledger is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The lease expired, or the transaction could not be committed: the event is probably not marked. A connection can be
    /// lost between a commit and its answer; then the next copy is a duplicate.
    #[error("the work was not completed: {0}")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Remembers which events were handled.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a ledger",
    note = "use the type of the ledger that the receiver was built with"
)]
pub trait Ledger: Send + Sync + 'static {
    /// The work of a claimed event: a transaction or a lease.
    type Work: Work;

    /// The guarantee of the ledger for repeated events.
    const GUARANTEE: Guarantee;

    /// Whether it stores [counts](Self::count).
    const KEEPS_COUNTS: bool = false;

    /// Claims an event for the first caller. While another copy is being handled, this waits for its end, up to
    /// `wait_timeout`.
    ///
    /// Dropping the future must leave nothing claimed: some frameworks drop the future of a request when its connection
    /// closes.
    fn claim(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> impl Future<Output = Result<Claim<Self::Work>, LedgerError>> + Send;

    /// Stores the error of a failed handler, after its work was abandoned. The note is not a mark: the next copy is handled.
    /// The answer does not wait for the note. If a copy was handled meanwhile, the note must change nothing.
    ///
    /// By default nothing is stored.
    fn note_failure(
        &self,
        event: &Event,
        error: &str,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send {
        let _ = (event, error);
        async { Ok(()) }
    }

    /// The stored error of an event. `None`: there is none, or the event was handled since.
    fn failure(
        &self,
        event_id: &str,
    ) -> impl Future<Output = Result<Option<FailedEvent>, LedgerError>> + Send {
        let _ = event_id;
        async { Ok(None) }
    }

    /// Adds to the counts of events that were handled or known. They are what the rate of duplicates is computed from, so
    /// that it survives a restart. Only called where [`KEEPS_COUNTS`](Self::KEEPS_COUNTS).
    fn count(&self, seen: DuplicateRate) -> impl Future<Output = Result<(), LedgerError>> + Send {
        let _ = seen;
        async { Ok(()) }
    }

    /// The counts of this time, of all processes that use the ledger. By whole hours, of which the present one is the last.
    fn counts(&self, within: Duration) -> impl Future<Output = Result<DuplicateRate, LedgerError>> + Send {
        let _ = within;
        async { Ok(DuplicateRate::default()) }
    }

    /// Removes marks older than this and returns their number. Failure notes and counts of the same age are removed too.
    fn clean(&self, older_than: Duration) -> impl Future<Output = Result<u64, LedgerError>> + Send;
}

/// An event whose handler failed and that was not handled since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedEvent {
    /// The type of the event.
    pub event_type: String,
    /// The last error of the handler, up to [`FailedEvent::LONGEST_ERROR`] bytes.
    pub error: String,
    /// The time of the failure in UTC: `2026-01-31T12:30:45.678Z`.
    pub failed_at: String,
}

impl FailedEvent {
    /// The maximum length of a stored error, in bytes.
    pub const LONGEST_ERROR: usize = 4096;

    /// Cuts an error to the maximum length.
    pub fn kept(error: &str) -> &str {
        &error[..error.floor_char_boundary(Self::LONGEST_ERROR)]
    }
}

/// The work of a claimed event. Dropping it abandons the event.
pub trait Work: Send + 'static {
    /// Marks the event as handled: further copies are duplicates.
    fn complete(self) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Gives the event up after a failure: the next copy can claim it.
    fn abandon(self) -> impl Future<Output = ()> + Send;
}

impl<L: Ledger> Ledger for Arc<L> {
    type Work = L::Work;

    const GUARANTEE: Guarantee = L::GUARANTEE;

    const KEEPS_COUNTS: bool = L::KEEPS_COUNTS;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<Self::Work>, LedgerError> {
        (**self).claim(event, wait_timeout).await
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        (**self).note_failure(event, error).await
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        (**self).failure(event_id).await
    }

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        (**self).count(seen).await
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        (**self).counts(within).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        (**self).clean(older_than).await
    }
}
