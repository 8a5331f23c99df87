//! Applications: the tenants that messages and endpoints belong to.

pub(crate) mod erase;
pub(crate) mod export;
mod routes;
pub(crate) mod target;

pub(crate) use routes::{new_application, no_mail_note, render};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes(), erase::routes(), export::routes()];
    parts.into_iter().flatten().collect()
}
