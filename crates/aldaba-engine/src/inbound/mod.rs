//! Sources: requests of other senders are verified and become messages.

mod forwarded;
mod source;

pub use forwarded::ForwardedHeaders;
pub use source::{
    Door, DoorError, Doors, HeaderCondition, HmacSettings, InboundEvent, NewSource, Opened, ReceiveError,
    Reception, Refused, SOURCE_TYPES, SourceAnswer, SourceCounts, SourceProblem, SourceSecrets,
    SourceSettings, Tally, secret_field,
};
pub(crate) use source::{Looking, Sources, token_digest};
