//! Query strings. A value that cannot be read or is out of bounds is a 422. A parameter that nobody knows is
//! refused by requests that change something, and by routes that only Aldaba has. Other requests that only read pass
//! over it, because SDKs send some that belong to newer servers.

use super::json;
use crate::api::response::error::{Problem, Problems};
use crate::api::{Api, Error};
use aldaba_delivery::Timestamp;
use aldaba_delivery::nearest::nearest;
use aldaba_store::TimeRange;
use axum::extract::FromRequestParts;
use http::Uri;
use http::request::Parts;
use std::borrow::Cow;
use url::form_urlencoded;

#[derive(Debug)]
pub(crate) struct Query(String);

/// Names for one parameter. Where a route takes one of them it takes all.
const SAME: [&[&str]; 3] = [
    &["app", "app_id"],
    &["endpoint", "endpoint_id"],
    &["event_types", "eventTypes", "event_type", "eventType"],
];

/// All names of a parameter.
fn names_of<'a>(name: &'a &'a str) -> &'a [&'a str] {
    SAME.iter().find(|names| names.contains(name)).copied().unwrap_or(std::slice::from_ref(name))
}

impl Query {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self::of_uri(&parts.uri)
    }

    pub(crate) fn of_uri(uri: &Uri) -> Self {
        Self(uri.query().unwrap_or_default().to_owned())
    }

    /// Refuses parameters that mean nothing.
    pub(crate) fn refuse_others(&self, known: &[&str]) -> Result<(), Error> {
        let mut problems = Problems::default();
        for (key, _) in form_urlencoded::parse(self.0.as_bytes()) {
            // A list may be written as `name[]` or `name[0]`.
            let name = key.split_once('[').map_or(&*key, |(name, _)| name);
            let names = names_of(&name);
            if !names.iter().any(|name| known.contains(name)) {
                problems.push(Problem::value(&["query", &key], unknown_parameter(name, known)));
            } else if let Some(other) = names.iter().find(|other| **other != name && self.has(other)) {
                problems.push(Problem::value(
                    &["query", &key],
                    format!("means the same as `{other}`; give one of them"),
                ));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.into()) }
    }

    /// A parameter by any of its names.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let given = |name: &str| {
            form_urlencoded::parse(self.0.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        given(name).or_else(|| names_of(&name).iter().find_map(|name| given(name)))
    }

    fn has(&self, name: &str) -> bool {
        form_urlencoded::parse(self.0.as_bytes()).any(|(key, _)| is_named(&key, name))
    }

    pub(crate) fn boolean(&self, name: &str, default: bool) -> Result<bool, Error> {
        match self.get(name).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(Error::query(name, other, "true or false")),
        }
    }

    /// A list of names: separated by commas, given several times, or both, also as `name[]` or `name[0]`.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let is_it = |key: &str| names_of(&name).iter().any(|name| is_named(key, name));
        let given = form_urlencoded::parse(self.0.as_bytes()).filter(|(key, _)| is_it(key));
        let mut names = Vec::new();
        for (_, value) in given {
            names.extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
        }
        names
    }

    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let expected = "a date and time with an offset, such as 2026-01-31T12:00:00Z";
        json::read_moment(&text).map(Some).ok_or_else(|| Error::query(name, &text, expected))
    }

    /// `before` and `after`.
    pub(crate) fn within(&self) -> Result<TimeRange, Error> {
        Ok(TimeRange { before: self.moment("before")?, after: self.moment("after")? })
    }

    /// One of these numbers.
    pub(crate) fn one_of(&self, name: &str, numbers: &[i64]) -> Result<Option<i64>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| numbers.contains(number));
        let known = || numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        number.map(Some).ok_or_else(|| Error::query(name, &text, format!("one of {}", known())))
    }
}

/// Whether a key is a name, or the name of a list: `name[]` or `name[0]`.
fn is_named(key: &str, name: &str) -> bool {
    let index = key.strip_prefix(name).map(|rest| rest.strip_prefix('[').unwrap_or(rest));
    match index.map(|rest| (rest, rest.strip_suffix(']'))) {
        Some(("", _)) => true,
        Some((_, Some(index))) => index.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

fn unknown_parameter(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(meant) => format!("unknown parameter; did you mean \"{meant}\"?"),
        None if known.is_empty() => {
            "unknown parameter; this request takes none; fields belong into the JSON body, if it has one"
                .to_owned()
        }
        None => format!("unknown parameter; there are: {}", known.join(", ")),
    }
}

/// `with_content`: whether payloads or response bodies are wanted. Without it they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithContent(pub(crate) bool);

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
