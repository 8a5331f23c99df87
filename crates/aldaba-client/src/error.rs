//! What can go wrong, sorted by who must act.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Why a call did not work. Its text says what to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Aldaba answered, and said no.
    Api {
        /// The HTTP status.
        status: u16,
        /// A word for programs, such as `not_found`; `validation` where the answer lists [`Problem`]s.
        code: String,
        /// A sentence for people.
        detail: String,
        /// With a 422: everything that is wrong with the request, and where.
        problems: Vec<Problem>,
        /// When it is worth trying again, if the answer says so.
        retry_after: Option<Duration>,
    },
    /// No connection, or one that broke before the answer was complete.
    Unreachable {
        /// What the network said.
        detail: String,
    },
    /// No complete answer in time.
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// An answer that is not Aldaba's: something else answers at this address, or a much newer version.
    Answer {
        /// The HTTP status.
        status: u16,
        /// What is wrong with it.
        detail: String,
        /// When it is worth trying again, if the answer says so.
        retry_after: Option<Duration>,
    },
    /// The request cannot be made from what was given; nothing was sent.
    Request {
        /// What is wrong with it.
        detail: String,
    },
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Where: `body`, `query` or `path`, then the field.
    #[serde(default)]
    pub loc: Vec<String>,
    /// What.
    pub msg: String,
    /// A word for programs.
    #[serde(rename = "type", default)]
    pub kind: String,
}

impl Error {
    /// From the body of an answer that says no, if it is Aldaba's.
    pub(crate) fn from_body(status: u16, body: &Value, retry_after: Option<Duration>) -> Option<Self> {
        let (code, detail, problems) = match body.get("detail")? {
            Value::String(detail) => (body.get("code")?.as_str()?.to_owned(), detail.clone(), Vec::new()),
            list @ Value::Array(_) => {
                let problems: Vec<Problem> = Deserialize::deserialize(list).ok()?;
                let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
                let code = body.get("code").and_then(Value::as_str).unwrap_or("validation");
                (code.to_owned(), texts.join("; "), problems)
            }
            _ => return None,
        };
        Some(Self::Api { status, code, detail, problems, retry_after })
    }

    /// The HTTP status of an answer that said no.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } | Self::Answer { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// When it is worth trying again, if an answer has said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { retry_after, .. } | Self::Answer { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Aldaba says that there is no such thing, or that it is not visible to this token. A 404 of somebody else, such
    /// as a proxy, says nothing about that.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { status: 404, .. })
    }

    /// The same call may work later, without anybody changing it. An answer that is not Aldaba's is never the last
    /// word: whoever gave it may be gone by then.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Answer { .. } => true,
            Self::Api { status, .. } => matches!(status, 408 | 425 | 429) || *status >= 500,
            Self::Request { .. } => false,
        }
    }

    /// An answer that cannot be read as what was asked for.
    pub(crate) fn unreadable(status: u16, detail: impl Into<String>) -> Self {
        Self::Answer { status, detail: detail.into(), retry_after: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api { status, code, detail, retry_after, .. } => {
                write!(f, "Aldaba said no ({status} {code}): {detail}")?;
                match (status, retry_after) {
                    (401, _) => f.write_str(". Give the client a valid token (`aldaba token create`)"),
                    (_, Some(after)) => write!(f, ". Try again in {after:?}"),
                    _ => Ok(()),
                }
            }
            Self::Unreachable { detail } => {
                write!(f, "Aldaba cannot be reached: {detail}. Check that it runs, and the client's URL")
            }
            Self::Timeout { after } => {
                write!(f, "no answer from Aldaba within {after:?}. Try again, or allow more time")
            }
            Self::Answer { status, detail, retry_after } => {
                write!(f, "an answer ({status}) that is not Aldaba's: {detail}. ")?;
                match retry_after {
                    Some(after) => write!(f, "Try again in {after:?}"),
                    None => f.write_str("Check that the client's URL leads to Aldaba"),
                }
            }
            Self::Request { detail } => write!(f, "nothing was sent: {detail}"),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.loc.join("."), self.msg)
    }
}
