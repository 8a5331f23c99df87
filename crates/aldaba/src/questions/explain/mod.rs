//! Why a message has or has not reached an endpoint: a word for programs and a sentence for people.

use crate::api::shown_time;
use aldaba_delivery::filter::UnmetCondition;
use aldaba_delivery::{Availability, GateScope, HealthStatus, Policy, Timestamp};
use aldaba_engine::{HostHold, Mismatch, WaitReasons};
use aldaba_store::{DeliveryState, DeliveryStatus, Endpoint, Message, PendingDelivery, Subscription};

/// What is said about one delivery, or about its absence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: &'static str,
    pub(crate) explanation: String,
    /// `None`: there is none, or it waits for something that has no date.
    pub(crate) next_attempt: Option<Timestamp>,
}

impl Why {
    fn new(reason: &'static str, explanation: impl Into<String>) -> Self {
        Self { reason, explanation: explanation.into(), next_attempt: None }
    }

    fn at(self, next_attempt: Timestamp) -> Self {
        Self { next_attempt: Some(next_attempt), ..self }
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
    pub(crate) error: Option<&'a str>,
}

/// Where a delivery stands, and why there.
pub(crate) fn delivery(facts: &DeliveryFacts<'_>, now: Timestamp) -> Why {
    let attempts = facts.delivery.attempts;
    match facts.delivery.state {
        DeliveryState::Waiting { due_at } => waiting(facts, due_at, now),
        DeliveryState::Skipped { reason, .. } => {
            let text = "Not sent: the endpoint was turned off when the message came. A replay of what is missing sends it";
            Why::new(reason.name(), text)
        }
        DeliveryState::Delivered { at } => {
            let attempt = facts.delivered_by.unwrap_or(attempts);
            Why::new("delivered", format!("Delivered by attempt {attempt} at {}", shown_time(at)))
        }
        DeliveryState::Dead { at, reason } => {
            let error = facts.error.map(|error| format!("; the last error: {error}")).unwrap_or_default();
            let (text, at) = (reason.text(), shown_time(at));
            Why::new(reason.name(), format!("{text}: ended at {at} after {}{error}", times(attempts)))
        }
    }
}

/// The first thing that keeps it from being sent, from what lasts longest to what passes soonest.
fn waiting(facts: &DeliveryFacts<'_>, due_at: Timestamp, now: Timestamp) -> Why {
    let later = |until: &Timestamp| *until > due_at.max(now);
    let held = [deleted(facts), in_flight(facts), turned_off(facts), needs_resume(facts)];
    if let Some(why) = held.into_iter().flatten().next() {
        return why;
    }
    let holds = [held_endpoint(facts, now), held_host(facts)];
    let longest = holds.into_iter().flatten().filter(|why| why.next_attempt.as_ref().is_none_or(later));
    if let Some(why) = longest.max_by_key(|why| why.next_attempt.unwrap_or(Timestamp::MIN)) {
        return why;
    }
    let is_outside = facts.endpoint.config.ordering.is_fifo() && facts.delivery.sequence.is_none();
    if is_outside && due_at > now {
        let text =
            format!("Is for later: it takes its place in the endpoint's order at {}", shown_time(due_at));
        return Why::new("scheduled", text).at(facts.ahead.map_or(due_at, |ahead| ahead.due_at.max(due_at)));
    }
    if let Some(ahead) = facts.ahead {
        let text = "Waits for an earlier message: the endpoint gets them in order";
        return Why::new("in_order", text).at(ahead.due_at.max(due_at).max(now));
    }
    if facts.wait_reasons.paused {
        let text = "Nothing is sent at present: the server is stopping, its disk cannot be written, or its operator has paused it";
        return Why::new("paused", text).at(due_at.max(now));
    }
    if due_at > now {
        return planned(facts, due_at).at(due_at);
    }
    if let Some(until) = facts.wait_reasons.throttled_until {
        let rate = facts.endpoint.config.throttle_rate.unwrap_or_default();
        let text = format!("Due; the endpoint gets at most {rate} requests a second");
        return Why::new("throttled", text).at(until);
    }
    if let Some(until) = facts.wait_reasons.app_throttled_until {
        let text = "Due; the application's endpoints have had as many requests as its throttleRate allows";
        return Why::new("application_throttled", text).at(until);
    }
    if facts.wait_reasons.origin_busy {
        let text = "Due; as many requests are on their way to the host as may be (`requests_per_origin`)";
        return Why::new("host_busy", text).at(due_at);
    }
    Why::new("due", "The endpoint subscribes to it; it is due and waits for its turn").at(due_at)
}

fn planned(facts: &DeliveryFacts<'_>, due_at: Timestamp) -> Why {
    let (retry, at) = (facts.delivery.attempts, shown_time(due_at));
    if retry == 0 {
        return Why::new("scheduled", format!("The first attempt is planned for {at}"));
    }
    let most = facts.policy.limit.attempts.map(|attempts| attempts.saturating_sub(1));
    let of = most.map(|most| format!(" of {most}")).unwrap_or_default();
    let error = facts.error.unwrap_or("no success");
    Why::new("retry", format!("Retry {retry}{of} is planned for {at}, after: {error}"))
}

fn deleted(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let text = "The endpoint is deleted; what waits for it is being cancelled";
    facts.endpoint.deleted.then(|| Why::new("endpoint_deleted", text))
}

fn in_flight(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let attempt = facts.delivery.attempts + 1;
    facts.wait_reasons.in_flight.then(|| Why::new("in_flight", format!("Attempt {attempt} is being made")))
}

fn turned_off(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let text = "Held: the endpoint is turned off; it is sent when it is turned on again";
    facts.endpoint.config.disabled.then(|| Why::new("endpoint_disabled", text))
}

fn needs_resume(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let state = facts.endpoint.state();
    state.health().needs_resume().then(|| match state.health().status {
        HealthStatus::Blocked => {
            let text = "Held: an earlier message has died, and the endpoint gets them in order. It waits for \
                        someone to resume it";
            Why::new("endpoint_blocked", text)
        }
        HealthStatus::Gone => {
            let text = "Held: the receiver answered 410 (Gone), which turned the endpoint off";
            Why::new("endpoint_gone", text)
        }
        HealthStatus::Failed | HealthStatus::Active => {
            let text = "Held: the endpoint has failed, and waits for someone to resume it";
            Why::new("endpoint_failed", text)
        }
    })
}

/// What the endpoint's health says, by the same rule that gives turns.
fn held_endpoint(facts: &DeliveryFacts<'_>, now: Timestamp) -> Option<Why> {
    let state = facts.endpoint.state();
    match state.availability(now) {
        Availability::Open | Availability::Held(None) => None,
        Availability::Probe => {
            let text = "Held: the endpoint has failed; one delivery goes first, as a probe";
            Some(Why::new("endpoint_failed", text))
        }
        Availability::Held(Some(at)) if state.health().quiet_until == Some(at) => {
            let at_text = shown_time(at);
            let text = format!("Held: the receiver asked (Retry-After) for no request before {at_text}");
            Some(Why::new("receiver_busy", text).at(at))
        }
        Availability::Held(Some(at)) => {
            let text = format!("Held: the endpoint has failed; it is probed at {}", shown_time(at));
            Some(Why::new("endpoint_failed", text).at(at))
        }
    }
}

fn held_host(facts: &DeliveryFacts<'_>) -> Option<Why> {
    let HostHold { scope, until } = facts.wait_reasons.hold?;
    let what = match scope {
        GateScope::Host => "the host cannot be reached",
        GateScope::Application(_) => "the host fails for this application",
    };
    Some(match until {
        Some(until) => {
            let text = format!("Held until {}: {what}; then one probe goes first", shown_time(until));
            Why::new("host_held", text).at(until)
        }
        None => Why::new("host_held", format!("Held: {what}; a probe is on its way")),
    })
}

/// Why an endpoint has no delivery of a message. Nothing was stored about it, so this is what can be
/// told from the endpoint as it is now, and from why it would not get the message.
pub(crate) fn absence(endpoint: &Endpoint, message: &Message, mismatch: Option<Mismatch>) -> Why {
    if endpoint.created_at > message.created_at {
        let text = "Not sent: the endpoint was created after the message was accepted";
        return Why::new("endpoint_newer", text);
    }
    if !message.is_for(&Subscription::from(endpoint)) {
        return Why::new("for_another_endpoint", "Not sent: the message is an example for another endpoint");
    }
    let event_type = &message.content.event_type;
    let (reason, text) = match mismatch {
        Some(Mismatch::EventType) => (
            "event_type_not_subscribed",
            format!("Not sent: the endpoint does not subscribe to {event_type}"),
        ),
        Some(Mismatch::Channel) => {
            let text = "Not sent: the message has none of the endpoint's channels";
            ("channel_not_subscribed", text.to_owned())
        }
        Some(Mismatch::Filter(_)) if message.expunged => {
            let text = "Not sent. The endpoint has a filter, and the payload was deleted: what the filter said of it \
                        cannot be told any more";
            ("filtered", text.to_owned())
        }
        Some(Mismatch::Filter(UnmetCondition { location, text })) => {
            ("filtered", format!("Not sent: the endpoint's filter keeps it back. At {location}: {text}"))
        }
        None => {
            let text = "Not sent: the endpoint did not want it when it was accepted. As it is now, it would";
            return Why::new("subscription_changed", text);
        }
    };
    Why::new(reason, format!("{text} (as it is now)"))
}

/// A delivery whose endpoint has no row: only a bug leaves one behind.
pub(crate) fn without_endpoint() -> Why {
    Why::new("endpoint_deleted", "There is no such endpoint any more")
}

fn times(attempts: u32) -> String {
    match attempts {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        _ => format!("{attempts} attempts"),
    }
}

#[cfg(test)]
mod tests;
