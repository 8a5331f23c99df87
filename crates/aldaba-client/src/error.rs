//! The errors of calls, sorted by who must act.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Why a call failed. Its text says what to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Aldaba refused the request.
    Api {
        /// The HTTP status.
        status: u16,
        /// An identifier for programs, such as `not_found`; `validation` if the answer lists [`Problem`]s.
        code: String,
        /// A sentence for people.
        detail: String,
        /// With status 422: every problem of the request, and its field.
        problems: Vec<Problem>,
        /// When a retry makes sense, if the answer says so.
        retry_after: Option<Duration>,
    },
    /// There was no connection, or it broke before the answer was complete.
    Unreachable {
        /// The error of the network.
        detail: String,
    },
    /// The answer was not complete in time.
    Timeout {
        /// How long the client waited.
        after: Duration,
    },
    /// The answer is not from Aldaba: another server answers at this address, or a much newer version.
    Answer {
        /// The HTTP status.
        status: u16,
        /// What is wrong with it.
        detail: String,
        /// When a retry makes sense, if the answer says so.
        retry_after: Option<Duration>,
    },
    /// The arguments do not make a valid request. Nothing was sent.
    Request {
        /// What is wrong with it.
        detail: String,
    },
}

/// One problem of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Where it is: `body`, `query` or `path`, then the field.
    #[serde(default)]
    pub loc: Vec<String>,
    /// What is wrong.
    pub msg: String,
    /// An identifier for programs.
    #[serde(rename = "type", default)]
    pub kind: String,
}

impl Error {
    /// Reads the body of a refusal, if it is Aldaba's.
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

    /// The HTTP status, if there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } | Self::Answer { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// When a retry makes sense, if the answer said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { retry_after, .. } | Self::Answer { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether Aldaba says that the object does not exist or is not visible to this token. A 404 of another server, such
    /// as a proxy, says nothing about that.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { status: 404, .. })
    }

    /// Whether the same call may succeed later. An answer of another server counts as temporary: that server may be gone
    /// by then.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Answer { .. } => true,
            Self::Api { status, .. } => matches!(status, 408 | 425 | 429) || *status >= 500,
            Self::Request { .. } => false,
        }
    }

    /// An answer that does not have the expected form.
    pub(crate) fn unreadable(status: u16, detail: impl Into<String>) -> Self {
        Self::Answer { status, detail: detail.into(), retry_after: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api { status, code, detail, retry_after, .. } => {
                write!(f, "Aldaba refused the request ({status} {code}): {detail}")?;
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
                write!(f, "the answer ({status}) is not from Aldaba: {detail}. ")?;
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
