//! Attempts: each request that was sent, and what came back.

pub(crate) mod list;
mod routes;

pub(crate) use routes::{Status, millis, render, render_with};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), list::routes()];
    parts.into_iter().flatten().collect()
}
