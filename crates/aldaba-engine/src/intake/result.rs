//! What a sender hears of an event.

use crate::configuration::CheckError;
use aldaba_delivery::{MessageId, SourceId, Timestamp};
use aldaba_store::{Error, NewMessage, QuotaOf};

/// An event that is safe on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendReceipt {
    New {
        message: MessageId,
        at: Timestamp,
        /// Nothing goes out before this moment.
        deliver_at: Option<Timestamp>,
    },
    /// A former request with the same idempotency key had sent this one.
    Repeated { message: MessageId },
}

impl SendReceipt {
    /// It is on disk now.
    pub(super) fn new(message: &NewMessage) -> Self {
        Self::New { message: message.id, at: message.created_at, deliver_at: message.deliver_at }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("there is no such application")]
    NotFound,
    #[error("the application already has a message with this event id")]
    EventIdTaken(MessageId),
    #[error("the moment of delivery is more than 366 days ahead")]
    TooFarAhead,
    #[error("the payload does not fit its event type")]
    Unfit(CheckError),
    /// The address names it.
    #[error("there is no policy `{0}`")]
    UnknownPolicy(String),
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    #[error("the application's configuration keeps changing")]
    Unsettled,
    /// So many messages were sent today, as many as may be.
    #[error("{most} messages were sent today")]
    OverQuota {
        whose: QuotaOf,
        most: u64,
        at: Timestamp,
        /// When the day is over.
        until: Timestamp,
    },
    /// It takes only what comes in through its source.
    #[error("the application belongs to the source {0}, and takes only what comes in through that")]
    OfSource(SourceId),
    /// It was not refused, and may yet be accepted.
    #[error("the store takes long; what was handed in may be stored yet")]
    Late,
    #[error(transparent)]
    Store(#[from] Error),
}
