//! Endpoints: their configuration and their deliveries.

mod alerts;
pub(crate) mod egress;
pub(crate) mod examples;
pub(crate) mod explain;
pub(crate) mod filters;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod mtls;
pub(crate) mod operational;
pub(crate) mod ordering;
mod owner;
pub(crate) mod policies;
pub(crate) mod profile_resource;
pub(crate) mod profiles;
pub(crate) mod secrets;
