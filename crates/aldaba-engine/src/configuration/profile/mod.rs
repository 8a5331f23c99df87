//! Wire profiles: the headers of a delivery and how it is signed. A profile is checked data: headers with
//! parsed templates, and a signature scheme. Built-in profiles are the same.

mod brand;
mod builtin;
mod json;
mod payload;
mod template;
mod validate;

pub use brand::Brand;
pub(crate) use builtin::builtin;
pub use validate::ProfileError;

use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use aldaba_signature::{Scheme, SigningKey};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use template::{Placeholder, Template};

const AGENT: &str = concat!("Aldaba/", env!("CARGO_PKG_VERSION"));

/// A checked profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    name: String,
    headers: Vec<ProfileHeader>,
    scheme: Option<Scheme>,
    /// The payload fields that templates use.
    fields: Vec<String>,
    /// A template names `{traceparent}`.
    sends_traceparent: bool,
}

/// A profile as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSpec {
    pub name: String,
    /// Names and templates.
    pub headers: Vec<(String, String)>,
    pub scheme: Option<Scheme>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProfileHeader {
    name: HeaderName,
    /// Name and template as given.
    written: (String, String),
    value: Template,
}

/// The values of one attempt that headers can contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderContext<'a> {
    /// The same for every retry and replay.
    pub(crate) message: MessageId,
    /// Set if the sender gave one.
    pub(crate) event_id: Option<&'a str>,
    pub(crate) event_type: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) app: AppId,
    pub(crate) endpoint: EndpointId,
    /// The number of earlier attempts.
    pub(crate) attempts: u32,
    pub(crate) now: Timestamp,
    /// The current key first.
    pub(crate) keys: &'a [SigningKey],
    pub(crate) body: &'a [u8],
    /// Of the attempt, where it is known.
    pub(crate) traceparent: Option<&'a HeaderValue>,
}

impl Profile {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the profile sets this header.
    pub(crate) fn sends(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|header| header.name == name)
    }

    /// Whether receivers are told the trace of each attempt.
    pub(crate) fn sends_traceparent(&self) -> bool {
        self.sends_traceparent
    }

    /// The headers of one attempt. A header is left out if a placeholder has no value.
    pub(crate) fn headers(&self, context: &HeaderContext<'_>) -> HeaderMap {
        self.fill(&PlaceholderValues::new(self, context))
    }

    /// The headers without the body: without a signature and without payload fields.
    pub(crate) fn headers_without_body(&self, context: &HeaderContext<'_>) -> HeaderMap {
        self.fill(&PlaceholderValues {
            signature: None,
            fields: Vec::new(),
            ..PlaceholderValues::new(self, context)
        })
    }

    fn fill(&self, values: &PlaceholderValues<'_>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 5);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        for header in &self.headers {
            let text = header.value.fill(|field| values.get(field));
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
                headers.insert(header.name.clone(), value);
            }
        }
        headers
    }
}

/// The values of the placeholders in one attempt.
struct PlaceholderValues<'a> {
    context: &'a HeaderContext<'a>,
    id: String,
    seconds: i64,
    signature: Option<String>,
    fields: Vec<Option<String>>,
}

impl<'a> PlaceholderValues<'a> {
    fn new(profile: &Profile, context: &'a HeaderContext<'a>) -> Self {
        let (id, seconds) = (context.message.to_string(), context.now.millis().div_euclid(1000));
        let sign = |scheme: Scheme| scheme.sign(context.keys, &id, seconds, context.body);
        let signature = profile.scheme.map(sign);
        Self { context, id, seconds, signature, fields: payload::find(context.body, &profile.fields) }
    }

    fn get(&self, field: Placeholder) -> Option<Cow<'_, str>> {
        Some(match field {
            Placeholder::Id => self.id.as_str().into(),
            Placeholder::EventId => self.context.event_id.unwrap_or(&self.id).into(),
            Placeholder::Type => self.context.event_type.into(),
            Placeholder::Timestamp => self.seconds.to_string().into(),
            Placeholder::TimestampMs => self.context.now.millis().to_string().into(),
            Placeholder::Attempt => self.context.attempts.to_string().into(),
            Placeholder::Version => self.context.version?.into(),
            Placeholder::Endpoint => self.context.endpoint.to_string().into(),
            Placeholder::App => self.context.app.to_string().into(),
            Placeholder::Signature => self.signature.as_deref()?.into(),
            Placeholder::Traceparent => self.context.traceparent?.to_str().ok()?.into(),
            Placeholder::Payload(index) => self.fields.get(index)?.as_deref()?.into(),
        })
    }
}

#[cfg(test)]
mod tests;
