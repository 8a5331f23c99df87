//! Event types out of the webhooks of an OpenAPI document.

use super::bundle::{Bundle, Document};
use crate::api::event_type::body::{MAX_FEATURE_FLAGS, check_description, check_schemas};
use crate::api::request::ids;
use aldaba_engine::{ChangeError, EventTypes, NewEventType};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where documents list them. OpenAPI 3.0 has no word of its own for it.
const SECTIONS: [&str; 2] = ["webhooks", "x-webhooks"];
const METHODS: [&str; 5] = ["post", "put", "patch", "get", "delete"];
const MOST_FLAWS: usize = 50;

/// What is wrong with a document, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) place: Vec<String>,
    pub(super) why: String,
}

impl Flaw {
    pub(super) fn new(place: &[String], why: impl Into<String>) -> Self {
        Self { place: place.to_vec(), why: why.into() }
    }

    fn at(place: &[&str], why: impl Into<String>) -> Self {
        Self { place: place.iter().map(|part| (*part).to_owned()).collect(), why: why.into() }
    }
}

/// Why a document is not taken.
#[derive(Debug)]
pub(super) enum Refused {
    Flaws(Vec<Flaw>),
    /// No organization has room for what it makes.
    Room(ChangeError),
}

impl From<Flaw> for Refused {
    fn from(flaw: Flaw) -> Self {
        Self::Flaws(vec![flaw])
    }
}

/// By name. All that is wrong is named, up to a limit. What an organization may have ends it as soon as there is more:
/// a small document can be written out to something very large.
pub(super) fn read(root: &Value) -> Result<Vec<NewEventType>, Refused> {
    let document = version(root)?;
    if !SECTIONS.iter().any(|section| root.get(section).is_some()) {
        let why = "has neither `webhooks` nor `x-webhooks`, so there is nothing to import";
        return Err(Flaw::at(&[], why).into());
    }
    let (mut found, mut flaws) = (BTreeMap::<&str, NewEventType>::new(), Vec::new());
    let mut schema_bytes = 0;
    for section in SECTIONS {
        let Some(webhooks) = root.get(section) else { continue };
        let Some(webhooks) = webhooks.as_object() else {
            flaws.push(Flaw::at(&[section], "expected an object of webhooks by their names"));
            continue;
        };
        for (name, item) in webhooks {
            let place = vec![section.to_owned(), name.clone()];
            if flaws.len() >= MOST_FLAWS {
                break;
            }
            if found.contains_key(name.as_str()) {
                flaws.push(Flaw::new(&place, "is in `webhooks`, too"));
                continue;
            }
            match webhook(&document, name, item, &place) {
                Ok(event_type) => {
                    schema_bytes += event_type.schemas.as_ref().map_or(0, String::len);
                    found.insert(name, event_type);
                }
                Err(wrong) => flaws.extend(wrong),
            }
            if found.len() > EventTypes::MAX_PER_ORGANIZATION {
                return Err(Refused::Room(ChangeError::TooManyEventTypes));
            }
            if schema_bytes > EventTypes::MAX_SCHEMA_BYTES {
                return Err(Refused::Room(ChangeError::SchemasTooLarge));
            }
        }
    }
    flaws.truncate(MOST_FLAWS);
    if flaws.is_empty() { Ok(found.into_values().collect()) } else { Err(Refused::Flaws(flaws)) }
}

fn version(root: &Value) -> Result<Document<'_>, Flaw> {
    match root.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.") => {
            Ok(Document { root, older: version.starts_with("3.0") })
        }
        Some(version) => {
            let shown: String = version.chars().take(20).collect();
            Err(Flaw::at(&["openapi"], format!("`{shown}` is not supported; documents are of OpenAPI 3")))
        }
        None => Err(Flaw::at(&["openapi"], "is missing: this is no OpenAPI 3 document")),
    }
}

fn webhook(
    document: &Document<'_>,
    name: &str,
    item: &Value,
    place: &[String],
) -> Result<NewEventType, Vec<Flaw>> {
    let one = |flaw| vec![flaw];
    ids::name(name).map_err(|why| one(Flaw::new(place, format!("the name {why}"))))?;
    let (item, place) = follow(document, item, place)?;
    let Some((method, operation)) =
        METHODS.iter().find_map(|method| item.get(*method).map(|operation| (*method, operation)))
    else {
        return Err(one(Flaw::new(&place, "has no operation, such as `post`")));
    };
    let place = within(&place, &[method]);
    let description = [operation, item]
        .iter()
        .flat_map(|part| ["description", "summary"].map(|word| part.get(word).and_then(Value::as_str)))
        .flatten()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
        .trim();
    check_description(description).map_err(|why| one(Flaw::new(&place, format!("the description {why}"))))?;
    let deprecated = operation.get("deprecated").is_some_and(|value| *value == true);
    let schemas = match operation.get("requestBody") {
        None => None,
        Some(body) => payload(document, body, &within(&place, &["requestBody"]))?,
    };
    Ok(NewEventType {
        name: name.to_owned(),
        description: description.to_owned(),
        archived: false,
        deprecated,
        validate: false,
        schemas,
        feature_flags: feature_flags(operation, &place).map_err(one)?,
        group_name: group_name(operation, &place).map_err(one)?,
    })
}

