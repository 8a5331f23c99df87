//! What came of a change.

use crate::{Replay, Sequenced};
use aldaba_delivery::{EndpointId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Made. An endpoint that was deleted with it is named, so that its lane can end. Those of a deleted application
    /// are not: there may be very many. They count as deleted from this commit on.
    Done {
        removed: Vec<EndpointId>,
    },
    /// The idempotency key was used before; nothing was changed. The bytes of the id made then.
    Repeated {
        resource: [u8; 20],
    },
    /// The uid belongs to another one (an application's, a source's, or an endpoint's of the application); or a
    /// policy or profile has the name.
    UidTaken,
    NotFound,
    /// The application, endpoint or event type is no longer what the change was made for. Nothing was changed.
    Stale,
    /// The application has as many endpoints, or running replays, or the organization as many keys or sources, as it
    /// may have.
    TooMany,
    /// The application has as many mail addresses that are not confirmed, or at all, as it may have. Nothing was changed.
    TooManyAddresses,
    /// The endpoint names a policy that is not there.
    NoSuchPolicy,
    /// The endpoint names a wire profile that is not there.
    NoSuchProfile,
    /// The endpoint cannot become an ordered one now. Nothing was changed.
    NotOrderable(OrderingObstacle),
    /// This endpoint names the policy or the profile; without one, a source owns the application.
    InUse {
        endpoint: Option<EndpointId>,
    },
    /// The endpoint was not active before, and is now. Since when it had failed, as far as that is known, and
    /// the replay that was asked for, if anything has died since then.
    Resumed {
        failing_since: Option<Timestamp>,
        recovery: Option<Box<Replay>>,
    },
    /// The endpoint is turned off: it cannot be resumed, and turning it on resumes it. Nothing was changed.
    TurnedOff,
    /// These have taken their places, in this order.
    Sequenced(Vec<Sequenced>),
    /// There was nothing to change.
    Unchanged,
}

impl Changed {
    /// Made, and no endpoint was deleted with it.
    pub(crate) fn done() -> Self {
        Self::Done { removed: Vec::new() }
    }

    /// By how many rows were changed.
    pub(crate) fn found(rows: usize) -> Self {
        if rows == 0 { Self::NotFound } else { Self::done() }
    }

    /// By how many rows were inserted. None: the very same thing was handed in twice.
    pub(crate) fn made(rows: usize, id: &[u8; 20]) -> Self {
        if rows == 0 { Self::Repeated { resource: *id } } else { Self::done() }
    }

    /// Whether there is something new that a repeat of the request must not make again.
    pub fn made_something(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Resumed { recovery: Some(_), .. })
    }

    /// Whether anything is different now. Only then does the audit log get a row, and are notices kept.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Resumed { .. })
    }
}

/// Why an endpoint cannot become an ordered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderingObstacle {
    /// More deliveries wait for it than one commit can put in order.
    TooManyPending,
}

impl OrderingObstacle {
    /// How many waiting deliveries one commit puts in order.
    pub const MAX_PENDING: usize = 10_000;
}
