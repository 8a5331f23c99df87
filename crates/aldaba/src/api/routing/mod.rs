//! How a route is declared and who may use it.

pub(crate) mod auth;
pub(crate) mod nearest_route;
pub(crate) mod route;
