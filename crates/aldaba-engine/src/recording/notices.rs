//! The notices of operational webhooks about attempts. They are stored with the record, and sent as messages later
//! (`housekeeping/operational.rs`).

use crate::delivering::AttemptRequest;
use crate::housekeeping::{extend, rfc3339};
use aldaba_delivery::{AppId, Ending, EndpointId, Health, MessageId, OrgId, Transition};
use aldaba_store::{LastAttempt, NewAttempt, Notice};
use serde_json::{Value, json};

/// The number of the failed attempt after which the organization is told that a delivery is failing.
const FAILING_NOTICE_ATTEMPT: u32 = 4;

/// What the organization is told of an attempt. `health`: the endpoint's before and after it.
pub(super) fn attempt_notices(
    request: &AttemptRequest,
    attempt: &NewAttempt,
    transition: &Transition,
    (before, after): (&Health, &Health),
) -> Vec<Notice> {
    let attempts = request.pending.attempts.saturating_add(1);
    let of_message = match transition {
        Transition::Retry { .. } => (attempts == FAILING_NOTICE_ATTEMPT).then_some("message.attempt.failing"),
        Transition::Settle(Ending::Dead(_)) | Transition::Stop { .. } => Some("message.attempt.exhausted"),
        Transition::Settle(Ending::Delivered) => {
            (attempts > FAILING_NOTICE_ATTEMPT).then_some("message.attempt.recovered")
        }
    };
    let of_endpoint = match (before.status.is_given_up(), after.status.is_given_up()) {
        (false, true) => Some("endpoint.disabled"),
        (true, false) => Some("endpoint.enabled"),
        _ => None,
    };
    let notice = |event: &str, more: Value| {
        let mut data =
            json!({"appId": request.target.app.to_string(), "endpointId": request.endpoint.to_string()});
        extend(&mut data, more);
        Notice { org: request.target.org, event: event.into(), body: data.to_string() }
    };
    let about_message = || {
        json!({
            "msgId": request.pending.message.to_string(),
            "lastAttempt": {
                "id": attempt.id.to_string(),
                "responseStatusCode": attempt.status_code.unwrap_or(0),
                "timestamp": rfc3339(attempt.started_at),
            },
        })
    };
    let about_endpoint = |event: &str| match event {
        "endpoint.disabled" => {
            // An endpoint that reports itself gone has not failed before.
            let since = after.failing_since.unwrap_or(attempt.started_at);
            json!({"failSince": rfc3339(since), "trigger": "automatic"})
        }
        _ => json!({}),
    };
    let messages = of_message.map(|event| notice(event, about_message()));
    let endpoints = of_endpoint.map(|event| notice(event, about_endpoint(event)));
    messages.into_iter().chain(endpoints).collect()
}

/// What the organization is told of a delivery that has passed its stop date.
pub(crate) fn expired_notice(
    (org, app, endpoint): (OrgId, AppId, EndpointId),
    message: MessageId,
    last: Option<&LastAttempt>,
) -> Notice {
    let last = last.map(|last| {
        json!({
            "id": last.id.to_string(),
            "responseStatusCode": last.status_code.unwrap_or(0),
            "timestamp": rfc3339(last.started_at),
        })
    });
    let body = json!({
        "appId": app.to_string(),
        "endpointId": endpoint.to_string(),
        "msgId": message.to_string(),
        "lastAttempt": last,
    });
    Notice { org, event: "message.attempt.exhausted".into(), body: body.to_string() }
}
