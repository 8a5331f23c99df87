//! What messages are matched by.

use crate::{Application, Endpoint};
use aldaba_delivery::filter::{Filter, FilterInput, FilterSet};
use aldaba_delivery::{EndpointId, SkipReason, SourceId, WhenDisabled};
use std::sync::Arc;

/// An application with all that is needed to match a message: one version of it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub application: Application,
    pub version: u64,
    pub endpoints: Vec<Subscription>,
    /// Those of the endpoints, by their places; `None`: not one has any.
    pub filters: Option<FilterSet>,
    /// The one that it belongs to, from its beginning to its end.
    pub source: Option<SourceId>,
}

impl Tenant {
    /// A filter counts as one more endpoint for so many bytes of it.
    const FILTER_BYTES: usize = 256;

    pub fn new(application: Application, version: u64, endpoints: Vec<Subscription>) -> Self {
        let filters = FilterSet::new(endpoints.iter().map(|endpoint| endpoint.filter.clone()));
        Self { application, version, endpoints, filters, source: None }
    }

    #[must_use]
    pub fn of_source(self, source: Option<SourceId>) -> Self {
        Self { source, ..self }
    }

    /// How much of the memory it takes, counted in endpoints.
    pub fn weight(&self) -> usize {
        let filter = |endpoint: &Subscription| {
            endpoint.filter.as_ref().map_or(0, |filter| filter.as_str().len().div_ceil(Self::FILTER_BYTES))
        };
        self.endpoints.len() + self.endpoints.iter().map(filter).sum::<usize>()
    }
}

/// What of an endpoint decides whether it gets a message. It is kept in memory for very many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: EndpointId,
    pub disabled: bool,
    /// Its deliveries go out in the order of their numbers.
    pub ordered: bool,
    /// What becomes of messages while it is disabled.
    pub when_disabled: WhenDisabled,
    /// Sorted, without repeats; empty: all.
    pub event_types: Box<[String]>,
    /// Sorted, without repeats; empty: all.
    pub channels: Box<[String]>,
    pub filter: Option<Arc<Filter>>,
    /// It gets what is dispatched to it, and nothing else.
    pub direct: bool,
}

impl Subscription {
    /// Whether a message of this type and these channels is for it, as far as its lists go.
    pub fn lists(&self, event_type: &str, channels: &[String]) -> bool {
        let of_type = self.event_types.is_empty() || self.event_types.iter().any(|name| name == event_type);
        of_type && (self.channels.is_empty() || self.channels.iter().any(|name| channels.contains(name)))
    }

    /// Why nothing that it subscribes to is to be sent there now. `None`: it is, or it waits.
    pub fn skips(&self) -> Option<SkipReason> {
        SkipReason::at_acceptance(self.disabled, self.when_disabled)
    }

    /// Whether a message is for it. Who asks for all endpoints of an application asks [`Tenant::filters`].
    pub fn wants(&self, facts: &FilterInput<'_>) -> bool {
        self.lists(facts.event_type, facts.channels)
            && self.filter.as_ref().is_none_or(|filter| filter.holds(facts))
    }
}

impl From<&Endpoint> for Subscription {
    fn from(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id,
            disabled: endpoint.config.disabled,
            ordered: endpoint.config.ordering.is_fifo(),
            when_disabled: endpoint.config.when_disabled,
            event_types: endpoint.config.event_types.clone().into(),
            channels: endpoint.config.channels.clone().into(),
            filter: endpoint.config.filter.clone(),
            direct: endpoint.direct,
        }
    }
}
