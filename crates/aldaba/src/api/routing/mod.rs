//! The declaration of routes, and the checks before handlers.

pub(crate) mod auth;
pub(crate) mod nearest_route;
pub(crate) mod request_log;
pub(crate) mod request_span;
pub(crate) mod route;
