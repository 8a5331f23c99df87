//! Why a message has or has not reached an endpoint: a word for programs, and what people are told of it in their language.

mod cause;
mod english;

pub(crate) use cause::{Cause, Failure};

use aldaba_delivery::filter::UnmetCondition;
use aldaba_delivery::{Availability, Policy, Timestamp};
use aldaba_engine::{HostHold, Mismatch, WaitReasons};
use aldaba_store::{DeliveryState, DeliveryStatus, Endpoint, Message, PendingDelivery, Subscription};

/// What is said about one delivery, or about its absence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) cause: Cause,
    /// `None`: there is none, or it waits for something that has no date.
    pub(crate) next_attempt: Option<Timestamp>,
}

impl Why {
    pub(crate) fn reason(&self) -> &'static str {
        self.cause.reason()
    }

    pub(crate) fn explanation(&self) -> String {
        self.cause.explanation()
    }
}

impl Cause {
    fn now(self) -> Why {
        Why { cause: self, next_attempt: None }
    }

    fn at(self, next_attempt: Timestamp) -> Why {
        Why { cause: self, next_attempt: Some(next_attempt) }
    }
}

/// A delivery, and all that is facts about it.
#[derive(Clone, Copy)]
pub(crate) struct DeliveryFacts<'a> {
    pub(crate) delivery: &'a DeliveryStatus,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) policy: &'a Policy,
    pub(crate) wait_reasons: WaitReasons,
    /// The first that waits for an ordered endpoint, if it is another one.
    pub(crate) ahead: Option<PendingDelivery>,
    /// Which attempt has delivered it, if that is kept.
    pub(crate) delivered_by: Option<u32>,
    /// Of the newest attempt.
    pub(crate) failure: Option<&'a Failure>,
}

/// Where a delivery stands, and why there.
pub(crate) fn delivery(facts: &DeliveryFacts<'_>, now: Timestamp) -> Why {
    let attempts = facts.delivery.attempts;
    match facts.delivery.state {
        DeliveryState::Waiting { due_at } => waiting(facts, due_at, now),
        DeliveryState::Skipped { reason, .. } => Cause::Skipped(reason).now(),
        DeliveryState::Delivered { at } => {
            Cause::Delivered { attempt: facts.delivered_by.unwrap_or(attempts), at }.now()
        }
        DeliveryState::Dead { at, reason } => {
            Cause::Dead { reason, at, attempts, failure: facts.failure.cloned() }.now()
        }
    }
}

/// The first thing that keeps it from being sent, from what lasts longest to what passes soonest.
fn waiting(facts: &DeliveryFacts<'_>, due_at: Timestamp, now: Timestamp) -> Why {
    let later = |until: &Timestamp| *until > due_at.max(now);
    let held = [deleted(facts), in_flight(facts), turned_off(facts), needs_resume(facts)];
    if let Some(cause) = held.into_iter().flatten().next() {
        return cause.now();
    }
    let holds = [held_endpoint(facts, now), held_host(facts)];
    let longest = holds.into_iter().flatten().filter(|why| why.next_attempt.as_ref().is_none_or(later));
    if let Some(why) = longest.max_by_key(|why| why.next_attempt.unwrap_or(Timestamp::MIN)) {
        return why;
    }
    let is_outside = facts.endpoint.config.ordering.is_fifo() && facts.delivery.sequence.is_none();
    if is_outside && due_at > now {
        return Cause::TakesPlaceAt(due_at).at(facts.ahead.map_or(due_at, |ahead| ahead.due_at.max(due_at)));
    }
    if let Some(ahead) = facts.ahead {
        return Cause::InOrder.at(ahead.due_at.max(due_at).max(now));
    }
    if facts.wait_reasons.paused {
        return Cause::Paused.at(due_at.max(now));
    }
    if due_at > now {
        return planned(facts, due_at).at(due_at);
    }
    if let Some(until) = facts.wait_reasons.throttled_until {
        return Cause::Throttled { rate: facts.endpoint.config.throttle_rate.unwrap_or_default() }.at(until);
    }
    if let Some(until) = facts.wait_reasons.app_throttled_until {
        return Cause::ApplicationThrottled.at(until);
    }
    if facts.wait_reasons.origin_busy {
        return Cause::HostBusy.at(due_at);
    }
    Cause::Due.at(due_at)
}

fn planned(facts: &DeliveryFacts<'_>, at: Timestamp) -> Cause {
    let retry = facts.delivery.attempts;
    if retry == 0 {
        return Cause::FirstPlanned { at };
    }
    let of = facts.policy.limit.attempts.map(|attempts| attempts.saturating_sub(1));
    Cause::RetryPlanned { retry, of, at, failure: facts.failure.cloned() }
}

fn deleted(facts: &DeliveryFacts<'_>) -> Option<Cause> {
    facts.endpoint.deleted.then_some(Cause::EndpointDeleted)
}

fn in_flight(facts: &DeliveryFacts<'_>) -> Option<Cause> {
    facts.wait_reasons.in_flight.then_some(Cause::InFlight { attempt: facts.delivery.attempts + 1 })
}

fn turned_off(facts: &DeliveryFacts<'_>) -> Option<Cause> {
    facts.endpoint.config.disabled.then_some(Cause::EndpointDisabled)
}

fn needs_resume(facts: &DeliveryFacts<'_>) -> Option<Cause> {
    let state = facts.endpoint.state();
    state.health().needs_resume().then_some(Cause::NeedsResume(state.health().status))
}

/// What the endpoint's health says, by the same rule that gives turns.
fn held_endpoint(facts: &DeliveryFacts<'_>, now: Timestamp) -> Option<Why> {
    let state = facts.endpoint.state();
    match state.availability(now) {
        Availability::Open | Availability::Held(None) => None,
        Availability::Probe => Some(Cause::ProbeFirst.now()),
        Availability::Held(Some(at)) if state.health().quiet_until == Some(at) => {
            Some(Cause::ReceiverBusy { until: at }.at(at))
        }
        Availability::Held(Some(at)) => Some(Cause::FailedUntilProbe { at }.at(at)),
    }
}

fn held_host(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let HostHold { scope, until } = facts.wait_reasons.hold?;
    Some(Why { cause: Cause::HostHeld { scope, until }, next_attempt: until })
}

/// Why an endpoint has no delivery of a message. Nothing was stored about it, so this is what can be
/// told from the endpoint as it is now, and from why it would not get the message.
pub(crate) fn absence(endpoint: &Endpoint, message: &Message, mismatch: Option<Mismatch>) -> Why {
    if endpoint.created_at > message.created_at {
        return Cause::EndpointNewer.now();
    }
    if !message.is_for(&Subscription::from(endpoint)) {
        return Cause::ForAnotherEndpoint.now();
    }
    let cause = match mismatch {
        Some(Mismatch::EventType) => {
            Cause::EventTypeNotSubscribed { event_type: message.content.event_type.to_string() }
        }
        Some(Mismatch::Channel) => Cause::ChannelNotSubscribed,
        Some(Mismatch::Filter(_)) if message.expunged => Cause::FilteredUnknown,
        Some(Mismatch::Filter(UnmetCondition { location, text })) => Cause::FilteredAt { location, text },
        None => Cause::SubscriptionChanged,
    };
    cause.now()
}

/// A delivery whose endpoint has no row: only a bug leaves one behind.
pub(crate) fn without_endpoint() -> Why {
    Cause::NoEndpoint.now()
}

#[cfg(test)]
mod tests;