fn follow<'d>(
    document: &Document<'d>,
    value: &'d Value,
    place: &[String],
) -> Result<(&'d Value, Vec<String>), Vec<Flaw>> {
    document.follow(value, place.to_vec()).map_err(|flaw| vec![flaw])
}

/// The schema of the JSON that is sent, as the first version.
fn payload(document: &Document<'_>, body: &Value, place: &[String]) -> Result<Option<String>, Vec<Flaw>> {
    let (body, place) = follow(document, body, place)?;
    let place = within(&place, &["content"]);
    let content = body.get("content").and_then(Value::as_object);
    let content = content.ok_or_else(|| vec![Flaw::new(&place, "expected an object of media types")])?;
    let is_json = |media: &&String| media.as_str() == "*/*" || media.contains("json");
    let Some(media) = content.keys().find(is_json) else {
        return Err(vec![Flaw::new(&place, "has no `application/json`, and payloads are JSON")]);
    };
    let (place, content) = (within(&place, &[media]), &content[media]);
    let Some(schema) = content.get("schema") else { return Ok(None) };
    let place = within(&place, &["schema"]);
    let mut bundle = document.bundle(schema, &place).map_err(|flaw| vec![flaw])?;
    add_examples(&mut bundle.schema, content);
    let text = json!({ "1": bundle.schema }).to_string();
    check_schemas(&text).map_err(|problems| {
        problems
            .into_iter()
            .map(|(inside, why)| Flaw { place: origin(&bundle, &place, &inside), why })
            .collect()
    })
}

/// Where something in a bundle was in the document. Its own place begins with the version.
fn origin(bundle: &Bundle, place: &[String], inside: &[String]) -> Vec<String> {
    let inside = inside.get(1..).unwrap_or_default();
    match inside {
        [defs, name, rest @ ..] if defs == "$defs" => {
            bundle.origins.get(name).into_iter().flatten().chain(rest).cloned().collect()
        }
        _ => [place, inside].concat(),
    }
}

/// Examples that stand beside the schema become its own, if it has none.
fn add_examples(schema: &mut Value, content: &Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    if keywords.contains_key("examples") || keywords.contains_key("example") {
        return;
    }
    let named = content.get("examples").and_then(Value::as_object).into_iter().flatten();
    let mut examples: Vec<_> = named.filter_map(|(_, example)| example.get("value").cloned()).collect();
    examples.extend(content.get("example").cloned());
    if !examples.is_empty() {
        keywords.insert("examples".into(), Value::Array(examples));
    }
}

fn feature_flags(operation: &Value, place: &[String]) -> Result<Vec<String>, Flaw> {
    let given = ["x-svix-feature-flags", "x-svix-feature-flag"].into_iter();
    let Some((word, value)) = given.filter_map(|word| operation.get(word).map(|value| (word, value))).next()
    else {
        return Ok(Vec::new());
    };
    let texts: Option<Vec<_>> = match value {
        Value::String(flag) => Some(vec![flag.clone()]),
        Value::Array(flags) => flags.iter().map(|flag| flag.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let texts = texts.filter(|texts| texts.iter().all(|flag| ids::name(flag).is_ok()));
    let mut flags = texts.ok_or_else(|| Flaw::new(&within(place, &[word]), "expected a list of flags"))?;
    if flags.len() > MAX_FEATURE_FLAGS {
        return Err(Flaw::new(&within(place, &[word]), format!("may have {MAX_FEATURE_FLAGS} flags")));
    }
    flags.sort_unstable();
    flags.dedup();
    Ok(flags)
}

fn group_name(operation: &Value, place: &[String]) -> Result<Option<String>, Flaw> {
    let word = "x-svix-group-name";
    let Some(value) = operation.get(word) else { return Ok(None) };
    let name = value.as_str().filter(|name| ids::name(name).is_ok());
    match name {
        Some(name) => Ok(Some(name.to_owned())),
        None => Err(Flaw::new(&within(place, &[word]), "expected a name")),
    }
}

fn within(place: &[String], more: &[&str]) -> Vec<String> {
    place.iter().cloned().chain(more.iter().map(|part| (*part).to_owned())).collect()
}
