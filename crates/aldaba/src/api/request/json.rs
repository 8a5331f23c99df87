//! JSON in and out.

pub(crate) use aldaba_api::read::{Fields, bounded_json};

use crate::api::response::error::Error;
use aldaba_api::read::moment_millis;
use aldaba_api::value::Shows;
use aldaba_delivery::Timestamp;
use aldaba_signature::SigningKey;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt::Display;

pub(crate) fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    sized_answer(status, body, 256)
}

/// With an idea of the answer's size, so that its buffer does not have to grow.
pub(crate) fn sized_answer(status: StatusCode, body: &impl Serialize, size: usize) -> Response {
    let mut bytes = Vec::with_capacity(size);
    if let Err(error) = serde_json::to_writer(&mut bytes, body) {
        tracing::error!(%error, "an answer cannot be written as JSON");
        return Error::server().into_response();
    }
    let mut response = (status, bytes).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What has a text of its own: ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T: Display> Shows<String> for Text<T> {}

/// RFC 3339 in UTC with microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&moment(self.0))
    }
}

impl Shows<String> for Moment {}

/// RFC 3339 in UTC with microseconds.
pub(crate) fn moment(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.6}")
}

/// A moment as RFC 3339 writes it.
pub(crate) fn read_moment(text: &str) -> Option<Timestamp> {
    moment_millis(text).map(Timestamp::from_millis)
}

/// A moment of a body. Whether it is one was checked when the body was read.
pub(crate) fn given_moment(text: Option<&String>) -> Option<Timestamp> {
    read_moment(text?)
}

/// For sentences.
pub(crate) fn shown_time(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

/// JSON that was stored as text, as it stands.
pub(crate) fn raw(stored: &str) -> &RawValue {
    serde_json::from_str(stored).unwrap_or_else(|_| empty())
}

pub(crate) fn empty() -> &'static RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

/// Values that are read into types of the server.
pub(crate) trait ReadField {
    /// `whsec_…` or `whsk_…`.
    fn signing_key(&mut self, name: &str, text: Option<&str>) -> Option<SigningKey>;
}

impl ReadField for Fields {
    fn signing_key(&mut self, name: &str, text: Option<&str>) -> Option<SigningKey> {
        SigningKey::parse(text?).map_err(|error| self.problem(name, error.to_string())).ok()
    }
}
