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
    Application, ApplicationPatch, Condition, Endpoint, EndpointHealth, EndpointPatch, EndpointStatus,
    EndpointUpdate, EventType, EventTypePatch, EventTypeUpdate, HeaderCondition, LastError, NewApplication,
    NewEndpoint, NewEventType, NewMessage, NewSource, OnExhausted, Ordering, Precheck, Resume, RotateSecret,
    SendExample, Source, SourceAnswer, SourceCounters, SourcePatch, TransformationsParams, WhenDisabled,
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
pub use endpoint_keys::*;
pub use endpoints::*;
pub use event_types::*;
pub use health::*;
pub use hosts::*;
pub use jobs::*;
pub use messages::*;
pub use operational::*;
pub use policies::*;
pub use portal::*;
pub use profiles::*;
pub use replays::*;
pub use source_types::*;
pub use sources::*;
pub use statistics::*;
