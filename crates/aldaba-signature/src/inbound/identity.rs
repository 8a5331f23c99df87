//! The id and the type of an event with a valid signature.

use super::{Found, Headers, Place, Recipe, Refusal};
use crate::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The maximum length of an id, in bytes.
pub const MAX_ID: usize = 255;
/// The maximum length of an event type, in bytes.
pub const MAX_EVENT_TYPE: usize = 100;

/// The id and type of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// The sender's id of the event, the same in each copy: 1 to [`MAX_ID`] visible ASCII characters.
    pub id: String,
    /// The event type, if the sender names one: at most [`MAX_EVENT_TYPE`] bytes, no control characters.
    pub event_type: Option<String>,
}

/// A request whose body is parsed at most once, on demand.
pub(crate) struct Content<'a, H> {
    headers: H,
    body: &'a [u8],
    document: OnceCell<Option<Value>>,
}

/// The value at a place.
enum PlaceValue<'a> {
    Nothing,
    Text(Cow<'a, str>),
    /// Neither a string nor an integer.
    Other,
    Unclear,
}

impl<'a, 'h, H: Headers<'h>> Content<'a, H> {
    pub(crate) fn new(headers: H, body: &'a [u8]) -> Self {
        Self { headers, body, document: OnceCell::new() }
    }

    /// `signed_id`: the id that the signature covers, if any.
    pub(crate) fn identify(&self, recipe: &Recipe, signed_id: Option<&str>) -> Result<Inspected, Refusal> {
        let id = self.id(recipe, signed_id)?;
        Ok(Inspected { id, event_type: self.event_type(&recipe.event_type)? })
    }

    fn id(&self, recipe: &Recipe, signed_id: Option<&str>) -> Result<String, Refusal> {
        if recipe.id.is_empty() {
            return Err(Refusal::NoIdPlace);
        }
        for place in &recipe.id {
            // A recipe may accept several names of the signed header, of which only one is signed: never read the others.
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
        // The id is missing in all places.
        let is_no_json = matches!(self.document.get(), Some(None));
        Err(if is_no_json { Refusal::BodyNotJson } else { Refusal::NoId(recipe.id.clone()) })
    }

    fn event_type(&self, places: &[Place]) -> Result<Option<String>, Refusal> {
        for place in places {
            match self.look(place) {
                // A value that is not a string is not a type. The type is optional, so the event is accepted without it.
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

    /// Parses the body; `None` if it is not JSON, or too deeply nested.
    pub(crate) fn document(&self) -> Option<&Value> {
        // The parser stops at a depth of 128; of a duplicate key it keeps the last value.
        self.document.get_or_init(|| serde_json::from_slice(self.body).ok()).as_ref()
    }
}

fn place_value(value: &Value) -> PlaceValue<'_> {
    match value {
        Value::Null => PlaceValue::Nothing,
        Value::String(text) if text.is_empty() => PlaceValue::Nothing,
        Value::String(text) => PlaceValue::Text(text.into()),
        // Other numbers were rounded by the parser: two ids could become equal.
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
