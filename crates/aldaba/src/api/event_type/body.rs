//! Event types as callers write them.

use crate::api::Error;
use crate::api::request::body::BodyText;
use crate::api::request::ids;
use crate::api::request::json::Fields;
use crate::api::request::json::bounded_json;
use crate::api::request::variant::Variant;
use crate::api::routing::route::example;
use aldaba_engine::{NewEventType, Schemas};
use aldaba_store::EventType;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub(crate) const LONGEST_DESCRIPTION: usize = 16 << 10;
pub(crate) const MOST_FEATURE_FLAGS: usize = 100;

/// A kind of event.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct EventTypeIn {
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    name: String,
    #[schema(max_length = 16384)]
    description: String,
    /// No longer offered to endpoints.
    archived: Option<bool>,
    deprecated: Option<bool>,
    /// Payloads are checked against the schemas; those that do not fit are refused.
    validate: Option<bool>,
    /// JSON Schemas by their versions, such as `{"1": {…}}`.
    #[schema(value_type = Option<Object>)]
    schemas: Value,
    /// Tokens of applications see it only if they have one of these flags.
    #[schema(min_items = 1, max_items = 100)]
    feature_flags: Option<Vec<String>>,
    /// The same for one flag.
    feature_flag: Option<String>,
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    group_name: Option<String>,
}

example!(EventTypeIn, {
    "name": "invoice.paid",
    "description": "An invoice was paid in full",
    "schemas": {"1": {
        "type": "object",
        "required": ["invoice"],
        "properties": {"invoice": {"type": "integer"}},
        "examples": [{"invoice": 42}],
    }},
});

/// A kind of event as it is to be; what is not given is set to its default.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct EventTypeUpdate {
    #[schema(max_length = 16384)]
    description: String,
    archived: Option<bool>,
    deprecated: Option<bool>,
    validate: Option<bool>,
    #[schema(value_type = Option<Object>)]
    schemas: Value,
    #[schema(min_items = 1, max_items = 100)]
    feature_flags: Option<Vec<String>>,
    feature_flag: Option<String>,
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    group_name: Option<String>,
}

example!(EventTypeUpdate, {"description": "An invoice was paid, in full or in part", "groupName": "invoices"});

pub(crate) struct EventTypePatch;

impl ToSchema for EventTypePatch {}

impl PartialSchema for EventTypePatch {
    fn schema() -> RefOr<Schema> {
        Variant::of::<EventTypeUpdate>("Fields of an event type that change; null clears one.")
            .optional("description")
            .into()
    }
}

example!(EventTypePatch, {"deprecated": true});

/// `name`: from the path, where that names it.
pub(crate) fn read(body: BodyText<'_>, name: Option<&str>) -> Result<NewEventType, Error> {
    let mut fields = body.fields()?;
    let name = match name {
        None => {
            let given = fields.required_string("name");
            fields.checked("name", given, |name| ids::name(name)).unwrap_or_default()
        }
        Some(name) => {
            if fields.string("name").is_some_and(|given| given != name) {
                fields.problem(
                    "name",
                    "must be the name in the path, or be left out: an event type keeps its name",
                );
            }
            name.to_owned()
        }
    };
    let schemas = given_schemas(body.bytes, &mut fields);
    finish(fields, name, schemas)
}

/// What a change makes of an event type.
pub(crate) fn merge(current: &EventType, body: BodyText<'_>) -> Result<NewEventType, Error> {
    let given: Map<String, Value> = bounded_json::body(body.bytes)?;
    let mut merged = json!({
        "description": current.description,
        "archived": current.archived,
        "deprecated": current.deprecated,
        "validate": current.validate,
        "featureFlags": (!current.feature_flags.is_empty()).then_some(&current.feature_flags),
        "groupName": current.group_name,
    });
    if given.contains_key("featureFlag") {
        merged["featureFlags"] = Value::Null;
    }
    let changes_schemas = given.contains_key("schemas");
    for (name, value) in given {
        merged[name] = value;
    }
    let mut fields = BodyText { bytes: merged.to_string().as_bytes(), unknown: body.unknown }.fields()?;
    let schemas = match changes_schemas {
        true => given_schemas(body.bytes, &mut fields),
        false => current.schemas.clone(),
    };
    if fields.string("name").is_some_and(|given| given != current.name) {
        fields.problem("name", "cannot be changed: an event type keeps its name");
    }
    finish(fields, current.name.clone(), schemas)
}

