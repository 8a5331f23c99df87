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
pub(crate) use credentials::Uses;
pub use credentials::{
    Credentials, HeldKey, KEY_PREFIX, Keys, LONGEST_SESSION, NewKey, Revocations, check_key_name, digest_of,
    make_key,
};
pub use directory::{
    ChangeError, Directory, DirectoryAccess, Made, NewApplication, NewEndpoint, NewEventType, Once, Outage,
    PublicKey, Put, Rotation,
};
pub(crate) use directory::{Core, Loads, Tenants};
pub use event_types::EventTypes;
pub(crate) use headers::is_sensitive;
pub use headers::{EndpointHeaders, HeaderProblem};
pub use policies::Policies;
pub(crate) use profile::Facts;
pub use profile::{Brand, Profile, ProfileError, ProfileSpec};
pub use profiles::{Profiles, ProfilesError};
pub(crate) use schema::Allowance;
pub use schema::{Misfit, Problem, Schema, SchemaError, Schemas, Unfit};
pub use vault::{Secrets, Vault, VaultError};
