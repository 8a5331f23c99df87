//! Query strings. What cannot be understood is a 400, what is out of bounds a 422, and a parameter
//! that nobody knows is ignored: SDKs send some that belong to newer servers.

use super::{Api, Error, error::Problem};
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::borrow::Cow;
use url::form_urlencoded;

#[derive(Debug)]
pub(super) struct Query(String);

impl Query {
    pub(super) fn of(parts: &Parts) -> Self {
        Self(parts.uri.query().unwrap_or_default().to_owned())
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

    /// Refuses filters that belong to the API but are not served yet: an answer that ignored them
    /// would be a wrong one.
    pub(super) fn not_yet(&self, names: &[&str]) -> Result<(), Error> {
        let base = |key: &str| key.split('[').next().unwrap_or_default().to_owned();
        let given = form_urlencoded::parse(self.0.as_bytes()).map(|(key, _)| base(&key));
        let problem = |name: String| {
            let message = format!("filtering by `{name}` is not available yet; leave it out");
            Problem::value(&["query", &name], message)
        };
        let problems: Vec<_> = given.filter(|key| names.contains(&key.as_str())).map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(Error::problems(problems)) }
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
