//! Query strings. What cannot be understood is a 400, what is out of bounds a 422, and a parameter
//! that nobody knows is ignored: SDKs send some that belong to newer servers.

use super::json;
use super::{Api, Error};
use aldaba_delivery::Timestamp;
use aldaba_store::Within;
use axum::extract::FromRequestParts;
use http::Uri;
use http::request::Parts;
use std::borrow::Cow;
use url::form_urlencoded;

#[derive(Debug)]
pub(super) struct Query(String);

impl Query {
    pub(super) fn of(parts: &Parts) -> Self {
        Self::of_uri(&parts.uri)
    }

    pub(super) fn of_uri(uri: &Uri) -> Self {
        Self(uri.query().unwrap_or_default().to_owned())
    }

    pub(super) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        form_urlencoded::parse(self.0.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(super) fn boolean(&self, name: &str, default: bool) -> Result<bool, Error> {
        match self.get(name).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(Error::malformed_query(format!("{name}={other}: expected true or false"))),
        }
    }

    /// A list of names: separated by commas, given several times, or both, also as `name[]` or `name[0]`.
    pub(super) fn names(&self, name: &str) -> Vec<String> {
        let is_it = |key: &str| {
            let index = key.strip_prefix(name).map(|rest| rest.strip_prefix('[').unwrap_or(rest));
            match index.map(|rest| (rest, rest.strip_suffix(']'))) {
                Some(("", _)) => true,
                Some((_, Some(index))) => index.bytes().all(|byte| byte.is_ascii_digit()),
                _ => false,
            }
        };
        let given = form_urlencoded::parse(self.0.as_bytes()).filter(|(key, _)| is_it(key));
        let mut names = Vec::new();
        for (_, value) in given {
            names.extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
        }
        names
    }

    pub(super) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let expected = "expected a date and time with an offset, such as 2026-01-31T12:00:00Z";
        let malformed = || Error::malformed_query(format!("{name}={text}: {expected}"));
        json::read_moment(&text).map(Some).ok_or_else(malformed)
    }

    /// `before` and `after`.
    pub(super) fn within(&self) -> Result<Within, Error> {
        Ok(Within { before: self.moment("before")?, after: self.moment("after")? })
    }

    /// One of these numbers.
    pub(super) fn one_of(&self, name: &str, numbers: &[i64]) -> Result<Option<i64>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| numbers.contains(number));
        let expected = || numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let malformed = || Error::malformed_query(format!("{name}={text}: expected one of {}", expected()));
        number.map(Some).ok_or_else(malformed)
    }
}

/// `with_content`: whether payloads or response bodies are wanted. Without it they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithContent(pub(super) bool);

impl FromRequestParts<Api> for WithContent {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        // The common case costs nothing: no query at all.
        if parts.uri.query().is_none() {
            return Ok(Self(true));
        }
        Query::of(parts).boolean("with_content", true).map(Self)
    }
}
