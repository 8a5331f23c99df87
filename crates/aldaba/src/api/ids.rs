//! Names that callers choose, and ids in paths.

use super::{Api, Error};
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

const LONGEST: usize = 256;
const LONGEST_VERSION: usize = 32;

/// The ids of the path, as they stand there: an id of ours or the caller's own name for the thing.
#[derive(Debug)]
pub(super) struct Ids<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for Ids<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        // What is no text names nothing.
        let path = Path::from_request_parts(parts, api).await;
        path.map(|Path(ids)| Self(ids)).map_err(|_| Error::not_found("There is nothing of that name"))
    }
}

/// Letters, digits, `-`, `_` and `.`: event types, and names for things.
pub(super) fn name(text: &str) -> Result<(), String> {
    if fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {LONGEST} letters, digits, `-`, `_` or `.`"))
}

pub(super) fn channel(text: &str) -> Result<(), String> {
    if fits(text, b"-_.:+") {
        return Ok(());
    }
    Err(format!("must be 1 to {LONGEST} letters, digits, `-`, `_`, `.`, `:` or `+`"))
}

pub(super) fn tag(text: &str) -> Result<(), String> {
    if fits(text, b"-_./\\#") {
        return Ok(());
    }
    Err(format!("must be 1 to {LONGEST} letters, digits, `-`, `_`, `.`, `/`, `\\` or `#`"))
}

/// The version of a payload's form.
pub(super) fn version(text: &str) -> Result<(), String> {
    if text.len() <= LONGEST_VERSION && fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {LONGEST_VERSION} letters, digits, `-`, `_` or `.`"))
}

fn fits(text: &str, signs: &[u8]) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(&byte))
}

/// The caller's own name for a thing. It must not look like an id of ours for the same kind.
pub(super) fn uid(text: &str, prefix: &str) -> Result<(), String> {
    name(text)?;
    if text.starts_with(prefix) {
        return Err(format!("must not begin with `{prefix}`: that is how ids begin"));
    }
    Ok(())
}

/// Whether a PUT may make what is not there: under the name in the path, if the body gives no other. An id of
/// ours that nothing has names nothing.
pub(super) fn may_be_made(prefix: &str, path: &str, missing: &'static str) -> Result<(), Error> {
    uid(path, prefix).map_err(|_| Error::not_found(missing))
}
