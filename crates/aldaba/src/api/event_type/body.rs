//! Event types as callers write them: what is checked beyond their form, and how they are kept.

use crate::api::Error;
use crate::api::request::body::BodyText;
use crate::api::request::ids;
use crate::api::request::json::Fields;
use crate::api::request::kept::Kept;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{EventTypePatch, EventTypeUpdate, Json, NewEventType as Body, Set};
use aldaba_delivery::names;
use aldaba_engine::{NewEventType, Schemas};
use aldaba_store::EventType;

const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
pub(crate) const MAX_FEATURE_FLAGS: usize = 100;

/// Keeps a field as it is.
macro_rules! keep {
    ([$($doc:tt)*] own $($rest:tt)*) => {};
    ([$($doc:tt)*] stored $mode:ident $field:ident [$type:ty] $new:ident $body:ident) => {
        $new.$field = Kept::keep($body.$field);
    };
}

/// Shows a field as it is kept.
macro_rules! show {
    ([$($doc:tt)*] own $($rest:tt)*) => {};
    ([$($doc:tt)*] stored $mode:ident $field:ident [$type:ty] $event_type:ident $body:ident) => {
        $body.$field = Kept::show(&$event_type.$field);
    };
}

/// An event type as a body that would make it.
pub(crate) fn whole(event_type: &EventType) -> EventTypeUpdate {
    let mut body = EventTypeUpdate {
        schemas: event_type.schemas.as_ref().and_then(|text| Json::from_text(text.as_str()).ok()),
        feature_flags: Kept::show(&event_type.feature_flags),
        feature_flag: event_type.feature_flags.first().cloned(),
        ..EventTypeUpdate::default()
    };
    aldaba_api::event_type_fields!(show event_type body);
    body
}

/// A new event type.
pub(crate) fn read(body: BodyText<'_>) -> Result<NewEventType, Error> {
    let Parsed { value, fields } = body.parse::<Body>(false)?;
    checked(value, fields, Stored::Nothing)
}

/// A whole event type of this name.
pub(crate) fn read_whole(body: BodyText<'_>, name: &str) -> Result<NewEventType, Error> {
    let Parsed { value, fields } = parse_change::<EventTypeUpdate>(body, name)?;
    checked(Body { name: name.to_owned(), ..value.into() }, fields, Stored::Nothing)
}

/// What a change makes of an event type.
pub(crate) fn patched(current: &EventType, body: BodyText<'_>) -> Result<NewEventType, Error> {
    let Parsed { value: patch, fields } = parse_change::<EventTypePatch>(body, &current.name)?;
    let mut whole = EventTypeUpdate { feature_flag: None, ..whole(current) };
    if patch.feature_flag != Set::Keep {
        whole.feature_flags = None;
    }
    // Stored schemas have been checked.
    let stored =
        if patch.schemas == Set::Keep { Stored::Schemas(current.schemas.clone()) } else { Stored::Nothing };
    let body = Body { name: current.name.clone(), ..patch.over(whole).into() };
    checked(body, fields, stored)
}

/// A change may give the name again.
fn parse_change<T: ApiRequest>(body: BodyText<'_>, name: &str) -> Result<Parsed<T>, Error> {
    let mut fields = body.fields()?;
    if fields.string("name").is_some_and(|given| given != name) {
        fields.problem("name", "must be the name in the path, or be left out: an event type keeps its name");
    }
    Ok(Parsed::of(fields, true))
}

enum Stored {
    Nothing,
    Schemas(Option<String>),
}

fn checked(body: Body, mut fields: Fields, stored: Stored) -> Result<NewEventType, Error> {
    let body = body.complete();
    let schemas = match stored {
        Stored::Schemas(stored) => stored,
        Stored::Nothing => given_schemas(&mut fields, body.schemas.as_ref()),
    };
    if body.validate == Some(true) && schemas.is_none() && !fields.has_problem() {
        fields.problem(
            "validate",
            "there is nothing to check payloads against; give a schema, such as {\"1\": {…}}",
        );
    }
    let feature_flags = feature_flags(&mut fields, body.feature_flags.unwrap_or_default(), body.feature_flag);
    let order: Vec<_> = ["name"].iter().chain(Body::KNOWN).copied().collect();
    fields.finish_in_order(&order)?;
    let mut new = NewEventType {
        name: body.name,
        description: String::new(),
        archived: false,
        deprecated: false,
        validate: false,
        schemas,
        feature_flags,
        group_name: None,
    };
    aldaba_api::event_type_fields!(keep new body);
    Ok(new)
}

pub(crate) fn check_description(text: &str) -> Result<(), String> {
    names::text(text, MAX_DESCRIPTION_BYTES)
}

/// A list of flags, or one by its older name. A client that sends back what it has read gives both.
fn feature_flags(fields: &mut Fields, flags: Vec<String>, flag: Option<String>) -> Vec<String> {
    let Some(flag) = flag else { return flags };
    if !flags.is_empty() && !flags.contains(&flag) {
        fields.problem("featureFlag", "is not among `featureFlags`; give one of the two");
    }
    if flags.is_empty() { vec![flag] } else { flags }
}

/// The text of `schemas`, in which each has been checked.
fn given_schemas(fields: &mut Fields, given: Option<&Json>) -> Option<String> {
    match check_schemas(given?.text()) {
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
