//! The mails about attempts: what the owner of an endpoint is told. They are stored with the record, and sent later
//! (`mailing/sender.rs`). Only what has changed the endpoint's health or ended a delivery without success gets here.

use crate::delivering::{AttemptRequest, Target};
use crate::mailing::{self, EndpointTrouble, TroubleCause, one_line};
use aldaba_delivery::policy::EndpointFails;
use aldaba_delivery::{
    AppId, Ending, EndpointId, Health, HealthStatus, MessageId, OrgId, OwnerAlert, Policy, Reason, Timestamp,
    Transition,
};
use aldaba_store::{Endpoint, MailRecipient, NewAttempt, NewMail, OutageMail};
use http::StatusCode;
use std::time::Duration;

/// Characters that are kept of an error.
const MAX_ERROR: usize = 500;

/// The endpoint whose owner is told, and its last error.
pub(crate) struct MailSubject<'a> {
    org: OrgId,
    app: AppId,
    endpoint: EndpointId,
    status: Option<u16>,
    error: &'a str,
}

impl<'a> MailSubject<'a> {
    /// `None`: an address has no owner.
    fn of_request(request: &AttemptRequest, (status, error): (Option<u16>, &'a str)) -> Option<Self> {
        let Target { org, app, direct, .. } = *request.target;
        (!direct).then_some(Self { org, app, endpoint: request.endpoint, status, error })
    }

    /// The same of an endpoint as the store has it.
    pub(crate) fn of_endpoint(endpoint: &'a Endpoint) -> Option<Self> {
        let Endpoint { org, app, id, direct, .. } = *endpoint;
        let last = endpoint.last_error.as_ref();
        let (status, error) = last.map_or((None, ""), |last| (last.status_code, &last.text));
        (!direct).then_some(Self { org, app, endpoint: id, status, error })
    }

    /// The error without what the receiver has written: the phrase beside its status may repeat what it got.
    fn error_text(&self) -> String {
        let Some(status) = self.status else { return one_line(self.error, MAX_ERROR) };
        match StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()) {
            Some(reason) => format!("HTTP {status}: {reason}"),
            None => format!("HTTP {status}"),
        }
    }
}

/// What the owner is told of an attempt. `health`: the endpoint's before and after it. `delay`: how long a mail waits for others.
pub(super) fn attempt_mails(
    request: &AttemptRequest,
    attempt: &NewAttempt,
    transition: &Transition,
    health: (&Health, &Health),
    times: (Timestamp, Duration),
) -> Vec<NewMail> {
    let error = (attempt.status_code, attempt.error.as_str());
    let Some(subject) = MailSubject::of_request(request, error) else { return Vec::new() };
    let policy = &request.target.policy;
    let attempts = request.pending.attempts.saturating_add(1);
    let retries = match transition.ending() {
        Some(_) => policy.limit.attempts.unwrap_or(attempts).saturating_sub(1),
        None => attempts.saturating_sub(1),
    };
    mails(&subject, (policy, retries), health, (request.pending.message, transition.ending()), times)
}

/// What the owner is told of a delivery that has ended without an attempt: at an ordered endpoint it may block the others.
pub(super) fn unsent_mails(
    request: &AttemptRequest,
    health: (&Health, &Health),
    ending: Option<Ending>,
    times: (Timestamp, Duration),
) -> Vec<NewMail> {
    let Some(subject) = MailSubject::of_request(request, (None, "")) else { return Vec::new() };
    mails(&subject, (&request.target.policy, 0), health, (request.pending.message, ending), times)
}

/// The same of a delivery that has passed its stop date.
pub(crate) fn expired_mails(
    subject: &MailSubject<'_>,
    (policy, message): (&Policy, MessageId),
    health: (&Health, &Health),
    times: (Timestamp, Duration),
) -> Vec<NewMail> {
    mails(subject, (policy, 0), health, (message, Some(Ending::Dead(Reason::StopDate))), times)
}

fn mails(
    subject: &MailSubject<'_>,
    (policy, retries): (&Policy, u32),
    (before, after): (&Health, &Health),
    (message, ending): (MessageId, Option<Ending>),
    (now, delay): (Timestamp, Duration),
) -> Vec<NewMail> {
    let Some(alert) = OwnerAlert::of(before, after, ending) else { return Vec::new() };
    let (kind, outage) = match alert {
        OwnerAlert::Warning => (mailing::WARNING, OutageMail::Warning),
        OwnerAlert::GivenUp => (mailing::GIVEN_UP, OutageMail::GivenUp),
        OwnerAlert::Failed => (mailing::FAILED, OutageMail::Failed),
        OwnerAlert::Recovered => (mailing::RECOVERED, OutageMail::Over),
    };
    let trouble = EndpointTrouble {
        error: subject.error_text(),
        since: after.failing_since.or(after.changed_at).unwrap_or(now).millis(),
        accepted_at: message.created_at().millis(),
        failures: after.failure_count,
        retries,
        cause: cause(policy, after.status),
        probes: after.next_probe_at.is_some(),
    };
    let mail = NewMail {
        org: Some(subject.org),
        recipient: MailRecipient::Endpoint(subject.app, subject.endpoint),
        kind: kind.into(),
        body: serde_json::to_string(&trouble).unwrap_or_default(),
        created_at: now,
        due_at: now + delay,
        outage: Some(outage),
    };
    vec![mail]
}

fn cause(policy: &Policy, status: HealthStatus) -> TroubleCause {
    match status {
        HealthStatus::Gone => TroubleCause::Gone,
        HealthStatus::Blocked => TroubleCause::Blocked,
        HealthStatus::Active | HealthStatus::Failed => match policy.endpoint_fails {
            EndpointFails::WithoutSuccessFor(_) => TroubleCause::WithoutSuccess,
            EndpointFails::WhenExhausted | EndpointFails::Never => TroubleCause::Exhausted,
        },
    }
}
