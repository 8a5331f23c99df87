//! The body of a message on its way in: the one body that is read for every delivery, so it is
//! parsed once, and only where its fields stand. The payload itself is checked and never built.

pub(crate) use aldaba_delivery::{MAX_PAYLOAD_DEPTH as DEEPEST, is_too_deep as too_deep};

use super::headers;
use crate::api::application::target::Inline;
use crate::api::request::body::BodyText;
use crate::api::request::ids;
use crate::api::request::json;
use crate::api::request::json::Fields;
use crate::api::request::json::bounded_json::{AtMost, First};
use crate::api::response::error::{Error, Problem};
use aldaba_api::read::{ApiRequest, Parsed, UnknownFields};
use aldaba_api::{NewApplication, NewMessage, TransformationsParams};
use aldaba_delivery::Timestamp;
use aldaba_store::NewMessage as StoredMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

const MAX_CHANNELS: usize = StoredMessage::MAX_CHANNELS;
const MAX_TAGS: usize = StoredMessage::MAX_TAGS;
const PARAMETERS: &str = "transformationsParams";
const RETENTION_HOURS: &str = "payloadRetentionHours";
const MAX_RETENTION_HOURS: u64 = StoredMessage::PAYLOAD_RETENTION.end().as_secs() / 3600;
const MAX_RETENTION_DAYS: u64 = MAX_RETENTION_HOURS / 24;

const _: () = assert!(aldaba_api::MAX_CHANNELS == MAX_CHANNELS && aldaba_api::MAX_TAGS == MAX_TAGS);
const _: () = assert!(aldaba_api::MAX_RETENTION_HOURS == MAX_RETENTION_HOURS);

/// The body, where unknown fields are refused and where they are passed over.
macro_rules! bodies {
    ($($(#[$meta:meta])* $field:ident: $type:ty,)*) => {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Body<'a> {
            $($(#[$meta])* $field: $type,)*
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct LenientBody<'a> {
            $($(#[$meta])* $field: $type,)*
        }

        impl<'a> From<LenientBody<'a>> for Body<'a> {
            fn from(LenientBody { $($field),* }: LenientBody<'a>) -> Self {
                Self { $($field),* }
            }
        }
    };
}

bodies! {
    #[serde(borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow, alias = "data")]
    payload: &'a RawValue,
    #[serde(default)]
    event_id: Option<String>,
    #[serde(default)]
    channels: Option<AtMost<String, MAX_CHANNELS>>,
    #[serde(default)]
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(default)]
    #[serde(borrow)]
    application: Option<&'a RawValue>,
    #[serde(default)]
    #[serde(borrow)]
    deliver_at: Option<Cow<'a, str>>,
    #[serde(default)]
    tags: Option<AtMost<String, MAX_TAGS>>,
    #[serde(default)]
    #[serde(borrow)]
    headers: Option<&'a RawValue>,
    #[serde(default)]
    payload_retention_period: Option<u64>,
    #[serde(default)]
    payload_retention_hours: Option<u64>,
    #[serde(default)]
    #[serde(borrow)]
    transformations_params: Option<&'a RawValue>,
}

fn read<'a>(text: BodyText<'a>) -> Result<Body<'a>, serde_json::Error> {
    match text.unknown {
        UnknownFields::Refuse => serde_json::from_slice(text.bytes),
        UnknownFields::Ignore => serde_json::from_slice::<LenientBody<'a>>(text.bytes).map(Body::from),
    }
}

impl MessageIn<'_> {
    /// What is sent.
    pub(crate) fn body(&self) -> &[u8] {
        match &self.raw_payload {
            Some(raw) => raw.as_bytes(),
            None => self.payload.get().as_bytes(),
        }
    }
}

/// Whether a body that may not be acceptable is to make its application.
pub(crate) fn has_application(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Application {
        application: Option<IgnoredAny>,
    }
    serde_json::from_slice(body).is_ok_and(|Application { application }| application.is_some())
}

