//! Applications, endpoints, policies, profiles, event types, keys: what decides how messages are delivered, and the
//! changes to it.

mod audit_entries;
mod credentials;
mod directory;
mod event_types;
mod headers;
mod policies;
mod profile;
mod profiles;
mod schema;
mod vault;

pub(crate) use audit_entries::Entries;
pub(crate) use credentials::KeyUseWriter;
pub use credentials::{
    ApiKeys, CachedKey, Credentials, KEY_PREFIX, MAX_SESSION, NewKey, Revocations, check_key_name, digest_of,
    make_key,
};
pub use directory::{
    ChangeError, CreateOutcome, Directory, DirectoryAccess, IdempotencyDigest, KeyRotation, NewApplication,
    NewEndpoint, NewEventType, Outage, PublicKey, PutOutcome,
};
pub(crate) use directory::{DirectoryCore, FilterBudgets, Tenants};
pub use event_types::EventTypes;
pub(crate) use headers::is_sensitive;
pub use headers::{EndpointHeaders, HeaderProblem};
pub use policies::Policies;
pub(crate) use profile::HeaderContext;
pub use profile::{Brand, Profile, ProfileError, ProfileSpec};
pub use profiles::{Profiles, ProfilesError};
pub(crate) use schema::CheckBudget;
pub use schema::{CheckError, PayloadError, PayloadProblem, Schema, SchemaError, Schemas};
pub use vault::{Secrets, Vault, VaultError};