fn finish(mut fields: Fields, name: String, schemas: Option<String>) -> Result<NewEventType, Error> {
    let description = fields.required_string("description");
    let description = fields.checked("description", description, |text| check_description(text));
    let archived = fields.boolean_or("archived", false);
    let deprecated = fields.boolean_or("deprecated", false);
    let validate = fields.boolean_or("validate", false);
    if validate && schemas.is_none() && !fields.has_problem() {
        fields.problem(
            "validate",
            "there is nothing to check payloads against; give a schema, such as {\"1\": {…}}",
        );
    }
    let feature_flags = feature_flags(&mut fields);
    let group_name = fields.string("groupName");
    let group_name = fields.checked("groupName", group_name, |name| ids::name(name));
    fields.finish()?;
    let description = description.unwrap_or_default();
    Ok(NewEventType { name, description, archived, deprecated, validate, schemas, feature_flags, group_name })
}

pub(crate) fn check_description(text: &str) -> Result<(), String> {
    match text {
        text if text.len() > LONGEST_DESCRIPTION => {
            Err(format!("may be {LONGEST_DESCRIPTION} bytes long at most"))
        }
        text if text.chars().any(|c| c <= '\u{8}') => Err("must hold no control characters".into()),
        _ => Ok(()),
    }
}

/// A list of flags, or one by its older name. Whoever sends back what they have read gives both.
fn feature_flags(fields: &mut Fields) -> Vec<String> {
    let flags = fields.set("featureFlags", MOST_FEATURE_FLAGS, ids::name);
    let flag = fields.string("featureFlag");
    let Some(flag) = fields.checked("featureFlag", flag, |flag| ids::name(flag)) else { return flags };
    if !flags.is_empty() && !flags.contains(&flag) {
        fields.problem("featureFlag", "is not among `featureFlags`; give one of the two");
    }
    if flags.is_empty() { vec![flag] } else { flags }
}

/// The text of `schemas`, in which each has been checked.
fn given_schemas(body: &[u8], fields: &mut Fields) -> Option<String> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(default, borrow)]
        schemas: Option<&'a RawValue>,
    }
    let given = match serde_json::from_slice::<Body<'_>>(body) {
        Ok(body) => body.schemas?.get(),
        Err(error) => {
            fields.problem("schemas", error.to_string());
            return None;
        }
    };
    match check_schemas(given) {
        Ok(text) => text,
        Err(problems) => {
            for (place, why) in problems {
                let loc: Vec<_> = ["schemas"].into_iter().chain(place.iter().map(String::as_str)).collect();
                fields.problem_at(&loc, why);
            }
            None
        }
    }
}

/// The schemas as they are kept, or what is wrong with them and where. An object without any is the same as none.
pub(crate) fn check_schemas(text: &str) -> Result<Option<String>, Vec<(Vec<String>, String)>> {
    let whole = |why: String| vec![(Vec::new(), why)];
    if text.len() > Schemas::MAX_BYTES {
        return Err(whole(format!("may have {} bytes in all; they have {}", Schemas::MAX_BYTES, text.len())));
    }
    let schemas = Schemas::read(text)
        .map_err(|error| whole(format!("expected an object of JSON Schemas by their versions: {error}")))?;
    if schemas.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = schemas.names().collect();
    if names.len() > Schemas::MAX_VERSIONS {
        return Err(whole(format!("may have {} versions; they have {}", Schemas::MAX_VERSIONS, names.len())));
    }
    let wrong_name = |name: &&str| ids::version(name).err().map(|why| (vec![(*name).to_owned()], why));
    let mut problems: Vec<_> = names.iter().filter_map(wrong_name).collect();
    problems.extend(schemas.check_all().into_iter().map(|error| (error.path, error.why)));
    if problems.is_empty() { Ok(Some(schemas.to_text())) } else { Err(problems) }
}
