//! Pieces of HTML that several pages have. Everything of others goes through [`escaped`], which leaves no markup.

mod copy;
mod moment;
mod notice;
mod pager;
mod payload;
mod state;

pub(crate) use copy::{copyable, curl};
pub(crate) use moment::{moment, moment_opt};
pub(crate) use notice::{Done, Notice};
pub(crate) use pager::{AFTER, Pager, after};
pub(crate) use payload::visible;
pub(crate) use state::State;

use aldaba_engine::escaped;

/// A name that somebody else has written: its direction of writing ends with it.
pub(crate) fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", visible(text))
}

/// A name as a link.
pub(crate) fn link(path: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escaped(path), name(text))
}
