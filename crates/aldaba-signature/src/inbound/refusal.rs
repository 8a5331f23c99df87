use super::{MAX_EVENT_TYPE, MAX_ID, Place};
use crate::VerifyError;
use thiserror::Error;

/// Why an event is not taken. Nothing here quotes what came: only the names of headers, and of
/// places in the body, that the recipe reads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A header that the signature needs is absent or empty.
    #[error("the header `{0}` is missing, and with it the signature cannot be checked")]
    Missing(String),
    /// A header that the signature needs came more than once, or holds more than visible ASCII.
    #[error("the header `{0}` must come once, in visible ASCII")]
    Unclear(String),
    /// The signature or its timestamp is not valid.
    #[error(transparent)]
    Signature(#[from] VerifyError),

    /// The recipe does not say where the event's id is.
    #[error("this recipe names no place for the event's id: say where it is, or choose the body's digest")]
    NoIdPlace,
    /// Where the id is signed this is said before the signature can be checked: there is nothing to check it over.
    #[error("the event has no id: there is none in {}", listed(.0))]
    NoId(Vec<Place>),
    /// The event's id is neither a string nor a whole number.
    #[error("the event's id is neither a text nor a whole number")]
    IdKind,
    /// The event's id is too long: its length in bytes.
    #[error("the event's id is {0} bytes long, more than {MAX_ID}")]
    IdTooLong(usize),
    /// The event's id has characters that are not allowed.
    #[error("the event's id must consist of visible ASCII characters, without spaces")]
    IdCharacters,
    /// The event's type is too long: its length in bytes.
    #[error("the event's type is {0} bytes long, more than {MAX_EVENT_TYPE}")]
    EventTypeTooLong(usize),
    /// The event's type has control characters.
    #[error("the event's type must not hold control characters")]
    EventTypeCharacters,
    /// A header with the id or the type came more than once, or holds more than visible ASCII.
    #[error("the header `{0}` must come once, in visible ASCII, to name the event's id or type")]
    PlaceUnclear(String),
    /// The id should be in the body, and the body cannot be read as JSON.
    #[error("the body is no JSON, or too deeply nested, and the event's id should be in it")]
    BodyNotJson,
}

/// The places that were looked at, as [`Place::parse`] reads them.
fn listed(places: &[Place]) -> String {
    let named: Vec<_> = places.iter().map(|place| format!("`{place}`")).collect();
    named.join(" or ")
}

impl Refusal {
    /// Whether the signature was the reason: HTTP's 401. The others are 400.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Unclear(_) | Self::Signature(_))
    }
}
