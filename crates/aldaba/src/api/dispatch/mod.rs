//! Sends a message to a URL named in the request.

pub(crate) mod job;
mod routes;

pub(crate) use routes::{STATES, check_payload, new_record, parts, record, selection, sent_at};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), job::routes()];
    parts.into_iter().flatten().collect()
}
