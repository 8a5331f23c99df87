//! Applications: the tenants that messages and endpoints belong to.

mod routes;
pub(crate) mod target;

pub(crate) use routes::{new_application, no_mail_note};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [routes::routes()];
    parts.into_iter().flatten().collect()
}
