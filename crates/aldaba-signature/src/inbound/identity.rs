//! The id and the type of an event whose signature held.

use super::{Found, Headers, Place, Recipe, Refusal};
use crate::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The longest id, in bytes.
pub const MAX_ID: usize = 255;
/// The longest event type, in bytes.
pub const MAX_EVENT_TYPE: usize = 100;

/// What an event says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// What its sender calls it, the same whenever it is sent again: 1 to [`MAX_ID`] visible ASCII characters.
    pub id: String,
    /// What happened, where the sender says so: at most [`MAX_EVENT_TYPE`] bytes, no control characters.
    pub event_type: Option<String>,
}

/// A request, its body parsed at most once, and only if somebody asks.
pub(crate) struct Content<'a, H> {
    headers: H,
    body: &'a [u8],
    document: OnceCell<Option<Value>>,
}

/// What is in a place.
enum PlaceValue<'a> {
    Nothing,
    Text(Cow<'a, str>),
    /// Neither a text nor a whole number.
    Other,
    Unclear,
}

impl<'a, 'h, H: Headers<'h>> Content<'a, H> {
    pub(crate) fn new(headers: H, body: &'a [u8]) -> Self {
        Self { headers, body, document: OnceCell::new() }
    }

    /// `signed_id`: the one that the signature covers, where it covers one.
    pub(crate) fn identify(&self, recipe: &Recipe, signed_id: Option<&str>) -> Result<Inspected, Refusal> {
        let id = self.id(recipe, signed_id)?;
        Ok(Inspected { id, event_type: self.event_type(&recipe.event_type)? })
    }

    fn id(&self, recipe: &Recipe, signed_id: Option<&str>) -> Result<String, Refusal> {
        if recipe.id.is_empty() {
            return Err(Refusal::NoIdPlace);
        }
        for place in &recipe.id {
            // A recipe may know the signed header under several names, and only one of them was signed: never look
            // at the others.
            if let (Place::Header(name), Some(id)) = (place, signed_id)
                && recipe.signs_header(name)
            {
                return valid_id(id);
            }
            match self.look(place) {
                PlaceValue::Nothing => {}
                PlaceValue::Text(id) => return valid_id(&id),
                PlaceValue::Other => return Err(Refusal::IdKind),
                PlaceValue::Unclear => return Err(Refusal::PlaceUnclear(place_name(place))),
            }
        }
        // It was asked for, and it was not there to be asked.
        let is_no_json = matches!(self.document.get(), Some(None));
        Err(if is_no_json { Refusal::BodyNotJson } else { Refusal::NoId(recipe.id.clone()) })
    }

    fn event_type(&self, places: &[Place]) -> Result<Option<String>, Refusal> {
        for place in places {
            match self.look(place) {
                // What is no text is no type. An event needs none, so that is no reason to lose it.
                PlaceValue::Nothing | PlaceValue::Other => {}
                PlaceValue::Text(event_type) => return valid_event_type(&event_type).map(Some),
                PlaceValue::Unclear => return Err(Refusal::PlaceUnclear(place_name(place))),
            }
        }
        Ok(None)
    }

    fn look<'c>(&'c self, place: &Place) -> PlaceValue<'c>
    where
        'h: 'c,
    {
        match place {
            Place::Header(name) => match self.headers.find(name).trimmed() {
                Found::Absent => PlaceValue::Nothing,
                Found::Text(text) => PlaceValue::Text(text.into()),
                Found::Repeated | Found::Unreadable => PlaceValue::Unclear,
            },
            Place::Json(path) => self
                .document()
                .and_then(|document| path.find(document))
                .map_or(PlaceValue::Nothing, place_value),
            Place::BodyDigest => PlaceValue::Text(hex::write(&Sha256::digest(self.body)).into()),
        }
    }

    /// `None`: the body is no JSON, or too deeply nested.
    pub(crate) fn document(&self) -> Option<&Value> {
        // The parser gives up at a depth of 128; of a key that comes twice it keeps the last.
        self.document.get_or_init(|| serde_json::from_slice(self.body).ok()).as_ref()
    }
}

fn place_value(value: &Value) -> PlaceValue<'_> {
    match value {
        Value::Null => PlaceValue::Nothing,
        Value::String(text) if text.is_empty() => PlaceValue::Nothing,
        Value::String(text) => PlaceValue::Text(text.into()),
        // A number that is none of these was rounded when it was read: two ids could become one.
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            PlaceValue::Text(number.to_string().into())
        }
        Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => PlaceValue::Other,
    }
}

fn place_name(place: &Place) -> String {
    match place {
        Place::Header(name) => name.clone(),
        other => other.to_string(),
    }
}

fn valid_id(id: &str) -> Result<String, Refusal> {
    if id.len() > MAX_ID {
        Err(Refusal::IdTooLong(id.len()))
    } else if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err(Refusal::IdCharacters)
    } else {
        Ok(id.to_owned())
    }
}

fn valid_event_type(event_type: &str) -> Result<String, Refusal> {
    if event_type.len() > MAX_EVENT_TYPE {
        Err(Refusal::EventTypeTooLong(event_type.len()))
    } else if event_type.chars().any(char::is_control) {
        Err(Refusal::EventTypeCharacters)
    } else {
        Ok(event_type.to_owned())
    }
}