/// A message whose parts are all acceptable.
#[derive(Debug)]
pub(crate) struct MessageIn<'a> {
    pub(crate) event_type: Cow<'a, str>,
    /// As it stands in the request: this is what will be signed and sent, if there is no other body.
    pub(crate) payload: &'a RawValue,
    /// The body that is sent in its place. It need not be JSON.
    pub(crate) raw_payload: Option<Cow<'a, str>>,
    /// To be made, if it is not there.
    pub(crate) application: Option<&'a RawValue>,
    pub(crate) event_id: Option<String>,
    /// Of the payload's form. A number is kept as its text.
    pub(crate) version: Option<String>,
    /// Sorted, without repeats; empty: none.
    pub(crate) channels: Vec<String>,
    /// Sorted, without repeats.
    pub(crate) tags: Vec<String>,
    /// By name, in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) deliver_at: Option<Timestamp>,
    /// How long its payload is kept.
    pub(crate) payload_kept: Option<Duration>,
}

impl<'a> MessageIn<'a> {
    pub(crate) fn parse(text: BodyText<'a>, most_payload: usize) -> Result<Self, Error> {
        match read(text) {
            Ok(parsed) if acceptable(&parsed) => {
                let payload = parsed.payload.get();
                let raw_payload = match parsed.transformations_params {
                    Some(given) => raw_payload(text, given)?,
                    None => None,
                };
                let length = raw_payload.as_ref().map_or(0, |raw| raw.len()).max(payload.len());
                if length > most_payload {
                    return Err(Error::payload_too_large(length, most_payload));
                }
                if too_deep(payload.as_bytes()) {
                    let message = format!("is nested more than {DEEPEST} levels deep");
                    return Err(Problem::value(&["body", "payload"], message).into());
                }
                let version = parsed.version.and_then(version);
                let deliver_at = parsed.deliver_at.as_deref().and_then(json::read_moment);
                let headers = match parsed.headers {
                    Some(given) => headers::take(given).ok_or_else(|| explain(text, None))?,
                    None => Vec::new(),
                };
                let Body { event_type, payload, event_id, channels, tags, application, .. } = parsed;
                let Body { payload_retention_period, payload_retention_hours, .. } = parsed;
                Ok(Self {
                    event_type,
                    payload,
                    raw_payload,
                    application: application.filter(|inline| inline.get() != "null"),
                    event_id,
                    version,
                    channels: set(channels),
                    tags: set(tags),
                    headers,
                    deliver_at,
                    payload_kept: payload_kept(payload_retention_period, payload_retention_hours),
                })
            }
            Ok(_) => Err(explain(text, None)),
            Err(error) => Err(explain(text, Some(&error))),
        }
    }
}

/// The application that a message brings along.
pub(crate) fn inline(text: BodyText<'_>, message: &MessageIn<'_>) -> Result<Option<NewApplication>, Error> {
    let Some(inline) = message.application else { return Ok(None) };
    let mut fields = Fields::of("application", inline);
    let body = Inline::read(text.part(inline), &mut fields);
    fields.finish()?;
    Ok(Some(body))
}

fn acceptable(body: &Body<'_>) -> bool {
    body.payload_retention_hours.is_none_or(|hours| (1..=MAX_RETENTION_HOURS).contains(&hours))
        && body.payload_retention_period.is_none_or(|days| (1..=MAX_RETENTION_DAYS).contains(&days))
        && !is_ambiguous(body.payload_retention_period, body.payload_retention_hours)
        && body.deliver_at.as_ref().is_none_or(|text| json::read_moment(text).is_some())
        && ids::name(&body.event_type).is_ok()
        && body.payload.get().starts_with('{')
        && body.version.is_none_or(|given| version(given).is_some())
        && body.event_id.as_ref().is_none_or(|id| ids::uid(id, "msg_").is_ok())
        && body.channels.as_ref().is_none_or(|AtMost(First { items, count })| {
            (1..=MAX_CHANNELS).contains(count) && items.iter().all(|channel| ids::channel(channel).is_ok())
        })
        && body.tags.as_ref().is_none_or(|AtMost(First { items, count })| {
            (1..=MAX_TAGS).contains(count) && items.iter().all(|tag| ids::tag(tag).is_ok())
        })
}

/// SDKs of the first generation send the 90 days unasked: hours beside them are what is meant.
fn payload_kept(days: Option<u64>, hours: Option<u64>) -> Option<Duration> {
    hours.or(days.map(|days| days * 24)).map(|hours| Duration::from_secs(hours * 3600))
}

