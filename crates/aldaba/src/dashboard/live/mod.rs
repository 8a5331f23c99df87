//! Pages that update by themselves. A browser has one stream for all its open pages. It is level-triggered: after commits of the
//! organization the live parts of these pages are rendered again, at most once a second, and what has changed is sent.

mod stream;
mod streams;

pub(crate) use streams::Streams;

use super::route::PageRoute;
use crate::api::Access;
use askama::Template;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::get("/dashboard/live", Access::Known, stream::open)]
}

/// A part of a page that is rendered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The element's `data-block`.
    pub(crate) name: &'static str,
    pub(crate) html: String,
}

impl Block {
    pub(crate) fn of(name: &'static str, template: impl Template) -> Result<Self, askama::Error> {
        Ok(Self { name, html: template.render()? })
    }
}
