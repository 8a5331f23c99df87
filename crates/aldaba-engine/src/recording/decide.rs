//! Decides what an attempt means for its delivery: outcome → class → transition. The rules are in `aldaba-delivery`.

use crate::delivering::AttemptRequest;
use crate::{ClockTrust, Entropy, WireResponse};
use aldaba_delivery::{AttemptId, Decision, Delivery, Outcome, Timestamp, Transition};
use aldaba_store::{NewAttempt, PendingDelivery, Trigger};
use std::sync::Arc;
use std::time::Duration;

/// A request that is over, as the wire saw it.
pub(crate) struct RequestResult {
    pub(crate) response: WireResponse,
    pub(crate) started_at: Timestamp,
    pub(crate) took: Duration,
    pub(crate) event_type: Arc<str>,
}

/// An attempt with its decision.
pub(crate) struct DecidedAttempt {
    pub(super) attempt: NewAttempt,
    pub(super) decision: Decision,
    /// How the delivery is pending from now on, if it is.
    pub(super) next: Option<PendingDelivery>,
}

impl DecidedAttempt {
    /// Decides, and logs a failure. Only the delivery is concerned, so the attempt's own task does it: many attempts that
    /// fail at the same time must not delay the dispatcher.
    pub(crate) fn of(
        request: &AttemptRequest,
        result: RequestResult,
        now: Timestamp,
        trust: &ClockTrust,
        entropy: &dyn Entropy,
    ) -> Self {
        let (policy, outcome) = (&request.target.policy, &result.response.outcome);
        let delivery = Delivery {
            attempts: request.pending.attempts.saturating_add(1),
            clock_start: request.pending.clock_start,
        };
        let trusted = trust.may_end_by_time();
        let decision = Decision::of(policy, &delivery, outcome, trusted, now, entropy.chance());
        let success = decision.delivered();
        if !success {
            log_failure(request, &delivery, &decision.transition, outcome);
        }
        let is_first = request.pending.attempts == 0;
        let trigger = if request.pending.replayed && is_first { Trigger::Replay } else { Trigger::Scheduled };
        let attempt = result.into_attempt(trigger, success, entropy);
        let next = match decision.transition {
            Transition::Settle(_) | Transition::Stop { .. } => None,
            Transition::Retry { due_at } => {
                Some(PendingDelivery { due_at, attempts: delivery.attempts, ..request.pending })
            }
        };
        Self { attempt, decision, next }
    }
}

impl RequestResult {
    /// The attempt as it is stored.
    pub(crate) fn into_attempt(self, trigger: Trigger, success: bool, entropy: &dyn Entropy) -> NewAttempt {
        let Self { response, started_at, took, event_type } = self;
        NewAttempt {
            id: AttemptId::new(started_at, entropy.bytes()),
            started_at,
            duration: took,
            status_code: response.outcome.status(),
            failure: match &response.outcome {
                Outcome::Response(_) => None,
                Outcome::Failed(failure) => Some(failure.kind),
            },
            error: if success { String::new() } else { response.outcome.recorded_error() },
            response: response.body,
            trigger,
            success,
            event_type,
        }
    }
}

fn log_failure(request: &AttemptRequest, delivery: &Delivery, transition: &Transition, outcome: &Outcome) {
    tracing::warn!(
        endpoint = %request.endpoint,
        message_id = %request.pending.message,
        attempt = delivery.attempts,
        maxAttempts = request.target.policy.limit.attempts,
        willRetry = matches!(transition, Transition::Retry { .. }),
        error = %outcome.logged_error(),
        "Webhook delivery failed"
    );
}
