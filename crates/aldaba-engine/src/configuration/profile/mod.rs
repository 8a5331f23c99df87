//! Wire profiles: which headers a delivery goes out with, and how it is signed. A profile is data that
//! has been checked: headers with templates, read once, and a signature scheme. The built-in ones are
//! made of the same.

mod brand;
mod builtin;
mod payload;
mod template;
mod text;
mod validate;

pub use brand::Brand;
pub(crate) use builtin::builtin;
pub use validate::ProfileError;

use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use aldaba_signature::{Scheme, SigningKey};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use template::{Field, Template};

const AGENT: &str = concat!("Aldaba/", env!("CARGO_PKG_VERSION"));

/// A profile that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    name: String,
    headers: Vec<Header>,
    scheme: Option<Scheme>,
    /// The fields of the payload that templates name.
    fields: Vec<String>,
}

/// A profile as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSpec {
    pub name: String,
    /// Names and templates.
    pub headers: Vec<(String, String)>,
    pub scheme: Option<Scheme>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    name: HeaderName,
    /// Name and template as they were written.
    written: (String, String),
    value: Template,
}

/// What one attempt is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The same on every retry and replay.
    pub(crate) message: MessageId,
    /// Where its sender gave one.
    pub(crate) event_id: Option<&'a str>,
    pub(crate) event_type: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) app: AppId,
    pub(crate) endpoint: EndpointId,
    /// How many attempts there were before.
    pub(crate) attempts: u32,
    pub(crate) now: Timestamp,
    /// The current one first.
    pub(crate) keys: &'a [SigningKey],
    pub(crate) body: &'a [u8],
}

impl Profile {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a header is the profile's own.
    pub(crate) fn sends(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|header| header.name == name)
    }

    /// The headers of one attempt. One whose template asks for what the message does not have is left
    /// out.
    pub(crate) fn headers(&self, facts: &Facts<'_>) -> HeaderMap {
        self.fill(&Filling::new(self, facts))
    }

    /// The same where the body is not known any more: without a signature, and without what is taken from it.
    pub(crate) fn headers_without_body(&self, facts: &Facts<'_>) -> HeaderMap {
        self.fill(&Filling { signature: None, fields: Vec::new(), ..Filling::new(self, facts) })
    }

    fn fill(&self, filling: &Filling<'_>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 5);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        for header in &self.headers {
            let text = header.value.fill(|field| filling.get(field));
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
                headers.insert(header.name.clone(), value);
            }
        }
        headers
    }
}

/// What the placeholders stand for in one attempt.
struct Filling<'a> {
    facts: &'a Facts<'a>,
    id: String,
    seconds: i64,
    signature: Option<String>,
    fields: Vec<Option<String>>,
}

impl<'a> Filling<'a> {
    fn new(profile: &Profile, facts: &'a Facts<'a>) -> Self {
        let (id, seconds) = (facts.message.to_string(), facts.now.millis().div_euclid(1000));
        let sign = |scheme: Scheme| scheme.sign(facts.keys, &id, seconds, facts.body);
        let signature = profile.scheme.map(sign);
        Self { facts, id, seconds, signature, fields: payload::find(facts.body, &profile.fields) }
    }

    fn get(&self, field: Field) -> Option<Cow<'_, str>> {
        Some(match field {
            Field::Id => self.id.as_str().into(),
            Field::EventId => self.facts.event_id.unwrap_or(&self.id).into(),
            Field::Type => self.facts.event_type.into(),
            Field::Timestamp => self.seconds.to_string().into(),
            Field::TimestampMs => self.facts.now.millis().to_string().into(),
            Field::Attempt => self.facts.attempts.to_string().into(),
            Field::Version => self.facts.version?.into(),
            Field::Endpoint => self.facts.endpoint.to_string().into(),
            Field::App => self.facts.app.to_string().into(),
            Field::Signature => self.signature.as_deref()?.into(),
            Field::Payload(index) => self.fields.get(index)?.as_deref()?.into(),
        })
    }
}

#[cfg(test)]
mod tests;
