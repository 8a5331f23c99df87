//! Sources as callers write them.

use super::config;
use crate::api::Error;
use crate::api::request::bounded_json;
use crate::api::request::ids;
use crate::api::request::json::Fields;
use crate::api::request::variant::Variant;
use crate::api::response::error::Problem;
use crate::api::routing::route::example;
use aldaba_delivery::nearest::unknown_field;
use aldaba_delivery::{OrgId, names};
use aldaba_engine::{HeaderCondition, NewSource, SOURCE_TYPES, SourceAnswer, SourceSecrets, SourceSettings};
use aldaba_store::Source;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An inbound door: what takes in the webhooks of another sender.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct SourceIn {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// Your own name for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!src_)[a-zA-Z0-9\\-_.]+$")]
    uid: Option<String>,
    /// Who sends: `generic-webhook`, `github`, `stripe` and others.
    r#type: String,
    /// What the type needs: mostly `secret`, or `secrets` where several count at once.
    #[schema(value_type = Option<Object>)]
    config: Option<()>,
    metadata: Option<BTreeMap<String, String>>,
    /// Where the id of an event is: `header:x-event-id`, `$.data.id` or `body-digest`; the first place that has one
    /// counts.
    #[schema(max_items = 10)]
    event_id_from: Option<Vec<String>>,
    /// Where the type of an event is.
    #[schema(max_items = 10)]
    event_type_from: Option<Vec<String>>,
    /// Only events of these types; others are acknowledged and forgotten.
    #[schema(max_items = 100)]
    filter_types: Option<Vec<String>>,
    /// Only events with these headers: all must be there, each with one of its values.
    #[schema(max_items = 10)]
    filter_headers: Option<Vec<ConditionDocument>>,
    /// The names of headers that go out as they came; if not given, those that the sender is known by.
    #[schema(max_items = 50)]
    forward_headers: Option<Vec<String>>,
    answer: Option<AnswerDocument>,
    /// How far a signed time may be from now; 300, if not given.
    #[schema(minimum = 1, maximum = 86400)]
    tolerance_seconds: Option<u32>,
    /// How long an event id is remembered; 30, if not given.
    #[schema(minimum = 1, maximum = 366)]
    duplicate_window_days: Option<u16>,
    /// What another body under the id of a former event is: `conflict` (default; 409) or `duplicate`.
    #[schema(pattern = "^(conflict|duplicate)$")]
    on_other_body: Option<String>,
}

example!(SourceIn, {"name": "Our repositories", "type": "github", "config": {"secret": "the secret that GitHub was given"}});

pub(crate) struct SourcePatch;

example!(SourcePatch, {"name": "All our repositories"});

impl ToSchema for SourcePatch {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SourceIn::schemas(schemas);
    }
}

impl PartialSchema for SourcePatch {
    fn schema() -> RefOr<Schema> {
        let about = "Fields of a source that change; null clears one. Another `type` needs another `config`, which \
                     stands in the place of all that it was.";
        Variant::of::<SourceIn>(about).optional("name").optional("type").into()
    }
}

const FIELDS: &[&str] = &[
    "name",
    "uid",
    "type",
    "config",
    "metadata",
    "eventIdFrom",
    "eventTypeFrom",
    "filterTypes",
    "filterHeaders",
    "forwardHeaders",
    "answer",
    "toleranceSeconds",
    "duplicateWindowDays",
    "onOtherBody",
];
/// What is shown besides. Whoever changes a source may send back all that they have read.
const READ_ONLY_FIELDS: [&str; 7] =
    ["id", "verified", "ingestUrl", "appId", "counters", "createdAt", "updatedAt"];
const CONDITION_FIELDS: &[&str] = &["name", "values"];

/// A header that must be there.
#[derive(ToSchema)]
#[schema(as = HeaderCondition)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ConditionDocument {
    name: String,
    /// One of these; if not given, any.
    #[schema(max_items = 50)]
    values: Option<Vec<String>>,
}

