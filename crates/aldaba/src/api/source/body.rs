//! Sources as callers write them: what is checked beyond their form, and how they are kept.

use super::config;
use crate::api::Error;
use crate::api::request::body::BodyText;
use crate::api::request::json::{Fields, bounded_json};
use crate::api::request::kept::Kept;
use crate::api::response::error::Problem;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{Json, NewSource as Body, SourcePatch};
use aldaba_delivery::OrgId;
use aldaba_engine::{HeaderCondition, NewSource, SOURCE_TYPES, SourceAnswer, SourceSecrets, SourceSettings};
use aldaba_store::Source;
use serde_json::{Map, Value, json};

const _: () = assert!(aldaba_api::MAX_VALUE_BYTES == SourceSettings::MAX_VALUE_BYTES);

/// A new one.
pub(crate) fn read(org: OrgId, body: BodyText<'_>) -> Result<NewSource, Error> {
    checked(org, Parsed::<Body>::of(fields(body)?, false), Before::Replaced)
}

/// A whole one, that may be there already.
pub(crate) fn read_whole(
    org: OrgId,
    body: BodyText<'_>,
    before: Option<&NewSource>,
) -> Result<NewSource, Error> {
    let parsed = Parsed::<Body>::of(fields(body)?, true);
    let stays = before.filter(|before| parsed.value.r#type == before.kind);
    let stays = stays.filter(|before| is_as_shown(parsed.value.config.as_ref(), before));
    checked(org, parsed, stays.map_or(Before::Replaced, Before::Stays))
}

/// What a change makes of a source.
pub(crate) fn patched(body: BodyText<'_>, before: &NewSource) -> Result<NewSource, Error> {
    let Parsed { value: patch, fields } = Parsed::<SourcePatch>::of(fields(body)?, true);
    let body = patch.over(whole(before));
    let is_same = body.r#type == before.kind;
    let stays = is_same && (!fields.gives("config") || is_as_shown(body.config.as_ref(), before));
    let how = match stays {
        true => Before::Stays(before),
        false if fields.gives("config") => Before::Replaced,
        false => Before::NeedsConfig,
    };
    checked(before.org, Parsed { value: body, fields }, how)
}

/// What becomes of that by which a source verifies its sender.
#[derive(Clone, Copy)]
enum Before<'a> {
    /// It stays as it is.
    Stays(&'a NewSource),
    /// The body says all of it.
    Replaced,
    /// The body must say it: it gives another type.
    NeedsConfig,
}

/// Whether a `config` is what an answer shows, in which secrets are left out: a client that sends back what it has read
/// does not mean to end the verification.
fn is_as_shown(config: Option<&Json>, before: &NewSource) -> bool {
    config.is_some_and(|config| config.value() == Value::Object(shown_config(before)))
}

/// The part of `config` that is not secret.
pub(crate) fn shown_config(NewSource { kind, settings, secrets, .. }: &NewSource) -> Map<String, Value> {
    let mut config = match &settings.hmac {
        Some(hmac) => json!(hmac),
        None => json!({}),
    };
    if let Some(brand) = &settings.brand {
        config["brand"] = json!(brand);
    }
    if kind == "telnyx" {
        config["publicKey"] = json!(secrets.secrets.first().map(|key| key.as_str()));
    }
    let keys = secrets.public_keys();
    if !keys.is_empty() {
        config["publicKeys"] = json!(keys);
    }
    match config {
        Value::Object(config) => config.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// The fields of a body. What a sender is known by belongs into `config`: beside it, it would be passed over.
fn fields(body: BodyText<'_>) -> Result<Fields, Error> {
    let mut fields = body.fields()?;
    for name in config::SECRET_NAMES {
        if fields.has(name) {
            fields.problem(name, "belongs into `config`");
        }
    }
    fields.forget(&config::SECRET_NAMES);
    Ok(fields)
}

/// A source as a body that would make it, but for its `config`.
pub(crate) fn whole(source: &NewSource) -> Body {
    let NewSource { uid, name, metadata, kind, settings, .. } = source;
    let some = |items: &[String]| (!items.is_empty()).then(|| items.to_vec());
    let conditions = settings.filter_headers.iter().map(|HeaderCondition { name, values }| {
        aldaba_api::HeaderCondition { name: name.clone(), values: some(values) }
    });
    let conditions: Vec<_> = conditions.collect();
    Body {
        name: name.clone(),
        uid: uid.clone(),
        r#type: kind.clone(),
        config: None,
        metadata: Kept::show(metadata),
        event_id_from: some(&settings.event_id_from),
        event_type_from: some(&settings.event_type_from),
        filter_types: some(&settings.filter_types),
        filter_headers: (!conditions.is_empty()).then_some(conditions),
        forward_headers: settings.forward_headers.clone(),
        answer: settings.answer.as_ref().map(|answer| aldaba_api::SourceAnswer {
            status: Some(answer.status),
            content_type: Some(answer.content_type.clone()),
            body: Some(answer.body.clone()),
        }),
        tolerance_seconds: settings.tolerance_seconds,
        duplicate_window_days: settings.duplicate_window_days,
        on_other_body: settings.other_body_is_duplicate.then(|| "duplicate".to_owned()),
    }
}

fn checked(org: OrgId, parsed: Parsed<Body>, before: Before<'_>) -> Result<NewSource, Error> {
    let Parsed { value: body, mut fields } = parsed;
    let kind = body.r#type.clone();
    // What else is wrong with a type that there is not is of no use to anybody.
    let is_known = SOURCE_TYPES.contains(&kind.as_str());
    if !is_known && fields.is_fine("type") {
        let why = if kind.is_empty() {
            "must not be empty".to_owned()
        } else {
            format!("is none of {}", SOURCE_TYPES.join(", "))
        };
        fields.problem("type", why);
    }
    let mut settings = settings(&mut fields, &body);
    let tolerance = settings.tolerance_seconds.filter(|_| fields.gives("toleranceSeconds"));
    let secrets = match before {
        Before::Stays(before) => {
            (settings.brand, settings.hmac) = (before.settings.brand.clone(), before.settings.hmac.clone());
            before.secrets.clone()
        }
        Before::Replaced if is_known => {
            config::read(&mut fields, body.config.as_ref(), &kind, &mut settings, tolerance)
        }
        Before::NeedsConfig if is_known => {
            let why = format!("this field is required with another type: what `{kind}` verifies with");
            fields.problem("config", why);
            SourceSecrets::default()
        }
        Before::Replaced | Before::NeedsConfig => SourceSecrets::default(),
    };
    if serde_json::to_string(&settings).is_ok_and(|text| text.len() > Source::MAX_SETTINGS_BYTES) {
        fields.problem(
            "type",
            format!("all settings together may be {} bytes at most", Source::MAX_SETTINGS_BYTES),
        );
    }
    let (uid, name, metadata) = (body.uid, body.name, body.metadata.keep());
    let new = NewSource { org, uid, name, metadata, kind, settings, secrets };
    // Of a field that cannot be read nothing else is said.
    for problem in new.check().err().into_iter().flatten().filter(|_| is_known) {
        if problem.path.first().is_none_or(|field| fields.is_fine(field)) {
            let place: Vec<_> = problem.path.iter().map(String::as_str).collect();
            fields.problem_at(&place, problem.why);
        }
    }
    fields.finish_in_order(Body::KNOWN)?;
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

fn settings(fields: &mut Fields, body: &Body) -> SourceSettings {
    let list = |given: &Option<Vec<String>>| given.clone().unwrap_or_default();
    let conditions = body.filter_headers.iter().flatten();
    SourceSettings {
        event_id_from: list(&body.event_id_from),
        event_type_from: list(&body.event_type_from),
        filter_types: list(&body.filter_types),
        filter_headers: conditions
            .map(|condition| HeaderCondition {
                name: condition.name.clone(),
                values: list(&condition.values),
            })
            .collect(),
        forward_headers: body.forward_headers.clone(),
        answer: body.answer.as_ref().map(|given| answer(fields, given)),
        tolerance_seconds: body.tolerance_seconds,
        duplicate_window_days: body.duplicate_window_days,
        other_body_is_duplicate: body.on_other_body.as_deref() == Some("duplicate"),
        ..SourceSettings::default()
    }
}

fn answer(fields: &mut Fields, given: &aldaba_api::SourceAnswer) -> SourceAnswer {
    let mut wrong = |name: &str, why: String| fields.problem_at(&["answer", name], why);
    let status = given.status.unwrap_or(200);
    let content_type = given.content_type.clone().unwrap_or_else(|| "text/plain; charset=utf-8".into());
    let body = given.body.clone().unwrap_or_default();
    // Neither has one, and what follows it on the connection would be taken for it.
    if matches!(status, 204 | 205) && !body.is_empty() {
        wrong("body", format!("an answer of status {status} has none; leave it out"));
    }
    if content_type.trim_ascii().is_empty() {
        wrong("contentType", "must not be empty".into());
    } else if !content_type.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        wrong("contentType", "cannot stand in a header: it must be visible ASCII".into());
    }
    SourceAnswer { status, content_type, body }
}
