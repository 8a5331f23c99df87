//! From the end of an attempt to its record: outcome → class → transition, then health and gates, then
//! one durable write.

use crate::delivering::{AttemptEnd, AttemptRequest, AttemptResult};
use crate::housekeeping::{OperationalListeners, extend, rfc3339};
use crate::scheduling::Gates;
use crate::scheduling::{Event, Inbox};
use crate::{ClockTrust, Entropy, WireResponse};
use aldaba_delivery::{
    AppId, AttemptId, Decision, Delivery, Ending, EndpointId, Health, MessageId, OrgId, Outcome, Reason,
    Timestamp, Transition,
};
use aldaba_store::{
    Done, Error, LastAttempt, NewAttempt, Notice, PendingDelivery, Record, Recorded, Store, Trigger,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Inbox,
    pub(crate) listeners: OperationalListeners,
}

/// What an attempt means for its delivery.
pub(crate) struct DecidedAttempt {
    attempt: NewAttempt,
    decision: Decision,
    /// How the delivery waits from now on, if it does.
    again: Option<PendingDelivery>,
}

/// How a request went, as the wire saw it.
pub(crate) struct RequestResult {
    pub(crate) response: WireResponse,
    pub(crate) started_at: Timestamp,
    pub(crate) took: Duration,
    pub(crate) event_type: Arc<str>,
}

impl DecidedAttempt {
    /// Outcome → class → transition, and a line in the log where it went wrong. It concerns nothing but
    /// the delivery, so the attempt's own task can do it: many attempts that fail in the same moment
    /// must not hold up the one task that owns the lanes.
    pub(crate) fn of(
        start: &AttemptRequest,
        sent: RequestResult,
        now: Timestamp,
        trust: &ClockTrust,
        entropy: &dyn Entropy,
    ) -> Self {
        let (policy, outcome) = (&start.target.policy, &sent.response.outcome);
        let delivery = Delivery {
            attempts: start.waiting.attempts.saturating_add(1),
            clock_start: start.waiting.clock_start,
        };
        let trusted = trust.may_end_by_time();
        let decision = Decision::of(policy, &delivery, outcome, trusted, now, entropy.chance());
        let success = decision.delivered();
        if !success {
            report(start, &delivery, &decision.transition, outcome);
        }
        let is_first = start.waiting.attempts == 0;
        let trigger = if start.waiting.replayed && is_first { Trigger::Replay } else { Trigger::Scheduled };
        let attempt = sent.noted(trigger, success, entropy);
        let again = again(start, &delivery, &decision.transition);
        Self { attempt, decision, again }
    }
}

