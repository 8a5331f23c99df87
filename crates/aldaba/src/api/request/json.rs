//! JSON in and out.

pub(crate) use aldaba_api::read::{Fields, bounded_json};

use crate::api::response::error::Error;
use aldaba_delivery::Timestamp;
use aldaba_signature::SigningKey;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
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
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn optional_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => text(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// RFC 3339 in UTC with microseconds.
pub(crate) fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&moment(*time))
}

/// The same as a text.
pub(crate) fn moment(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.6}")
}

/// A moment as RFC 3339 writes it. The last hours of the year 9999 are beyond what can be shown, and count as the
/// last moment that can: they mean that there is no end.
pub(crate) fn read_moment(text: &str) -> Option<Timestamp> {
    let moment = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let pieces = Pieces::parse(text).ok()?;
        let is_moment = pieces.time().is_some() && pieces.to_numeric_offset().is_some();
        let is_last = pieces.date() >= jiff::Timestamp::MAX.to_zoned(TimeZone::UTC).date();
        (is_moment && is_last).then_some(jiff::Timestamp::MAX)
    })?;
    Some(Timestamp::from_millis(moment.as_millisecond()))
}

/// For sentences.
pub(crate) fn shown_time(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

pub(crate) fn optional_time<S: Serializer>(
    moment: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => time(moment, serializer),
        None => serializer.serialize_none(),
    }
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
    /// A time, as RFC 3339 writes it.
    fn moment(&mut self, name: &str) -> Option<Timestamp>;

    /// `whsec_…` or `whsk_…`.
    fn signing_key(&mut self, name: &str, text: Option<&str>) -> Option<SigningKey>;
}

impl ReadField for Fields {
    fn moment(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.string(name)?;
        match read_moment(&text) {
            Some(moment) => Some(moment),
            None => {
                self.problem(name, "must be a date and time with an offset, such as 2026-01-31T12:00:00Z");
                None
            }
        }
    }

    fn signing_key(&mut self, name: &str, text: Option<&str>) -> Option<SigningKey> {
        SigningKey::parse(text?).map_err(|error| self.problem(name, error.to_string())).ok()
    }
}