/// What the sender hears once an event is safe.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", as = SourceAnswer)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct AnswerDocument {
    /// 200, if not given.
    #[schema(minimum = 200, maximum = 299)]
    status: Option<u16>,
    /// `text/plain; charset=utf-8`, if not given.
    #[schema(max_length = 256)]
    content_type: Option<String>,
    #[schema(max_length = 4096)]
    body: Option<String>,
}

/// A new one.
pub(crate) fn read(org: OrgId, body: &[u8]) -> Result<NewSource, Error> {
    read_fields(org, Fields::parse(body)?, None)
}

/// One that may be there already. `before`: what it is now, where only some of its fields are given.
pub(crate) fn read_change(org: OrgId, body: &[u8], before: Option<&NewSource>) -> Result<NewSource, Error> {
    let mut fields = Fields::parse(body)?;
    fields.forget(&READ_ONLY_FIELDS);
    read_fields(org, fields, before)
}

fn read_fields(org: OrgId, mut fields: Fields, before: Option<&NewSource>) -> Result<NewSource, Error> {
    // Those of the second list are refused below, with a word on where they belong.
    fields.refuse_others_but(FIELDS, &config::SECRET_NAMES);
    let keeps = |fields: &Fields, name: &str| before.filter(|_| !fields.has(name));
    let name = match keeps(&fields, "name") {
        Some(before) => Some(before.name.clone()),
        None => {
            let name = fields.required_string("name");
            fields.checked("name", name, |name| source_name(name))
        }
    };
    let uid = match keeps(&fields, "uid") {
        Some(before) => before.uid.clone(),
        None => {
            let uid = fields.string("uid");
            fields.checked("uid", uid, |uid| ids::uid(uid, "src_"))
        }
    };
    let metadata = match keeps(&fields, "metadata") {
        Some(before) => before.metadata.clone(),
        None => fields.metadata(),
    };
    let kind = match keeps(&fields, "type") {
        Some(before) => before.kind.clone(),
        None => {
            let kind = fields.required_string("type");
            let given =
                |kind: &String| if kind.is_empty() { Err("must not be empty".into()) } else { Ok(()) };
            fields.checked("type", kind, given).unwrap_or_default()
        }
    };
    // What else is wrong with a type that there is not is of no use to anybody.
    let is_known = SOURCE_TYPES.contains(&kind.as_str());
    if !is_known && !kind.is_empty() {
        fields.problem("type", format!("is none of {}", SOURCE_TYPES.join(", ")));
    }
    for name in config::SECRET_NAMES {
        if fields.has(name) {
            fields.problem(name, "belongs into `config`");
        }
    }
    let says_tolerance = fields.has("toleranceSeconds");
    let mut settings = settings(&mut fields, before);
    let tolerance = settings.tolerance_seconds.filter(|_| says_tolerance);
    let same = keeps(&fields, "config").filter(|before| before.kind == kind);
    if same.is_none() && before.is_some() && !fields.has("config") && is_known {
        fields.problem(
            "config",
            format!("this field is required with another type: what `{kind}` verifies with"),
        );
    }
    let secrets = match same {
        Some(before) => {
            (settings.brand, settings.hmac) = (before.settings.brand.clone(), before.settings.hmac.clone());
            before.secrets.clone()
        }
        None if is_known => config::read(&mut fields, &kind, &mut settings, tolerance),
        None => SourceSecrets::default(),
    };
    if serde_json::to_string(&settings).is_ok_and(|text| text.len() > Source::MAX_SETTINGS_BYTES) {
        fields.problem(
            "type",
            format!("all settings together may be {} bytes at most", Source::MAX_SETTINGS_BYTES),
        );
    }
    let had_problem = fields.has_problem();
    let new = NewSource { org, uid, name: name.unwrap_or_default(), metadata, kind, settings, secrets };
    if !had_problem && let Err(problems) = new.check() {
        let place = |place: &[String]| {
            ["body".to_owned()].into_iter().chain(place.iter().cloned()).collect::<Vec<_>>()
        };
        let problem = |problem: aldaba_engine::SourceProblem| {
            let place = place(&problem.path);
            Problem::value(&place.iter().map(String::as_str).collect::<Vec<_>>(), problem.why)
        };
        return Err(Error::problems(problems.into_iter().map(problem).collect()));
    }
    fields.finish()?;
    Ok(new)
}

