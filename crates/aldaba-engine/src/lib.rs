//! The delivery engine. Every folder is a stage of a message's life:
//!
//! `intake` accepts an event in one commit · `scheduling` decides which delivery is sent next · `delivering` signs and
//! sends it · `wire` is the request itself · `recording` decides what its end means, and writes it · `replaying` sends
//! again · `alerting` judges the alert rules · `mailing` tells people · `housekeeping` has the background tasks · `configuration`
//! says where messages go and how · `inbound` takes in requests of other senders · `observing` says in numbers what happens ·
//! `traces` has spans of all that · `engine` puts all of it together.
//!
//! Time comes from [`Clock`], chance from [`Entropy`], requests leave through [`Transport`] and
//! everything durable is in a [`Store`](aldaba_store::Store): a simulation brings its own of each.

mod alerting;
mod blocking_pool;
mod clock;
mod configuration;
mod conflict_retry;
mod delivering;
mod engine;
mod entropy;
mod housekeeping;
mod inbound;
mod intake;
mod mailing;
mod observing;
mod options;
mod recording;
mod replaying;
mod scheduling;
mod traces;
pub mod wire;

pub use alerting::{AlertSettings, FiringCount};
pub use clock::{Clock, MAX_TRUSTED_STEP, RuntimeClock, SteppedClock, SystemClock};
pub use configuration::{
    ApiKeys, Brand, CachedKey, ChangeError, CheckError, CreateOutcome, Credentials, Directory,
    DirectoryAccess, EndpointHeaders, EventTypes, HeaderProblem, IdempotencyDigest, KEY_PREFIX, KeyRotation,
    MAX_SESSION, NewApplication, NewEndpoint, NewEventType, NewKey, Outage, PayloadError, PayloadProblem,
    Policies, Profile, ProfileError, ProfileSpec, Profiles, ProfilesError, PublicKey, PutOutcome,
    Revocations, Schema, SchemaError, Schemas, Secrets, Vault, VaultError, check_key_name, digest_of,
    make_key,
};
pub use conflict_retry::ConflictRetry;
pub use delivering::{MAX_STORED_RESPONSE_BYTES, Sending, SentHeaders, Transport, WireRequest, WireResponse};
pub use engine::{
    DEFAULT_ORGANIZATION, DataFolder, ENCRYPTION_CHECK, ENCRYPTION_FILE, Engine, FolderError, Installation,
    PAUSE_SETTING, Parts, PauseRecord, Setup, SetupError, StartError, default_organization, key_from_hex,
};
pub use entropy::{Entropy, SystemEntropy};
pub use housekeeping::{
    Background, CLOCK_SETTING, ClockRecord, ClockState, ClockTrust, ErasureCount, OPERATIONAL_EVENTS,
    RetentionOptions, management,
};
pub use inbound::{
    ForwardedHeaders, HeaderCondition, HmacSettings, InboundError, InboundEvent, InspectedRequest,
    LoadedSource, NewSource, ReceiveError, Reception, RefusedRequest, SOURCE_TYPES, SourceAnswer,
    SourceCache, SourceCounters, SourceCounts, SourceProblem, SourceSecrets, SourceSettings, secret_field,
};
pub use intake::{
    Direct, DispatchError, FromSource, Mismatch, NewDispatch, NewEvent, Quotas, SendError, SendReceipt,
    mismatches,
};
pub use mailing::{
    AlertMail, AlertText, MAX_MAIL_AGE, MAX_MAILS_PER_DAY, MAX_MAILS_PER_DAY_OF_ALL,
    MAX_MAILS_PER_DAY_OF_ORGANIZATION, MAX_SINGLE_MAILS, MailFailure, MailLink, MailLinkError, MailLinkKind,
    MailOptions, MailScope, MailTexts, MailTransport, OPERATOR_INTERVAL, OutgoingMail, SendingMail, escaped,
    one_line, test_mail, texts,
};
pub use observing::{CertificateExpiries, CertificateKind, SchedulerLoad, Scope, Statistics, WindowCounts};
pub use options::{MAX_GATES, MAX_GATES_PER_ORGANIZATION, Options, REQUESTS_PER_ORIGIN};
pub use replaying::{
    MAX_REPLAYED_DELIVERIES, ManualAttempt, NewReplay, NewResend, ReplayCount, Replays, ResendError,
};
pub use scheduling::{Cancel, Cancelled, GateBacklog, HeldHost, HostHold, SchedulingProgress, WaitReasons};
pub use traces::{
    Collector, CollectorError, CollectorUrl, EventTrace, RequestTrace, SampleRate, TraceContext, TraceCounts,
    TraceOptions, Tracer,
};
