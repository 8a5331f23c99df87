//! The dashboard: pages that people look at in a browser.
//!
//! A page is a folder in `pages/`: its Rust file reads what it shows through `crate::questions`, its template is the same for the
//! whole page and for the parts that are rendered again while it is open, and its texts are there in every language. `pages/mod.rs`
//! has the table of all URLs; `route.rs` does everything that comes before a page: who asks, from where, and what they may.

mod answer;
mod assets;
mod charts;
mod components;
mod fault;
mod forms;
mod live;
mod pages;
mod paths;
mod request;
mod route;
mod session;
mod shell;
#[cfg(test)]
mod tests;
mod texts;
mod visit;

pub(crate) use session::link_path;

use crate::api::Api;
use aldaba_engine::Entropy;
use axum::Router;
use axum::routing::any;
use live::Streams;
use session::{LinkUses, LoginLimits};
use std::fmt;
use std::sync::Arc;

/// Where all pages are.
pub(crate) const ROOT: &str = "/dashboard";

/// What pages keep in memory.
pub(crate) struct Dashboard {
    entropy: Arc<dyn Entropy>,
    logins: LoginLimits,
    link_uses: LinkUses,
    streams: Streams,
}

impl Dashboard {
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self {
            entropy,
            logins: LoginLimits::default(),
            link_uses: LinkUses::default(),
            streams: Streams::default(),
        }
    }

    /// Ends the streams of open pages, so that a stop need not wait for them.
    pub(crate) fn stop(&self) {
        self.streams.stop();
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dashboard")
    }
}

pub(crate) fn router() -> Router<Api> {
    Router::new().route(ROOT, any(request::answer)).route(&format!("{ROOT}/{{*path}}"), any(request::answer))
}

/// A route of the dashboard, for tests that must not forget one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredRoute {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// With names in braces.
    pub path: &'static str,
    /// What the caller needs, as the API's document names it; `open`: anybody may use it.
    pub access: &'static str,
}

/// Every route, in the order of the table.
pub fn routes() -> Vec<DeclaredRoute> {
    pages::routes()
        .iter()
        .map(|route| DeclaredRoute { method: route.method(), path: route.path, access: route.access.name() })
        .collect()
}
