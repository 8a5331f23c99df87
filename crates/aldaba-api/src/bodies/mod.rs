//! The declarations, one file for each resource.

mod alert;
mod api_key;
mod application;
mod audit;
mod dispatch;
mod endpoint;
mod erasure;
mod event_type;
mod health;
mod host;
mod policy;
mod portal;
mod profile;
mod source;
// The fields of these are fields of others too.
#[macro_use]
mod message;
#[macro_use]
mod attempt;
mod delivery;
mod destination;
mod replay;

pub use alert::*;
pub use api_key::*;
pub use application::*;
pub use attempt::*;
pub use audit::*;
pub use delivery::*;
pub use destination::*;
pub use dispatch::*;
pub use endpoint::*;
pub use erasure::*;
pub use event_type::*;
pub use health::*;
pub use host::*;
pub use message::*;
pub use policy::*;
pub use portal::*;
pub use profile::*;
pub use replay::*;
pub use source::*;
