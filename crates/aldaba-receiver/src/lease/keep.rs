use futures_util::future::BoxFuture;
use std::error::Error;

pub(crate) type Trouble = Box<dyn Error + Send + Sync>;

/// One event's lease in the store that keeps it, and what its owner may do there. Every step may be taken twice: an
/// answer that was lost is asked for again.
pub(crate) trait Keep: Send + Sync + 'static {
    /// Whose lease it is, for the log.
    fn event_id(&self) -> &str;

    /// Takes it, if it is nobody's and the event is not marked.
    fn ask(&self) -> BoxFuture<'_, Result<Asked, Trouble>>;

    /// Lets it live on. One that has expired and is nobody's is taken again.
    fn renew(&self) -> BoxFuture<'_, Result<Standing, Trouble>>;

    /// Marks the event as handled and gives the lease back, in one step; unless another has taken it.
    fn complete(&self) -> BoxFuture<'_, Result<Standing, Trouble>>;

    /// Gives it back, if it is still this owner's.
    fn release(&self) -> BoxFuture<'_, Result<Standing, Trouble>>;
}

/// What came of asking for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Granted,
    Duplicate,
    OtherBody,
    InProgress,
}

/// What had become of a lease when its owner came to it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It was the owner's.
    Ours,
    /// It had expired, and was nobody's.
    Lapsed,
    /// It had expired, and another has taken it, or has handled the event.
    Taken,
}
