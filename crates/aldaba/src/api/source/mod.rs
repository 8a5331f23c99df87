//! Sources: URLs that receive the webhooks of other senders.

pub(crate) mod body;
pub(crate) mod config;
pub(crate) mod endpoint;
pub(crate) mod event;
pub(crate) mod inbound_request;
mod routes;

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), endpoint::routes(), event::routes()];
    parts.into_iter().flatten().collect()
}