/// Nobody is to lose what a source verifies by leaving something out: where a change ends it, and the type would have a
/// secret, `config` says `"secret": null`.
pub(crate) fn may_change(body: &[u8], before: &NewSource, new: &NewSource) -> Result<(), Error> {
    // A type that never verifies says so itself.
    if !before.verifies() || new.verifies() || new.kind == "generic-webhook" {
        return Ok(());
    }
    let config = bounded_json::fields(body).unwrap_or_default().remove("config");
    let config = config.and_then(|config| serde_json::from_str::<Value>(config.get()).ok());
    if config.is_some_and(|config| config.get("secret").is_some_and(Value::is_null)) {
        return Ok(());
    }
    let why = "without it nothing would be verified any more; if you mean that, give null";
    Err(Problem::value(&["body", "config", "secret"], why).into())
}

fn source_name(name: &str) -> Result<(), String> {
    match name.chars().count() {
        0 => Err("must have at least one character".into()),
        count if count > Source::MAX_NAME_CHARS => {
            Err(format!("may have {} characters at most; it has {count}", Source::MAX_NAME_CHARS))
        }
        _ => names::text(name, usize::MAX),
    }
}

fn settings(fields: &mut Fields, before: Option<&NewSource>) -> SourceSettings {
    let mut new = SourceSettings::default();
    let kept = before.map(|before| &before.settings);
    macro_rules! field {
        ($name:literal, $field:ident, $read:expr) => {
            new.$field = match kept.filter(|_| !fields.has($name)) {
                Some(kept) => kept.$field.clone(),
                None => $read,
            };
        };
    }
    field!(
        "eventIdFrom",
        event_id_from,
        texts(fields, "eventIdFrom", SourceSettings::MAX_LOCATIONS).unwrap_or_default()
    );
    field!(
        "eventTypeFrom",
        event_type_from,
        texts(fields, "eventTypeFrom", SourceSettings::MAX_LOCATIONS).unwrap_or_default()
    );
    field!(
        "filterTypes",
        filter_types,
        texts(fields, "filterTypes", SourceSettings::MAX_FILTER_TYPES).unwrap_or_default()
    );
    field!("filterHeaders", filter_headers, conditions(fields));
    field!(
        "forwardHeaders",
        forward_headers,
        texts(fields, "forwardHeaders", aldaba_engine::ForwardedHeaders::MAX_HEADERS)
    );
    field!("answer", answer, answer(fields));
    field!(
        "toleranceSeconds",
        tolerance_seconds,
        fields
            .number("toleranceSeconds", 1, SourceSettings::MAX_TOLERANCE_SECONDS)
            .and_then(|n| u32::try_from(n).ok())
    );
    field!(
        "duplicateWindowDays",
        duplicate_window_days,
        fields
            .number("duplicateWindowDays", 1, SourceSettings::MAX_WINDOW_DAYS)
            .and_then(|n| u16::try_from(n).ok())
    );
    field!(
        "onOtherBody",
        other_body_is_duplicate,
        match fields.string("onOtherBody").as_deref() {
            None | Some("conflict") => false,
            Some("duplicate") => true,
            Some(other) => {
                let message = format!("is `conflict` or `duplicate`, not `{other}`");
                fields.problem("onOtherBody", message);
                false
            }
        }
    );
    new
}

