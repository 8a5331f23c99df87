//! The mails about attempts: what the owner of an endpoint is told. They are stored with the record, and sent later
//! (`mailing/sender.rs`). Only an attempt that has changed the endpoint's health gets here.

use crate::delivering::AttemptRequest;
use crate::mailing::{self, EndpointTrouble, TroubleCause, one_line};
use aldaba_delivery::policy::EndpointFails;
use aldaba_delivery::{Health, HealthStatus, OwnerAlert, Timestamp, Transition};
use aldaba_store::{MailRecipient, NewAttempt, NewMail, OutageMail};
use std::time::Duration;

/// Characters that are kept of an error.
const MAX_ERROR: usize = 500;

/// What the owner is told of an attempt. `health`: the endpoint's before and after it. `delay`: how long a mail waits for others.
pub(super) fn attempt_mails(
    request: &AttemptRequest,
    attempt: &NewAttempt,
    transition: &Transition,
    health: (&Health, &Health),
    (now, delay): (Timestamp, Duration),
) -> Vec<NewMail> {
    let attempts = request.pending.attempts.saturating_add(1);
    let policy = &request.target.policy;
    let retries = match transition.ending() {
        Some(_) => policy.limit.attempts.unwrap_or(attempts).saturating_sub(1),
        None => attempts.saturating_sub(1),
    };
    mails(request, (&attempt.error, retries), health, (now, delay))
}

/// What the owner is told of a delivery that has ended without an attempt and blocks its endpoint.
pub(super) fn blocked_mails(
    request: &AttemptRequest,
    health: (&Health, &Health),
    times: (Timestamp, Duration),
) -> Vec<NewMail> {
    mails(request, ("", request.pending.attempts.saturating_sub(1)), health, times)
}

fn mails(
    request: &AttemptRequest,
    (error, retries): (&str, u32),
    (before, after): (&Health, &Health),
    (now, delay): (Timestamp, Duration),
) -> Vec<NewMail> {
    // An address has no owner.
    let Some(alert) = OwnerAlert::of(before, after).filter(|_| !request.target.direct) else {
        return Vec::new();
    };
    let (kind, outage) = match alert {
        OwnerAlert::Warning => (mailing::WARNING, OutageMail::Warning),
        OwnerAlert::Failed => (mailing::FAILED, OutageMail::Failed),
        OwnerAlert::Recovered => (mailing::RECOVERED, OutageMail::Over),
    };
    let trouble = EndpointTrouble {
        error: one_line(error, MAX_ERROR),
        since: after.failing_since.or(after.changed_at).unwrap_or(now).millis(),
        failures: after.failure_count,
        retries,
        cause: cause(request, after.status),
        probes: after.next_probe_at.is_some(),
    };
    let mail = NewMail {
        org: Some(request.target.org),
        recipient: MailRecipient::Endpoint(request.target.app, request.endpoint),
        kind: kind.into(),
        body: serde_json::to_string(&trouble).unwrap_or_default(),
        created_at: now,
        due_at: now + delay,
        outage: Some(outage),
    };
    vec![mail]
}

fn cause(request: &AttemptRequest, status: HealthStatus) -> TroubleCause {
    match status {
        HealthStatus::Gone => TroubleCause::Gone,
        HealthStatus::Blocked => TroubleCause::Blocked,
        HealthStatus::Active | HealthStatus::Failed => match request.target.policy.endpoint_fails {
            EndpointFails::WithoutSuccessFor(_) => TroubleCause::WithoutSuccess,
            EndpointFails::WhenExhausted | EndpointFails::Never => TroubleCause::Exhausted,
        },
    }
}
