use crate::policy::{Policy, Redirects};
use crate::{FailureKind, Outcome, Reason, ResponseHead, RetryAfter};

/// What an outcome means under a policy. It is computed once per attempt and consumed by retry,
/// endpoint health, gate, lane and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub verdict: Verdict,
    pub fault: Fault,
    /// The receiver's wish, where the policy listens to it for this answer.
    pub retry_after: Option<RetryAfter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// Failed, and worth another attempt while the policy has any left.
    Retriable,
    /// Failed for good: another attempt would not help.
    Final(Reason),
}

/// Whose doing a failure was. It decides how far a hold reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The receiver's application: its answer, or how it broke off.
    Response,
    /// The connection stood, and no answer came in time.
    NoResponse,
    /// The host itself: name, connection, TLS.
    Host,
    /// The guard refused the address. A name may point elsewhere the next time; if it never does, that
    /// is the reason the delivery ends with.
    Forbidden,
    /// Ours; it says nothing about the receiver.
    Local,
}

impl Class {
    pub fn of(policy: &Policy, outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Response(answer) => Self::of_answer(policy, answer),
            Outcome::Failed(failure) => Self::of_failure(policy, failure.kind),
        }
    }

    /// The receiver spoke: whatever it said, host and path are alive.
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
