//! Merges a decision into the endpoint's health and the gates, and plans the record.

use super::Recorder;
use super::decide::DecidedAttempt;
use super::mails::{attempt_mails, unsent_mails};
use super::notices::attempt_notices;
use crate::delivering::{AttemptEnd, AttemptRequest, AttemptResult};
use crate::scheduling::Gates;
use aldaba_delivery::{Decision, Ending, EndpointId, Health, Reason, Timestamp, Transition};
use aldaba_store::{PendingDelivery, Record};
use std::time::Duration;

/// What is to be written of an attempt, and what follows for the lanes.
pub(crate) struct RecordPlan {
    pub(crate) record: Record,
    /// How the delivery is pending afterwards, if it is.
    pub(crate) next: Option<PendingDelivery>,
    /// Whether the receiver answered, and after how long. `None`: the attempt says nothing about the receiver.
    pub(crate) answered: Option<(bool, Duration)>,
    /// Lanes that waited for the result of this attempt's probe.
    pub(crate) woken: Vec<EndpointId>,
}

impl Recorder {
    /// Updates the endpoint's health and the gates. `None`: nothing was sent, and there is nothing to record.
    pub(crate) fn plan(
        &self,
        result: AttemptResult,
        health: &mut Health,
        gates: &mut Gates,
        now: Timestamp,
    ) -> Option<RecordPlan> {
        let AttemptResult { request, end } = result;
        match end {
            AttemptEnd::Returned | AttemptEnd::Abandoned => None,
            AttemptEnd::PayloadGone => {
                let woken = gates.probe_abandoned(&request, now);
                let before = health.clone();
                let mut record = ended_unsent(&request, Reason::PayloadDeleted, health, now);
                if let (Some(delay), Some(after)) = (self.mail_queue.delay, &record.health) {
                    let ending = record.transition.ending();
                    record.mails = unsent_mails(&request, (&before, after), ending, (now, delay));
                }
                Some(RecordPlan { record, next: None, answered: None, woken })
            }
            AttemptEnd::Sent(decided) => Some(self.plan_sent(&request, *decided, health, gates, now)),
        }
    }

    fn plan_sent(
        &self,
        request: &AttemptRequest,
        decided: DecidedAttempt,
        health: &mut Health,
        gates: &mut Gates,
        now: Timestamp,
    ) -> RecordPlan {
        let DecidedAttempt { attempt, decision, next } = decided;
        let new_health = decision.health(health, request.target.ordering, now);
        let Decision { class, transition, .. } = decision;
        let changes = gates.after_attempt(request, &class, &transition, &attempt.error, now);
        let answered = class.concerns_receiver().then(|| (class.answered(), attempt.duration));
        let notices = match self.listeners.wants(request.target.org) {
            true => attempt_notices(request, &attempt, &transition, (health, &new_health)),
            false => Vec::new(),
        };
        let health_changed = new_health != *health;
        // The last attempt of a delivery leaves the health as it is.
        let may_tell = health_changed || matches!(transition.ending(), Some(Ending::Dead(_)));
        let mails = match self.mail_queue.delay.filter(|_| may_tell) {
            Some(delay) => attempt_mails(request, &attempt, &transition, (health, &new_health), (now, delay)),
            None => Vec::new(),
        };
        *health = new_health;
        let record = Record {
            notices,
            mails,
            attempt: Some(attempt),
            health: health_changed.then(|| health.clone()),
            gates: changes.changed,
            ..without_attempt(request, transition, now)
        };
        RecordPlan { record, next, answered, woken: changes.woken }
    }
}

/// The record of a delivery that ends without an attempt and without success.
pub(crate) fn ended_unsent(
    request: &AttemptRequest,
    reason: Reason,
    health: &mut Health,
    now: Timestamp,
) -> Record {
    let transition = Transition::Settle(Ending::Dead(reason));
    let new_health = health.after_ending(request.target.ordering, transition.ending(), now);
    if let Some(new_health) = &new_health {
        health.clone_from(new_health);
    }
    Record { health: new_health, ..without_attempt(request, transition, now) }
}

/// The record of a delivery that changes without an attempt.
fn without_attempt(request: &AttemptRequest, transition: Transition, now: Timestamp) -> Record {
    Record {
        seq: request.pending.seq,
        org: Some(request.target.org),
        app: request.target.app,
        endpoint: request.endpoint,
        message: request.pending.message,
        clock_start: request.pending.clock_start,
        attempts_before: request.pending.attempts,
        attempt: None,
        transition,
        at: now,
        health: None,
        gates: Vec::new(),
        notices: Vec::new(),
        mails: Vec::new(),
        audit: None,
        idempotency: None,
    }
}
