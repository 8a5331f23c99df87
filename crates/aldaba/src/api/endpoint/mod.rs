//! Endpoints: URLs that messages are delivered to.

pub(crate) mod body;
pub(crate) mod filter;
pub(crate) mod headers;
pub(crate) mod health;
pub(crate) mod jwks;
pub(crate) mod messages;
pub(crate) mod mtls;
pub(crate) mod ordering;
pub(crate) mod rate_limit_status;
mod routes;
pub(crate) mod secret;
pub(crate) mod send_example;

pub(crate) use routes::{
    EndpointIn, EndpointOut, EndpointUpdateIn, create, delete, find, list, put, reads_disabled, render, show,
    some_items,
};

use crate::api::routing::route::Route;

/// The operations of this resource.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [
        routes::routes(),
        headers::routes(),
        health::routes(),
        jwks::routes(),
        messages::routes(),
        mtls::routes(),
        rate_limit_status::routes(),
        secret::routes(),
        send_example::routes(),
    ];
    parts.into_iter().flatten().collect()
}