impl RequestResult {
    /// As it is kept.
    pub(crate) fn noted(self, trigger: Trigger, success: bool, entropy: &dyn Entropy) -> NewAttempt {
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

/// What the end of an attempt came to.
pub(crate) struct RecordPlan {
    pub(crate) record: Record,
    /// How the waiting delivery looks afterwards, if it still waits.
    pub(crate) again: Option<PendingDelivery>,
    /// Whether the receiver spoke, and after how long; `None` when the attempt says nothing about it.
    pub(crate) answered: Option<(bool, Duration)>,
    /// Lanes that waited for this attempt's probe.
    pub(crate) woken: Vec<EndpointId>,
}

impl Recorder {
    /// Judges an attempt and brings the endpoint's health and the gates up to date. `None`: nothing was
    /// sent, and there is nothing to record.
    pub(crate) fn plan(
        &self,
        ended: AttemptResult,
        known: &mut Health,
        gates: &mut Gates,
        now: Timestamp,
    ) -> Option<RecordPlan> {
        let AttemptResult { start, end } = ended;
        match end {
            AttemptEnd::PutBack | AttemptEnd::Abandoned => None,
            AttemptEnd::ContentGone => {
                let woken = gates.abandoned(&start, now);
                let record = unsent(&start, Reason::PayloadDeleted, known, now);
                Some(RecordPlan { record, again: None, answered: None, woken })
            }
            AttemptEnd::Sent(decided) => {
                let DecidedAttempt { attempt, decision, again } = *decided;
                let health = decision.health(known, start.target.ordering, now);
                let Decision { class, transition, .. } = decision;
                let news = gates.after_attempt(&start, &class, &transition, &attempt.error, now);
                let answered = class.concerns_receiver().then(|| (class.answered(), attempt.duration));
                let changed = health != *known;
                let notices = match self.listeners.wants(start.target.org) {
                    true => notices(&start, &attempt, &transition, (known, &health)),
                    false => Vec::new(),
                };
                *known = health;
                let record = Record {
                    notices,
                    attempt: Some(attempt),
                    health: changed.then(|| known.clone()),
                    gates: news.changed,
                    ..without_attempt(&start, transition, now)
                };
                Some(RecordPlan { record, again, answered, woken: news.woken })
            }
        }
    }

    /// Hands a record to the store; the lane hears when it is on disk.
    pub(crate) fn submit(&self, record: Record, again: Option<PendingDelivery>) {
        let inbox = self.inbox.clone();
        let copy = record.clone();
        let news = (!record.notices.is_empty()).then(|| self.listeners.notices_pending.clone());
        let done = Done::new(move |result: Result<Vec<Recorded>, Error>| {
            if let Some(news) = news {
                news.notify_one();
            }
            let result = result.map(|mut results| results.pop().unwrap_or(Recorded::Fenced));
            inbox.send(Event::Recorded(Box::new(RecordResult { record: copy, again, result })));
        });
        self.store.record(vec![record], done);
    }
}

/// A record whose fate is known.
pub(crate) struct RecordResult {
    pub(crate) record: Record,
    pub(crate) again: Option<PendingDelivery>,
    pub(crate) result: Result<Recorded, Error>,
}

/// The record of a delivery that changes without an attempt.
pub(crate) fn without_attempt(start: &AttemptRequest, transition: Transition, now: Timestamp) -> Record {
    Record {
        seq: start.waiting.seq,
        app: start.target.app,
        endpoint: start.endpoint,
        message: start.waiting.message,
        attempts_before: start.waiting.attempts,
        attempt: None,
        transition,
        at: now,
        health: None,
        gates: Vec::new(),
        notices: Vec::new(),
        audit: None,
        idempotency: None,
    }
}

/// The failed attempts of a delivery after which its organization hears of it.
const FAILING: u32 = 4;

/// What the organization hears of an attempt.
fn notices(
    start: &AttemptRequest,
    attempt: &NewAttempt,
    transition: &Transition,
    (before, after): (&Health, &Health),
) -> Vec<Notice> {
    let attempts = start.waiting.attempts.saturating_add(1);
    let of_message = match transition {
        Transition::Retry { .. } => (attempts == FAILING).then_some("message.attempt.failing"),
        Transition::Settle(Ending::Dead(_)) | Transition::Stop { .. } => Some("message.attempt.exhausted"),
        Transition::Settle(Ending::Delivered) => (attempts > FAILING).then_some("message.attempt.recovered"),
    };
    let of_endpoint = match (before.status.is_given_up(), after.status.is_given_up()) {
        (false, true) => Some("endpoint.disabled"),
        (true, false) => Some("endpoint.enabled"),
        _ => None,
    };
    let notice = |event: &str, more: Value| {
        let mut data =
            json!({"appId": start.target.app.to_string(), "endpointId": start.endpoint.to_string()});
        extend(&mut data, more);
        Notice { org: start.target.org, event: event.into(), body: data.to_string() }
    };
    let about_message = || {
        json!({
            "msgId": start.waiting.message.to_string(),
            "lastAttempt": {
                "id": attempt.id.to_string(),
                "responseStatusCode": attempt.status_code.unwrap_or(0),
                "timestamp": rfc3339(attempt.started_at),
            },
        })
    };
    let about_endpoint = |event: &str| match event {
        "endpoint.disabled" => {
            // One that says that it is gone has not failed before.
            let since = after.failing_since.unwrap_or(attempt.started_at);
            json!({"failSince": rfc3339(since), "trigger": "automatic"})
        }
        _ => json!({}),
    };
    let messages = of_message.map(|event| notice(event, about_message()));
    let endpoints = of_endpoint.map(|event| notice(event, about_endpoint(event)));
    messages.into_iter().chain(endpoints).collect()
}

/// What the organization hears of a delivery that has ended without success, and not at an attempt.
pub(crate) fn ended_unsent(
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

/// The record of a delivery that ends without an attempt and without success.
pub(crate) fn unsent(start: &AttemptRequest, reason: Reason, known: &mut Health, now: Timestamp) -> Record {
    let transition = Transition::Settle(Ending::Dead(reason));
    let health = known.after_ending(start.target.ordering, transition.ending(), now);
    if let Some(health) = &health {
        known.clone_from(health);
    }
    Record { health, ..without_attempt(start, transition, now) }
}

fn again(start: &AttemptRequest, delivery: &Delivery, transition: &Transition) -> Option<PendingDelivery> {
    match *transition {
        Transition::Settle(_) | Transition::Stop { .. } => None,
        Transition::Retry { due_at } => {
            Some(PendingDelivery { due_at, attempts: delivery.attempts, ..start.waiting })
        }
    }
}

fn report(start: &AttemptRequest, delivery: &Delivery, transition: &Transition, outcome: &Outcome) {
    tracing::warn!(
        endpoint = %start.endpoint,
        message_id = %start.waiting.message,
        attempt = delivery.attempts,
        maxAttempts = start.target.policy.limit.attempts,
        willRetry = matches!(transition, Transition::Retry { .. }),
        error = %outcome.recorded_error(),
        "Webhook delivery failed"
    );
}
