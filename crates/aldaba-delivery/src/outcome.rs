use crate::RetryAfter;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// What happened on the wire in one attempt, before a policy classifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Response(ResponseHead),
    Failed(AttemptFailure),
}

/// A complete response head arrived in time, and the kept part of its body too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    /// The reason phrase, as sent or as in the standard.
    pub phrase: Cow<'static, str>,
    pub retry_after: Option<RetryAfter>,
}

/// No usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailure {
    pub kind: FailureKind,
    /// The error's text, fit for the endpoint's owner: no internal address.
    pub detail: Cow<'static, str>,
}

/// Kinds that concern the host (`Dns`, `Connect`, `ConnectTimeout`, `Tls`) are only for the endpoint's own
/// origin, because they can hold it back. Only network errors are among them. A followed redirect leads to
/// another host: a failure there is `Broken` or `Timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The name could not be resolved.
    Dns,
    /// Refused, unreachable, or reset before the connection was established.
    Connect,
    /// The connection was not established within the policy's timeout.
    ConnectTimeout,
    /// The handshake or the certificate was not acceptable.
    Tls,
    /// The connection was established; the whole response did not come in time.
    Timeout,
    /// The connection broke after it was established.
    Broken,
    /// The response was not HTTP, or exceeded its limits.
    Malformed,
    TooManyRedirects,
    /// The guard refused the address; no packet was sent.
    TargetForbidden,
    /// The attempt could not be made for an internal reason: a bug, or a deleted payload.
    Internal,
    /// Nothing was sent because of a local shortage: no free socket or port, no route, no resolver, no egress
    /// proxy, or too long a wait behind other requests. The engine tries again soon without counting an
    /// attempt.
    Unsent,
}

impl FailureKind {
    /// For traces and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Malformed => "malformed",
            Self::TooManyRedirects => "too_many_redirects",
            Self::TargetForbidden => "target_forbidden",
            Self::Internal => "internal",
            Self::Unsent => "unsent",
        }
    }
}

impl Outcome {
    pub fn failed(kind: FailureKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(AttemptFailure { kind, detail: detail.into() })
    }

    /// The text in the delivery's history: a timeout includes its stage. [`split_timeout`] separates the two.
    pub fn recorded_error(&self) -> String {
        match self {
            Self::Failed(AttemptFailure {
                kind: FailureKind::Timeout | FailureKind::ConnectTimeout,
                detail,
            }) => {
                format!("{self}{STAGE_SEPARATOR}{detail}")
            }
            _ => self.to_string(),
        }
    }

    /// The text for the log: the recorded one without what the receiver has written.
    pub fn logged_error(&self) -> String {
        match self {
            // A phrase of its own is not borrowed from the standard.
            Self::Response(ResponseHead { status, phrase: Cow::Owned(_), .. }) => format!("HTTP {status}"),
            _ => self.recorded_error(),
        }
    }

    /// Whether it uses up one of the policy's attempts. If nothing left this machine, it does not for a day:
    /// `late` says how long after its due time the attempt began. A longer shortage (such as a missing address
    /// family) counts, so that the delivery ends.
    pub fn uses_up_attempt(&self, late: Duration) -> bool {
        !matches!(self, Self::Failed(AttemptFailure { kind: FailureKind::Unsent, .. }))
            || late >= MAX_UNCOUNTED_TIME
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Response(answer) => Some(answer.status),
            Self::Failed(_) => None,
        }
    }
}

/// How long a due delivery may fail on our side without counting attempts.
const MAX_UNCOUNTED_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The error text of every timeout, whatever its stage.
const REQUEST_TIMEOUT: &str = "Request timeout";

/// The separator between the text and the stage.
const STAGE_SEPARATOR: &str = ": ";

/// Splits a recorded error into its text and the stage that timed out.
pub fn split_timeout(recorded: &str) -> (&str, Option<&str>) {
    let part = recorded.strip_prefix(REQUEST_TIMEOUT).and_then(|rest| rest.strip_prefix(STAGE_SEPARATOR));
    match part {
        Some(part) => (REQUEST_TIMEOUT, Some(part)),
        None => (recorded, None),
    }
}

/// The error text of a failed attempt.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(ResponseHead { status, phrase, .. }) if phrase.is_empty() => {
                write!(f, "HTTP {status}")
            }
            Self::Response(ResponseHead { status, phrase, .. }) => write!(f, "HTTP {status}: {phrase}"),
            Self::Failed(AttemptFailure {
                kind: FailureKind::Timeout | FailureKind::ConnectTimeout, ..
            }) => f.write_str(REQUEST_TIMEOUT),
            Self::Failed(failure) => f.write_str(&failure.detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsent_attempt_is_not_counted_for_a_day() {
        let unsent = Outcome::failed(FailureKind::Unsent, "no free port");
        assert!(!unsent.uses_up_attempt(MAX_UNCOUNTED_TIME - Duration::from_millis(1)));
        assert!(unsent.uses_up_attempt(MAX_UNCOUNTED_TIME));
        assert!(Outcome::failed(FailureKind::Internal, "a bug").uses_up_attempt(Duration::ZERO));
    }
}
