//! Which endpoints want a message.

use aldaba_store::Subscription;

/// Why an endpoint does not get a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It has a list of event types, and this one is not on it.
    EventType,
    /// It has a list of channels, and the message has none of them.
    Channel,
}

/// Why such a message would not go to an endpoint; `None`: it would. One without channels takes every
/// message; one with channels takes only messages that share at least one.
pub fn mismatch(endpoint: &Subscription, event_type: &str, channels: &[String]) -> Option<Mismatch> {
    let listed = |list: &[String], item: &str| list.iter().any(|listed| listed == item);
    if !endpoint.event_types.is_empty() && !listed(&endpoint.event_types, event_type) {
        Some(Mismatch::EventType)
    } else if !endpoint.channels.is_empty() && !channels.iter().any(|c| listed(&endpoint.channels, c)) {
        Some(Mismatch::Channel)
    } else {
        None
    }
}
