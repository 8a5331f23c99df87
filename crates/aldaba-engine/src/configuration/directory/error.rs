//! Why a change was not made.

use crate::configuration::vault::VaultError;
use aldaba_delivery::{ApiKeyId, EndpointId, SourceId, Timestamp};
use aldaba_store::{Error, OrderingObstacle};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such application or endpoint")]
    NotFound,
    #[error("the uid is already in use")]
    UidTaken,
    #[error("the application has the maximum number of endpoints")]
    TooMany,
    #[error("the application has the maximum number of mail addresses that are not confirmed")]
    TooManyAddresses,
    #[error("the application has the maximum number of running replays")]
    TooManyReplays,
    #[error("the organization has the maximum number of running erasures")]
    TooManyErasures,
    #[error("the endpoint has the maximum number of former keys")]
    TooManyKeys,
    #[error("the organization has the maximum number of API keys")]
    TooManyApiKeys,
    #[error("the organization has the maximum number of sources")]
    TooManySources,
    /// `until`: when the first of them expires.
    #[error("the source has the maximum number of former tokens")]
    TooManyTokens { now: Timestamp, until: Timestamp },
    #[error("the application belongs to the source {0}")]
    OfSource(SourceId),
    #[error("{0} tokens or sessions are revoked, which is the maximum")]
    TooManyRevocations(usize),
    #[error("an earlier request with this key created the API key {0}, which cannot be shown again")]
    Repeated(ApiKeyId),
    #[error("an earlier request with this key created {0}, which was deleted since")]
    MadeAndGone(String),
    #[error("the organization has the maximum number of event types")]
    TooManyEventTypes,
    #[error("the schemas of the organization exceed their total size limit")]
    SchemasTooLarge,
    #[error("the match cost of the filter is {cost}; the limit is {limit}")]
    FilterTooCostly { cost: u64, limit: u64 },
    #[error("the match cost of the application's filters is {cost}; the limit is {limit}")]
    FiltersTooCostly { cost: u64, limit: u64 },
    #[error("other requests keep changing it; try again")]
    Unsettled,
    #[error("an endpoint uses it")]
    InUse(Option<EndpointId>),
    #[error("the endpoint is turned off; turning it on resumes it")]
    TurnedOff,
    #[error("the endpoint's pending deliveries cannot be ordered now")]
    NotOrderable(OrderingObstacle),
    #[error("unknown policy `{0}`")]
    UnknownPolicy(String),
    #[error("unknown wire profile `{0}`")]
    UnknownProfile(String),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] Error),
}
