//! Deliveries: one message on its way to one endpoint.

pub(crate) mod discard;
pub(crate) mod query;
mod routes;

pub(crate) use routes::retries;

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), discard::routes()];
    parts.into_iter().flatten().collect()
}
