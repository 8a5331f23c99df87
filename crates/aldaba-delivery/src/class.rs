use crate::policy::{Policy, Redirects};
use crate::{FailureKind, Outcome, Reason, ResponseHead, RetryAfter};

/// What an outcome means under a policy. It is computed once per attempt; retry, endpoint health, gate, lane
/// and metrics consume it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub verdict: Verdict,
    pub fault: Fault,
    /// The receiver's `Retry-After`, if the policy honours it for this status.
    pub retry_after: Option<RetryAfter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// A failure that the policy retries while it has attempts left.
    Retriable,
    /// A permanent failure: another attempt would not help.
    Final(Reason),
}

/// Who caused a failure. It decides which lanes a hold binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The receiver's application: its response, or a connection broken during it.
    Response,
    /// The connection was established, and no response came in time.
    NoResponse,
    /// The host: DNS, connection or TLS.
    Host,
    /// The guard refused the address. The name may resolve elsewhere next time; if it never does, the delivery
    /// ends with this reason.
    Forbidden,
    /// A fault on our side; it says nothing about the receiver.
    Local,
}

impl Class {
    pub fn of(policy: &Policy, outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Response(answer) => Self::of_answer(policy, answer),
            Outcome::Failed(failure) => Self::of_failure(policy, failure.kind),
        }
    }

    /// Whether the receiver responded: then its host and path are alive, whatever the status.
    pub fn answered(&self) -> bool {
        matches!(self.fault, Fault::None | Fault::Response)
    }

    /// Whether the attempt says anything about the receiver.
    pub fn concerns_receiver(&self) -> bool {
        !matches!(self.fault, Fault::Forbidden | Fault::Local)
    }

    fn of_answer(policy: &Policy, answer: &ResponseHead) -> Self {
        let status = answer.status;
        let redirect = (300..400).contains(&status);
        if policy.success.contains(status) || (redirect && policy.redirects == Redirects::TakeAsSuccess) {
            return Self { verdict: Verdict::Delivered, fault: Fault::None, retry_after: None };
        }
        let verdict = if status == 410 && policy.gone_disables {
            Verdict::Final(Reason::EndpointGone)
        } else if policy.rejects.contains(status) {
            Verdict::Final(Reason::Rejected)
        } else {
            Verdict::Retriable
        };
        let retry_after = answer.retry_after.filter(|_| policy.retry_after.statuses.contains(status));
        Self { verdict, fault: Fault::Response, retry_after }
    }

    fn of_failure(policy: &Policy, kind: FailureKind) -> Self {
        let (verdict, fault) = match kind {
            FailureKind::Dns | FailureKind::Connect | FailureKind::ConnectTimeout | FailureKind::Tls => {
                (Verdict::Retriable, Fault::Host)
            }
            FailureKind::Timeout => (Verdict::Retriable, Fault::NoResponse),
            FailureKind::Broken | FailureKind::TooManyRedirects => (Verdict::Retriable, Fault::Response),
            FailureKind::Malformed if policy.malformed_rejects => {
                (Verdict::Final(Reason::Rejected), Fault::Response)
            }
            FailureKind::Malformed => (Verdict::Retriable, Fault::Response),
            FailureKind::TargetForbidden => (Verdict::Retriable, Fault::Forbidden),
            FailureKind::Internal | FailureKind::Unsent => (Verdict::Retriable, Fault::Local),
        };
        Self { verdict, fault, retry_after: None }
    }
}
