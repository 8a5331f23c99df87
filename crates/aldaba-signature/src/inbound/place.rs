use super::{JsonPath, PathError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The maximum length of a header name, in bytes.
pub const MAX_HEADER_NAME: usize = 64;

const HEADER: &str = "header:";
const BODY_DIGEST: &str = "body-digest";

/// The location of an event's id or type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A header. Unless the sender signs it, an observer of a request can replay it with another id: prefer an id in the
    /// body.
    Header(String),
    /// A value in the body: a string or an integer.
    Json(JsonPath),
    /// The SHA-256 of the body, in hexadecimal: for senders without event ids. Two events with the same bytes
    /// count as one.
    BodyDigest,
}

/// Why a text is not a place.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// The text has none of the three forms.
    #[error("a place is `header:x-event-id`, a path like `$.data.id`, or `body-digest`")]
    Form,
    /// The name of the header is too long or contains a forbidden character.
    #[error("a header name has 1 to {MAX_HEADER_NAME} characters that HTTP allows in a token")]
    HeaderName,
    /// The path in the body is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Place {
    /// Reads `header:x-event-id`, `$.data.id` or `body-digest`.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        if let Some(name) = text.strip_prefix(HEADER) {
            Self::header(name)
        } else if text.starts_with('$') {
            Ok(Self::Json(JsonPath::parse(text)?))
        } else if text == BODY_DIGEST {
            Ok(Self::BodyDigest)
        } else {
            Err(PlaceError::Form)
        }
    }

    /// A header; its name is case-insensitive.
    pub fn header(name: &str) -> Result<Self, PlaceError> {
        if is_header_name(name) {
            Ok(Self::Header(name.to_ascii_lowercase()))
        } else {
            Err(PlaceError::HeaderName)
        }
    }

    /// Headers are looked up in lower case.
    pub(crate) fn lower_case(self) -> Self {
        match self {
            Self::Header(name) => Self::Header(name.to_ascii_lowercase()),
            other => other,
        }
    }
}

/// A token of HTTP.
pub(crate) fn is_header_name(name: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_HEADER_NAME).contains(&name.len()) && name.bytes().all(sign)
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        Self::parse(text)
    }
}

/// The format of [`Place::parse`].
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "{HEADER}{name}"),
            Self::Json(path) => path.fmt(f),
            Self::BodyDigest => f.write_str(BODY_DIGEST),
        }
    }
}
