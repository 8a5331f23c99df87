//! Messages: events that were sent.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod content;
pub(crate) mod destination;
pub(crate) mod headers;
mod routes;
pub(crate) mod schema_violations;
pub(crate) mod search;
pub(crate) mod subscriber_check;

pub(crate) use routes::{PAGE_BYTES, page, payloads, render};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [
        routes::routes(),
        batch::routes(),
        content::routes(),
        destination::routes(),
        search::routes(),
        subscriber_check::routes(),
    ];
    parts.into_iter().flatten().collect()
}
