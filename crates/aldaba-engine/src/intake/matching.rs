//! Which endpoints want a message.

use crate::aside::Aside;
use aldaba_delivery::filter::{FilterInput, FilterSet, UnmetCondition};
use aldaba_store::{Message, Subscription, Tenant};

/// Looks that are taken on the thread that has a message, about a millisecond of them; more would make others wait.
pub(crate) const LOOKS_AT_ONCE: u64 = 100_000;
/// Bytes of filters and of a payload whose explanation is made on the thread that is asked for it.
const FILTERS_AT_ONCE: usize = 4 << 10;
const PAYLOAD_AT_ONCE: usize = 64 << 10;

/// Why an endpoint does not get a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It has a list of event types, and this one is not on it.
    EventType,
    /// It has a list of channels, and the message has none of them.
    Channel,
    /// It has a filter, and this is what does not hold.
    Filter(UnmetCondition),
}

/// For each of some endpoints why such a message would not go to it; `None`: it would. One without channels takes every
/// message; one with channels takes only messages that share at least one. The payload is read once for all.
pub fn mismatches(endpoints: &[Subscription], facts: &FilterInput<'_>) -> Vec<Option<Mismatch>> {
    let listed = |list: &[String], item: &str| list.iter().any(|listed| listed == item);
    let by_lists = |endpoint: &Subscription| {
        if !endpoint.event_types.is_empty() && !listed(&endpoint.event_types, facts.event_type) {
            Some(Mismatch::EventType)
        } else if !endpoint.channels.is_empty()
            && !facts.channels.iter().any(|channel| listed(&endpoint.channels, channel))
        {
            Some(Mismatch::Channel)
        } else {
            None
        }
    };
    let mut all: Vec<_> = endpoints.iter().map(by_lists).collect();
    let asked = endpoints.iter().zip(&all).map(|(endpoint, mismatch)| match mismatch {
        None => endpoint.filter.clone(),
        Some(_) => None,
    });
    if let Some(filters) = FilterSet::new(asked) {
        let explaining = filters.explain(*facts);
        for (place, mismatch) in all.iter_mut().enumerate() {
            *mismatch = mismatch.take().or_else(|| explaining.unmet(place).map(Mismatch::Filter));
        }
    }
    all
}

/// The same, aside where it may take long.
pub(crate) async fn mismatches_of(
    aside: &Aside,
    endpoints: Vec<Subscription>,
    message: &Message,
) -> Vec<Option<Mismatch>> {
    let filters = endpoints.iter().filter_map(|endpoint| endpoint.filter.as_ref());
    let bytes: usize = filters.map(|filter| filter.as_str().len()).sum();
    if bytes == 0 || (bytes <= FILTERS_AT_ONCE && message.content.payload.len() <= PAYLOAD_AT_ONCE) {
        return mismatches(&endpoints, &message.facts());
    }
    let message = message.clone();
    aside.run(move || mismatches(&endpoints, &message.facts())).await
}

/// Looks that it takes to find out who wants a message with so many bytes of payload.
pub(crate) fn looks(tenant: &Tenant, payload: usize) -> u64 {
    let filters = tenant.filters.as_ref().map_or(0, |filters| filters.match_cost().at(payload));
    filters.saturating_add(tenant.endpoints.len() as u64)
}

/// The endpoints of an application that want a message. Its payload is read once for all their filters, and
/// only where one that has come so far asks for it.
pub(crate) fn wanting<'t>(
    tenant: &'t Tenant,
    facts: &'t FilterInput<'t>,
) -> impl Iterator<Item = &'t Subscription> {
    let mut filters = tenant.filters.as_ref().map(|filters| filters.run(*facts));
    tenant.endpoints.iter().enumerate().filter_map(move |(place, endpoint)| {
        let wants = endpoint.lists(facts.event_type, facts.channels)
            && filters.as_mut().is_none_or(|filters| filters.passes(place));
        wants.then_some(endpoint)
    })
}
