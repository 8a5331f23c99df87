use super::{MAX_EVENT_TYPE, MAX_ID, Place};
use crate::VerifyError;
use thiserror::Error;

/// Why an event is rejected. The text quotes nothing of the request except the names of headers and places that the
/// recipe reads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A header of the signature is absent or empty.
    #[error("the header `{0}` is missing; the signature cannot be checked without it")]
    Missing(String),
    /// A header of the signature is repeated, or contains other bytes than visible ASCII.
    #[error("the header `{0}` must come once, in visible ASCII")]
    Unclear(String),
    /// The signature or its timestamp is not valid.
    #[error(transparent)]
    Signature(#[from] VerifyError),

    /// The recipe has no place for the event's id.
    #[error("this recipe has no place for the event's id: set one, or choose the body's digest")]
    NoIdPlace,
    /// The id is missing. If the id is signed, this is detected before the signature, which cannot be checked without it.
    #[error("the event has no id: there is none in {}", listed(.0))]
    NoId(Vec<Place>),
    /// The event's id is neither a string nor an integer.
    #[error("the event's id is neither a string nor an integer")]
    IdKind,
    /// The event's id is too long: its length in bytes.
    #[error("the event's id is {0} bytes long, more than {MAX_ID}")]
    IdTooLong(usize),
    /// The event's id contains a forbidden character.
    #[error("the event's id must consist of visible ASCII characters, without spaces")]
    IdCharacters,
    /// The event's type is too long: its length in bytes.
    #[error("the event's type is {0} bytes long, more than {MAX_EVENT_TYPE}")]
    EventTypeTooLong(usize),
    /// The event's type has control characters.
    #[error("the event's type must not contain control characters")]
    EventTypeCharacters,
    /// A header with the id or the type is repeated, or contains other bytes than visible ASCII.
    #[error("the header `{0}` must come once, in visible ASCII, to name the event's id or type")]
    PlaceUnclear(String),
    /// The id should be in the body, and the body is not readable as JSON.
    #[error("the body should contain the event's id, and is not valid JSON or is too deeply nested")]
    BodyNotJson,
}

/// The places that were read, in the format of [`Place::parse`].
fn listed(places: &[Place]) -> String {
    let named: Vec<_> = places.iter().map(|place| format!("`{place}`")).collect();
    named.join(" or ")
}

impl Refusal {
    /// Whether the signature is the reason: status 401. The others are 400.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Unclear(_) | Self::Signature(_))
    }
}
