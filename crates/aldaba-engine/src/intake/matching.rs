//! Matches messages with endpoints.

use crate::blocking_pool::BlockingPool;
use aldaba_delivery::filter::{FilterInput, FilterSet, UnmetCondition};
use aldaba_store::{Message, Subscription, Tenant};

/// The match cost that is spent on the calling thread, about a millisecond. More would delay other tasks.
pub(crate) const MAX_INLINE_MATCH_COST: u64 = 100_000;
/// Filters and payloads up to these bytes are explained on the calling thread.
const MAX_INLINE_FILTER_BYTES: usize = 4 << 10;
const MAX_INLINE_PAYLOAD_BYTES: usize = 64 << 10;

/// Why an endpoint does not receive a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Its list of event types lacks this one.
    EventType,
    /// The message has none of its channels.
    Channel,
    /// Its filter has this unmet condition.
    Filter(UnmetCondition),
}

/// Why each endpoint would not receive such a message; `None`: it would. An endpoint without channels
/// receives every message; one with channels only messages that share one. The payload is parsed once for
/// all.
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
        for (index, mismatch) in all.iter_mut().enumerate() {
            *mismatch = mismatch.take().or_else(|| explaining.unmet(index).map(Mismatch::Filter));
        }
    }
    all
}

/// Like [`mismatches`], on the blocking pool if it may take long.
pub(crate) async fn mismatches_of(
    blocking_pool: &BlockingPool,
    endpoints: Vec<Subscription>,
    message: &Message,
) -> Vec<Option<Mismatch>> {
    let filters = endpoints.iter().filter_map(|endpoint| endpoint.filter.as_ref());
    let bytes: usize = filters.map(|filter| filter.as_str().len()).sum();
    if bytes == 0
        || (bytes <= MAX_INLINE_FILTER_BYTES && message.content.payload.len() <= MAX_INLINE_PAYLOAD_BYTES)
    {
        return mismatches(&endpoints, &message.facts());
    }
    let message = message.clone();
    blocking_pool.run(move || mismatches(&endpoints, &message.facts())).await
}

/// The cost of matching a message with a payload of so many bytes.
pub(crate) fn match_cost(tenant: &Tenant, payload: usize) -> u64 {
    let filters = tenant.filters.as_ref().map_or(0, |filters| filters.match_cost().at(payload));
    filters.saturating_add(tenant.endpoints.len() as u64)
}

/// The endpoints of an application that match a message. The payload is parsed once for all filters, and
/// only when a filter first needs it.
pub(crate) fn matching_endpoints<'t>(
    tenant: &'t Tenant,
    facts: &'t FilterInput<'t>,
) -> impl Iterator<Item = &'t Subscription> {
    let mut filters = tenant.filters.as_ref().map(|filters| filters.run(*facts));
    tenant.endpoints.iter().enumerate().filter_map(move |(index, endpoint)| {
        let wants = endpoint.lists(facts.event_type, facts.channels)
            && filters.as_mut().is_none_or(|filters| filters.passes(index));
        wants.then_some(endpoint)
    })
}