/// A list of texts, in its order. `None`: it is not given.
fn texts(fields: &mut Fields, name: &str, most: usize) -> Option<Vec<String>> {
    let Value::Array(items) = fields.take(name)? else {
        fields.problem(name, "expected a list of strings");
        return None;
    };
    if items.len() > most {
        fields.problem(name, format!("may have {most} items at most; it has {}", items.len()));
        return None;
    }
    let mut texts = Vec::with_capacity(items.len());
    for (number, item) in items.into_iter().enumerate() {
        match item {
            Value::String(text) if text.len() <= SourceSettings::MAX_VALUE_BYTES => texts.push(text),
            Value::String(_) => {
                let why = format!("may be {} bytes long at most", SourceSettings::MAX_VALUE_BYTES);
                fields.problem_at(&[name, &format!("[{number}]")], why);
            }
            _ => fields.problem_at(&[name, &format!("[{number}]")], "expected a string"),
        }
    }
    Some(texts)
}

fn conditions(fields: &mut Fields) -> Vec<HeaderCondition> {
    let field = "filterHeaders";
    let Some(given) = fields.take(field) else { return Vec::new() };
    for (number, condition) in given.as_array().into_iter().flatten().enumerate() {
        let names = condition.as_object().into_iter().flat_map(|condition| condition.keys());
        for name in names.filter(|name| !CONDITION_FIELDS.contains(&name.as_str())) {
            let place = [field, &format!("[{number}]"), name];
            fields.problem_at(&place, unknown_field(name, CONDITION_FIELDS));
        }
    }
    let read: Result<Vec<HeaderCondition>, _> = serde_json::from_value(given);
    let conditions = match read {
        Ok(conditions) => conditions,
        Err(error) => {
            fields.problem(
                field,
                format!("expected a list of objects with `name` and perhaps `values`: {error}"),
            );
            return Vec::new();
        }
    };
    let most = SourceSettings::MAX_CONDITIONS;
    if conditions.len() > most {
        fields.problem(field, format!("may have {most} items at most; it has {}", conditions.len()));
    }
    for (number, condition) in conditions.iter().enumerate() {
        let place = [field, &format!("[{number}]"), "values"];
        let too_long = |value: &String| value.len() > SourceSettings::MAX_VALUE_BYTES;
        if condition.values.len() > SourceSettings::MAX_VALUES {
            fields.problem_at(&place, format!("may have {} items at most", SourceSettings::MAX_VALUES));
        } else if condition.values.iter().any(too_long) {
            let why = format!("each may be {} bytes long at most", SourceSettings::MAX_VALUE_BYTES);
            fields.problem_at(&place, why);
        }
    }
    conditions
}

fn answer(fields: &mut Fields) -> Option<SourceAnswer> {
    let Value::Object(mut given) = fields.take("answer")? else {
        fields.problem("answer", "expected an object with `status`, `contentType` and `body`");
        return None;
    };
    let mut wrong = |name: &str, why: String| fields.problem_at(&["answer", name], why);
    let status = match given.remove("status") {
        None | Some(Value::Null) => 200,
        Some(status) => status.as_u64().filter(|status| (200..=299).contains(status)).unwrap_or_else(|| {
            wrong("status", "must be a whole number from 200 to 299".into());
            200
        }),
    };
    let mut text = |name: &str, default: &str, most: usize| match given.remove(name) {
        None | Some(Value::Null) => default.to_owned(),
        Some(Value::String(text)) if text.len() <= most => text,
        Some(Value::String(_)) => {
            wrong(name, format!("may be {most} bytes long at most"));
            String::new()
        }
        Some(_) => {
            wrong(name, "expected a string".into());
            String::new()
        }
    };
    let content_type = text("contentType", "text/plain; charset=utf-8", 256);
    let body = text("body", "", SourceSettings::MAX_ANSWER_BYTES);
    // Neither has one, and what follows it on the connection would be taken for it.
    if matches!(status, 204 | 205) && !body.is_empty() {
        wrong("body", format!("an answer of status {status} has none; leave it out"));
    }
    if content_type.trim_ascii().is_empty() {
        wrong("contentType", "must not be empty".into());
    } else if !content_type.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        wrong("contentType", "cannot stand in a header: it must be visible ASCII".into());
    }
    if let Some(unknown) = given.keys().next() {
        wrong(unknown, unknown_field(unknown, &["status", "contentType", "body"]));
    }
    Some(SourceAnswer { status: u16::try_from(status).unwrap_or(200), content_type, body })
}
