//! Why a change was not made.

use crate::configuration::vault::VaultError;
use aldaba_delivery::{ApiKeyId, EndpointId, SourceId, Timestamp};
use aldaba_store::{Error, OrderingObstacle};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such application or endpoint")]
    NotFound,
    #[error("the uid is taken")]
    UidTaken,
    #[error("the application has as many endpoints as it may have")]
    TooMany,
    #[error("the application has as many running replays as it may have")]
    TooManyReplays,
    #[error("the endpoint has as many former keys as it may have")]
    TooManyKeys,
    #[error("the organization has as many API keys as it may have")]
    TooManyApiKeys,
    #[error("the organization has as many sources as it may have")]
    TooManySources,
    /// Until this moment.
    #[error("the source has as many former tokens as it may have")]
    TooManyTokens { now: Timestamp, until: Timestamp },
    #[error("the application belongs to the source {0}")]
    OfSource(SourceId),
    #[error("{0} tokens or sessions have been ended, as many as are remembered")]
    TooManyRevocations(usize),
    #[error("the request has made the API key {0} before, and it cannot be shown again")]
    Repeated(ApiKeyId),
    #[error("the request has made {0} before, and that has been deleted since")]
    MadeAndGone(String),
    #[error("the organization has as many event types as it may have")]
    TooManyEventTypes,
    #[error("the schemas of the organization are larger than they may be together")]
    SchemasTooLarge,
    #[error("the filter takes {work} looks; it may take {most}")]
    FilterTooCostly { work: u64, most: u64 },
    #[error("the filters of the application take {work} looks together; they may take {most}")]
    FiltersTooCostly { work: u64, most: u64 },
    #[error("it keeps being changed by others")]
    Unsettled,
    #[error("an endpoint uses it")]
    InUse(Option<EndpointId>),
    #[error("what waits for the endpoint cannot be put in order now")]
    NotOrderable(OrderingObstacle),
    #[error("`{0}` is no policy")]
    UnknownPolicy(String),
    #[error("`{0}` is no wire profile")]
    UnknownProfile(String),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] Error),
}
