use futures_util::future::BoxFuture;
use std::error::Error;

pub(crate) type StoreError = Box<dyn Error + Send + Sync>;

/// The lease of one event in its store. Each operation is idempotent: after a lost answer it is repeated.
pub(crate) trait StoredLease: Send + Sync + 'static {
    /// The event's id, for the log.
    fn event_id(&self) -> &str;

    /// Takes the lease, if it is free and the event is not marked.
    fn acquire(&self) -> BoxFuture<'_, Result<Acquisition, StoreError>>;

    /// Extends the lease. An expired lease that is free is taken again.
    fn renew(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>>;

    /// Marks the event as handled and releases the lease in one step, unless another owner has taken it.
    fn complete(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>>;

    /// Releases the lease, if this owner still has it.
    fn release(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>>;
}

/// The result of acquiring a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquisition {
    Granted,
    Duplicate,
    OtherBody,
    InProgress,
}

/// The state of a lease when its owner accesses it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The owner had it.
    Ours,
    /// It had expired, and was free.
    Lapsed,
    /// It had expired, and another owner has taken it or handled the event.
    Taken,
}
