//! Which endpoints want a message.

use aldaba_delivery::filter::{Facts, Unmet};
use aldaba_store::{Subscription, Tenant};

/// Why an endpoint does not get a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It has a list of event types, and this one is not on it.
    EventType,
    /// It has a list of channels, and the message has none of them.
    Channel,
    /// It has a filter, and this is what does not hold.
    Filter(Unmet),
}

/// Why such a message would not go to an endpoint; `None`: it would. One without channels takes every
/// message; one with channels takes only messages that share at least one.
pub fn mismatch(endpoint: &Subscription, facts: &Facts<'_>) -> Option<Mismatch> {
    let listed = |list: &[String], item: &str| list.iter().any(|listed| listed == item);
    if !endpoint.event_types.is_empty() && !listed(&endpoint.event_types, facts.event_type) {
        Some(Mismatch::EventType)
    } else if !endpoint.channels.is_empty() && !facts.channels.iter().any(|c| listed(&endpoint.channels, c)) {
        Some(Mismatch::Channel)
    } else {
        endpoint.filter.as_ref()?.unmet(facts).map(Mismatch::Filter)
    }
}

/// The endpoints of an application that want a message. Its payload is read once for all their filters, and
/// only where one that has come so far asks for it.
pub(crate) fn wanting<'t>(
    tenant: &'t Tenant,
    facts: &'t Facts<'t>,
) -> impl Iterator<Item = &'t Subscription> {
    let mut filters = tenant.filters.as_ref().map(|filters| filters.over(*facts));
    tenant.endpoints.iter().enumerate().filter_map(move |(place, endpoint)| {
        let wants = endpoint.lists(facts.event_type, facts.channels)
            && filters.as_mut().is_none_or(|filters| filters.passes(place));
        wants.then_some(endpoint)
    })
}
