//! Event types: the kinds of events that an organization sends.

pub(crate) mod body;
pub(crate) mod import;
mod routes;

pub(crate) use crate::questions::is_operational;
pub(crate) use routes::{apart, render};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), import::routes()];
    parts.into_iter().flatten().collect()
}
