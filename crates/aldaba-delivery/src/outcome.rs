use crate::RetryAfter;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// What happened on the wire in one attempt, before any policy has judged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Response(ResponseHead),
    Failed(AttemptFailure),
}

/// A complete response head arrived in time, and its body (as far as it is kept) too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    /// The reason phrase, as sent or as the standard names it.
    pub phrase: Cow<'static, str>,
    pub retry_after: Option<RetryAfter>,
}

/// No usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailure {
    pub kind: FailureKind,
    /// The error's own words, fit to be shown to the endpoint's owner: no internal address.
    pub detail: Cow<'static, str>,
}

/// The kinds that speak of the host (`Dns`, `Connect`, `ConnectTimeout`, `Tls`) are for the
/// endpoint's own origin, because they can hold it back. Only what the network said is one of them. Where a followed redirect
/// leads is another host: a failure there is `Broken`, or `Timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The name could not be resolved.
    Dns,
    /// Refused, unreachable, or reset before the connection stood.
    Connect,
    /// The connection did not stand within the policy's time.
    ConnectTimeout,
    /// The handshake or the certificate was not acceptable.
    Tls,
    /// The connection stood; the whole answer did not come in time.
    Timeout,
    /// The connection broke after it stood.
    Broken,
    /// What came back was not HTTP, or broke its limits.
    Malformed,
    TooManyRedirects,
    /// The guard refused the address; no packet was sent.
    TargetForbidden,
    /// The attempt could not be made for a reason of our own: a bug, or a payload that is gone.
    Internal,
    /// Nothing left, for a shortage of our own: no free socket or port, no route, no resolver, no way to our
    /// proxy, or too long a wait behind requests of ours. The engine tries again soon without counting it as an
    /// attempt.
    Unsent,
}

impl Outcome {
    pub fn failed(kind: FailureKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(AttemptFailure { kind, detail: detail.into() })
    }

    /// The text that the history keeps: for a timeout, with the part that took too long. [`split_timeout`] takes
    /// the two apart again.
    pub fn recorded_error(&self) -> String {
        match self {
            Self::Failed(AttemptFailure {
                kind: FailureKind::Timeout | FailureKind::ConnectTimeout,
                detail,
            }) => {
                format!("{self}{TIMEOUT_PART}{detail}")
            }
            _ => self.to_string(),
        }
    }

    /// Whether it uses up one of the attempts that the policy allows. Where nothing has left this machine, it does not for
    /// a day: `late` says how long after its due time the attempt began. What lasts longer (a family of addresses that
    /// this machine does not have) counts, so that the delivery ends like every other.
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

/// How long a delivery that is due may fail on our side without an attempt being counted.
const MAX_UNCOUNTED_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// What every timeout reads, whichever part of the request took too long.
const REQUEST_TIMEOUT: &str = "Request timeout";

/// Between it and the part.
const TIMEOUT_PART: &str = ": ";

/// A recorded error as it is read: the part of the request that took too long stands by itself.
pub fn split_timeout(recorded: &str) -> (&str, Option<&str>) {
    let part = recorded.strip_prefix(REQUEST_TIMEOUT).and_then(|rest| rest.strip_prefix(TIMEOUT_PART));
    match part {
        Some(part) => (REQUEST_TIMEOUT, Some(part)),
        None => (recorded, None),
    }
}

/// The text that a failed attempt is known by.
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
    fn what_has_not_left_this_machine_uses_up_no_attempt_for_a_day() {
        let unsent = Outcome::failed(FailureKind::Unsent, "no free port");
        assert!(!unsent.uses_up_attempt(MAX_UNCOUNTED_TIME - Duration::from_millis(1)));
        assert!(unsent.uses_up_attempt(MAX_UNCOUNTED_TIME));
        assert!(Outcome::failed(FailureKind::Internal, "a bug").uses_up_attempt(Duration::ZERO));
    }
}
