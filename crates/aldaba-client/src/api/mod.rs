//! The resources of the API, one file each. A method is one request; its errors are those of [`Error`](crate::Error).

mod alerts;
mod api_keys;
mod applications;
mod attempts;
mod audit;
mod batches;
mod deliveries;
mod destinations;
mod dispatches;
mod endpoint_keys;
mod endpoints;
mod event_types;
mod health;
mod hosts;
mod jobs;
mod messages;
mod operational;
mod policies;
mod portal;
mod profiles;
mod replays;
mod source_types;
mod sources;
mod statistics;

pub use aldaba_api::{
    Actor, Alert, AlertEmail, AlertEmailState, AlertRule, AlertRules, ApiKey, ApiKeyPatch, Application,
    ApplicationPatch, Attempt, AttemptCount, AttemptHeaders, AttemptStats, AuditEntry, BackgroundHealth,
    BackgroundTask, BulkReplay, CancelMessages, Certificate, CheckState, ClockHealth, ClockStatus, Condition,
    CreatedApiKey, DeliveringHealth, DeliveringStatus, Delivery, DeliveryState, Destination, Discard,
    Discarded, Dispatch, DispatchStatus, Endpoint, EndpointHeaders, EndpointHealth, EndpointMessage,
    EndpointPatch, EndpointStats, EndpointStatus, EndpointUpdate, Erase, ErasureCount, EventType,
    EventTypePatch, EventTypeStats, EventTypeUpdate, ExpireTokens, FieldChange, HeaderCondition,
    HeadersPatch, Health, HealthChange, Host, HostScope, Identity, ImportOpenApi, ImportedEventType,
    ImportedEventTypes, ImportedOpenApi, IngestUrl, JobEnd, JobRecord, JobStatus, KeySet, LastError,
    Liveness, Message, MessageSearch, MutualTls, NewApiKey, NewApplication, NewBatch, NewDispatch,
    NewEndpoint, NewEventType, NewMessage, NewPolicy, NewPortalAccess, NewProfile, NewSource, OnExhausted,
    Ordering, PartHealth, PartStatus, PlannedAttempt, Policy, PolicyEndpointFails, PolicyGate, PolicyJitter,
    PolicyLimit, PolicyProbe, PolicyRedirects, PolicyRetention, PolicyRetryAfter, PolicySchedule,
    PolicyTimeouts, PolicyUpdate, PortalAccess, Precheck, Prechecked, Previewed, Profile, ProfileSignature,
    ProfileUpdate, PublicKey, RawPayload, Readiness, ReadinessCheck, ReadyStatus, Released, Replay,
    ReplayCount, Resent, RestartingTask, Resume, Resumed, RetentionOfDead, RetentionOfDelivered,
    RotateSecret, Scope, SendExample, SetHeaders, SigningSecret, Source, SourceAnswer, SourceCounters,
    SourceEvent, SourceEventStatus, SourcePatch, SourceRefusal, Status, TaskStatus, Throttling,
    ThrottlingStatus, TokensHealth, TokensStatus, TransformationsParams, Trigger, WhenDisabled, Whoami,
};
pub use alerts::*;
pub use api_keys::*;
pub use applications::*;
pub use attempts::*;
pub use audit::*;
pub use batches::*;
pub use deliveries::*;
pub use destinations::*;
pub use dispatches::*;
pub use endpoints::*;
pub use event_types::*;
pub use hosts::*;
pub use jobs::*;
pub use messages::*;
pub use operational::*;
pub use policies::*;
pub use profiles::Profiles;
pub use replays::*;
pub use source_types::*;
pub use sources::*;
pub use statistics::*;
