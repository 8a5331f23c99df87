//! Credentials: API keys, portal tokens, and the caller's own.

pub(crate) mod api_key;
pub(crate) mod portal;
pub(crate) mod whoami;

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [api_key::routes(), portal::routes(), whoami::routes()];
    parts.into_iter().flatten().collect()
}