/// Both were given, and somebody has asked for each.
fn is_ambiguous(days: Option<u64>, hours: Option<u64>) -> bool {
    hours.is_some() && days.is_some_and(|days| days != MAX_RETENTION_DAYS)
}

/// The body that is to be sent in the place of the payload.
fn raw_payload<'a>(text: BodyText<'a>, given: &'a RawValue) -> Result<Option<Cow<'a, str>>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Parameters<'a> {
        #[serde(default, borrow)]
        raw_payload: Option<Cow<'a, str>>,
    }
    if let Ok(given) = serde_json::from_str::<Option<Parameters<'a>>>(given.get()) {
        return Ok(given.and_then(|given| given.raw_payload));
    }
    let mut fields = Fields::of(PARAMETERS, given);
    let parameters = parameters(text, given, &mut fields);
    match fields.finish() {
        Ok(()) => Ok(parameters.raw_payload.map(Cow::Owned)),
        Err(_) => Err(explain(text, None)),
    }
}

/// The same as it is declared. What is wrong is noted.
fn parameters(text: BodyText<'_>, given: &RawValue, fields: &mut Fields) -> TransformationsParams {
    let read = text.part(given).fields().and_then(|mut given| {
        if given.has_value("headers") {
            let why = "cannot be set for one message: every request is application/json; leave them out";
            given.problem("headers", why);
        }
        given.forget(&["headers"]);
        Parsed::of(given, false).finish()
    });
    read.unwrap_or_else(|problems| {
        let within = |problem: Problem| problem.within(&[PARAMETERS]);
        problems.into_list().into_iter().map(within).for_each(|problem| fields.problems().push(problem));
        TransformationsParams::default()
    })
}

/// Sorted, without repeats.
fn set<const LIMIT: usize>(names: Option<AtMost<String, LIMIT>>) -> Vec<String> {
    let mut names = names.map_or_else(Vec::new, |AtMost(names)| names.items);
    names.sort_unstable();
    names.dedup();
    names
}

/// `None`: it is no version.
fn version(given: &RawValue) -> Option<String> {
    let text = match given.get().as_bytes().first()? {
        b'"' => serde_json::from_str(given.get()).ok()?,
        _ => given.get().parse::<u64>().ok()?.to_string(),
    };
    ids::version(&text).is_ok().then_some(text)
}

