//! Sources: requests of other senders are verified and become messages.

mod forwarded;
mod source;

pub use forwarded::ForwardedHeaders;
pub use source::{
    HeaderCondition, HmacSettings, InboundError, InboundEvent, InspectedRequest, LoadedSource, NewSource,
    ReceiveError, Reception, RefusedRequest, SOURCE_TYPES, SourceAnswer, SourceCache, SourceCounters,
    SourceCounts, SourceProblem, SourceSecrets, SourceSettings, secret_field,
};
pub(crate) use source::{InspectionQueue, SourceServices, token_digest};
