//! The delivery engine. Every file is a stage of a message's life:
//!
//! `intake` accepts an event in one commit · `dispatcher` owns the lanes · `turns` decides
//! whose turn it is · `lane` is the queue of one endpoint · `gates` hold back origins that look
//! down · `attempt` signs and sends · `recorder` judges and writes · `sweep` finds what memory
//! does not know of · `retention` removes what is no longer kept.
//!
//! Time comes from [`Clock`], chance from [`Entropy`], requests leave through [`Transport`] and
//! everything durable is in a [`Store`](aldaba_store::Store): a simulation brings its own of each.

mod attempt;
mod background;
mod blocking_pool;
mod cancel;
mod clock;
mod clock_trust;
mod content;
mod credentials;
mod data_folder;
mod directory;
mod dispatch;
mod dispatcher;
mod due_times;
mod engine;
mod entries;
mod entropy;
mod event_types;
mod expiry;
mod expunge;
mod forwarded;
mod gates;
mod headers;
mod hosts;
mod installation;
mod intake;
mod lane;
mod matching;
mod operational;
mod options;
mod orphans;
mod outlook;
mod patience;
mod places;
mod policies;
mod profile;
mod profiles;
mod recorder;
mod replay;
mod resend;
mod retention;
mod schema;
mod sent_headers;
mod source;
mod sweep;
mod target;
mod transport;
mod tries;
mod turns;
mod vault;
pub mod wire;

pub use background::Background;
pub use cancel::{Cancel, Cancelled};
pub use clock::{Clock, MAX_TRUSTED_STEP, RuntimeClock, SteppedClock, SystemClock};
pub use clock_trust::{CLOCK_SETTING, ClockRecord, ClockState, ClockTrust};
pub use credentials::{
    ApiKeys, CachedKey, Credentials, KEY_PREFIX, MAX_SESSION, NewKey, Revocations, check_key_name, digest_of,
    make_key,
};
pub use data_folder::{DataFolder, FolderError, key_from_hex};
pub use directory::{
    ChangeError, CreateOutcome, Directory, DirectoryAccess, IdempotencyDigest, KeyRotation, NewApplication,
    NewEndpoint, NewEventType, Outage, PublicKey, PutOutcome,
};
pub use dispatch::{DispatchError, NewDispatch};
pub use engine::{Engine, Parts, StartError};
pub use entropy::{Entropy, SystemEntropy};
pub use event_types::EventTypes;
pub use forwarded::ForwardedHeaders;
pub use gates::Behind;
pub use headers::{EndpointHeaders, HeaderProblem};
pub use hosts::HeldHost;
pub use installation::{DEFAULT_ORGANIZATION, Installation, Setup, SetupError, default_organization};
pub use intake::{Direct, FromSource, NewEvent, Quotas, SendError, Sent};
pub use matching::{Mismatch, mismatches};
pub use operational::{OPERATIONAL_EVENTS, management};
pub use options::{MAX_GATES, MAX_GATES_PER_ORGANIZATION, Options, REQUESTS_PER_ORIGIN};
pub use outlook::{HostHold, Outlook};
pub use policies::Policies;
pub use profile::{Brand, Profile, ProfileError, ProfileSpec};
pub use profiles::{Profiles, ProfilesError};
pub use replay::{Counted, MOST_OPENED, NewReplay, Replays};
pub use resend::{ByHand, NewResend, ResendError};
pub use retention::RetentionOptions;
pub use schema::{CheckError, PayloadError, PayloadProblem, Schema, SchemaError, Schemas};
pub use sent_headers::SentHeaders;
pub use source::{
    HeaderCondition, HmacSettings, InboundError, InboundEvent, InspectedRequest, LoadedSource, NewSource,
    ReceiveError, Reception, RefusedRequest, SOURCE_TYPES, SourceAnswer, SourceCache, SourceCounters,
    SourceCounts, SourceProblem, SourceSecrets, SourceSettings, secret_field,
};
pub use transport::{RESPONSE_KEPT, Sending, Transport, WireRequest, WireResponse};
pub use tries::Tries;
pub use vault::{Secrets, Vault, VaultError};