/// Reads a body that is not acceptable once more, as it is declared, in order to name all that is wrong.
fn explain(body: BodyText<'_>, error: Option<&serde_json::Error>) -> Error {
    let fields = match body.fields() {
        Ok(fields) => fields,
        Err(problems) => return problems.into(),
    };
    let (given, inline) = (fields.peek(PARAMETERS), fields.peek("application"));
    let Parsed { value, mut fields } = Parsed::<NewMessage>::of(fields, false);
    headers::checked(&mut fields, value.headers.into_iter().collect());
    if let Some(given) = given {
        parameters(body, &given, &mut fields);
    }
    if let Some(inline) = inline {
        Inline::read(body.part(&inline), &mut fields);
    }
    if fields.is_fine("payload") && too_deep(value.payload.text().as_bytes()) {
        fields.problem("payload", format!("is nested more than {DEEPEST} levels deep"));
    }
    if is_ambiguous(value.payload_retention_period, value.payload_retention_hours) {
        fields
            .problem(RETENTION_HOURS, "cannot be given beside payloadRetentionPeriod; leave one of them out");
    }
    let text = error.map_or_else(|| "is not acceptable".to_owned(), ToString::to_string);
    let refused = fields.finish_in_order(NewMessage::KNOWN).err();
    refused.unwrap_or_else(|| Problem::decode(&["body"], text).into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use http::StatusCode;

    fn nested(levels: usize) -> String {
        let inner = levels - 1;
        format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
    }

    fn text(body: &str) -> BodyText<'_> {
        BodyText { bytes: body.as_bytes(), unknown: UnknownFields::Refuse, is_brief: false }
    }

    fn status(body: &str) -> Option<StatusCode> {
        MessageIn::parse(text(body), 1024).err().map(|error| error.into_response().status())
    }

    #[test]
    fn the_payload_is_the_exact_text_of_the_request() {
        let payload = "{ \"b\" : 1.0,\"a\":1e3, \"a\":\"\\u00e9\\/\" , \"n\":123456789012345678901234567890}";
        let body =
            format!("{{\"eventType\":\"a.b\", \"payload\" : {payload} , \"channels\":[\"y\",\"x\",\"y\"]}}");
        let parsed = MessageIn::parse(text(&body), 1024).unwrap();
        assert_eq!(parsed.payload.get(), payload);
        assert_eq!(parsed.channels, ["x", "y"]);
    }

    #[test]
    fn nesting_is_allowed_up_to_its_limit_and_brackets_in_strings_are_no_nesting() {
        let body = |payload: &str| format!("{{\"eventType\":\"a\",\"payload\":{payload}}}");
        assert_eq!(status(&body(&nested(128))), None);
        assert_eq!(status(&body(&nested(129))), Some(StatusCode::UNPROCESSABLE_ENTITY));
        assert_eq!(status(&body(&format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(500)))), None);
    }

    #[test]
    fn a_payload_is_kept_for_days_or_for_hours_within_their_ranges() {
        let body = |fields: &str| format!("{{\"eventType\":\"a\",\"payload\":{{}},{fields}}}");
        let (days, hours) = ("\"payloadRetentionPeriod\":", "\"payloadRetentionHours\":");
        for (fields, kept) in [
            (format!("{days}90"), Some(90 * 24)),
            (format!("{days} 1 "), Some(24)),
            (format!("{days}null"), None),
            (format!("{hours}1"), Some(1)),
            (format!("{hours}2160"), Some(2160)),
            (format!("{hours}null,{days}7"), Some(7 * 24)),
            (format!("{hours}5,{days}null"), Some(5)),
            // What SDKs send unasked is no second wish.
            (format!("{hours}5,{days}90"), Some(5)),
        ] {
            let body = body(&fields);
            let parsed = MessageIn::parse(text(&body), 1024).unwrap();
            assert_eq!(parsed.payload_kept.map(|kept| kept.as_secs() / 3600), kept, "{fields}");
        }
        for wrong in ["0", "91", "-90", "90.5", "\"90\"", "[90]", "true"] {
            let status = status(&body(&format!("{days}{wrong}")));
            assert_eq!(status, Some(StatusCode::UNPROCESSABLE_ENTITY), "{wrong}");
        }
        for wrong in ["0", "2161", "-1", "1.5", "\"1\"", "5,\"payloadRetentionPeriod\":1"] {
            let status = status(&body(&format!("{hours}{wrong}")));
            assert_eq!(status, Some(StatusCode::UNPROCESSABLE_ENTITY), "{wrong}");
        }
    }

    #[test]
    fn a_version_is_a_short_name_or_a_whole_number() {
        let body = |version: &str| format!("{{\"eventType\":\"a\",\"payload\":{{}},\"version\":{version}}}");
        for (given, kept) in [
            ("3", Some("3")),
            ("0", Some("0")),
            ("\"2024-01-31.beta\"", Some("2024-01-31.beta")),
            ("\"\\u0032\"", Some("2")),
            ("null", None),
        ] {
            let body = body(given);
            let parsed = MessageIn::parse(text(&body), 1024).unwrap();
            assert_eq!(parsed.version.as_deref(), kept, "{given}");
        }
        let long = format!("\"{}\"", "x".repeat(33));
        for wrong in
            ["-1", "1.5", "1e3", "18446744073709551616", "\"\"", "\"a b\"", "\"ñ\"", "[1]", "true", &long]
        {
            assert_eq!(status(&body(wrong)), Some(StatusCode::UNPROCESSABLE_ENTITY), "{wrong}");
        }
    }

    #[test]
    fn a_payload_over_its_limit_is_too_large() {
        let body = |length: usize| {
            format!("{{\"eventType\":\"a\",\"payload\":{{\"a\":\"{}\"}}}}", "x".repeat(length))
        };
        assert_eq!(status(&body(1024 - 8)), None);
        assert_eq!(status(&body(1024 - 7)), Some(StatusCode::PAYLOAD_TOO_LARGE));
    }
}
