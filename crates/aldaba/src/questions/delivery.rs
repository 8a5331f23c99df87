//! Deliveries: one, a list, the dead letter, and why each has its state.

use super::explain::{self, DeliveryFacts, Failure, Why};
use super::{ApplicationQuestions, Error, Missing, Questions, distinct};
use aldaba_delivery::{Delivery, EndpointId, Timestamp};
use aldaba_engine::{Engine, WaitReasons};
use aldaba_store::{
    DeliveriesPage, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryPosition, DeliveryState,
    DeliveryView, DueQuery, Endpoint, Order, Phase, Seq,
};
use std::collections::BTreeMap;

/// Deliveries that one read looks at. A filter that finds little ends its page early.
const MAX_ROWS_WALKED: usize = 5_000;

/// The deliveries of one application, or the dead letter of all applications of an organization.
#[derive(Clone, Debug)]
pub(crate) enum DeliveryQuestions<'a> {
    Application(ApplicationQuestions<'a>),
    DeadLetter(Questions<'a>),
}

/// Which deliveries a list has, and which part of it.
#[derive(Clone, Debug)]
pub(crate) struct DeliverySelection {
    pub(crate) phase: Phase,
    pub(crate) filter: DeliveryFilter,
    /// Only deliveries beyond this one.
    pub(crate) from: Option<DeliveryPosition>,
    pub(crate) order: Order,
    pub(crate) limit: usize,
}

/// A delivery, and why it has its state.
#[derive(Debug)]
pub(crate) struct ExplainedDelivery {
    pub(crate) view: DeliveryView,
    pub(crate) why: Why,
    pub(crate) stop_date: Option<Timestamp>,
}

impl DeliveryQuestions<'_> {
    pub(super) fn engine(&self) -> &Engine {
        match self {
            Self::Application(application) => application.engine,
            Self::DeadLetter(questions) => questions.engine,
        }
    }

    fn list(&self, phase: Phase) -> DeliveryList {
        match self {
            Self::Application(application) => DeliveryList::Of(application.id, phase),
            Self::DeadLetter(questions) => DeliveryList::DeadLetter(questions.caller.org()),
        }
    }

    /// Whether a position can be one of the list with this phase.
    pub(crate) fn has(&self, phase: Phase, position: DeliveryPosition) -> bool {
        self.list(phase).has(position)
    }

    /// The id of an endpoint that a filter names. Deleted endpoints count too: what happened stays visible.
    pub(crate) async fn endpoint_id(&self, key: &str) -> Result<EndpointId, Error> {
        if let Ok(id) = key.parse::<EndpointId>() {
            let found = self.engine().store().lane_endpoints(vec![id]).await?;
            let is_reachable = found.first().is_some_and(|endpoint| match self {
                Self::Application(application) => endpoint.app == application.id,
                Self::DeadLetter(questions) => endpoint.org == questions.caller.org(),
            });
            if is_reachable {
                return Ok(id);
            }
        }
        match self {
            Self::Application(application) => Ok(application.endpoint(key).await?.id),
            Self::DeadLetter(_) => Err(Missing::EndpointId.into()),
        }
    }

    pub(crate) async fn deliveries(&self, selection: DeliverySelection) -> Result<DeliveriesPage, Error> {
        let DeliverySelection { phase, filter, from, order, limit } = selection;
        let list = self.list(phase);
        let query = DeliveriesQuery { list, filter, from, order, limit, walk: MAX_ROWS_WALKED };
        Ok(self.engine().store().delivery_list(query).await?)
    }

    /// Explains the deliveries of a list.
    pub(crate) async fn explain(&self, views: Vec<DeliveryView>) -> Result<Vec<ExplainedDelivery>, Error> {
        let engine = self.engine();
        let endpoints = distinct(views.iter().map(|view| view.status.endpoint));
        let endpoints = engine.store().lane_endpoints(endpoints).await?;
        let endpoints = endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect();
        let explanations = explained(engine, &views, &endpoints).await;
        let explained = views.into_iter().zip(explanations);
        Ok(explained.map(|(view, (why, stop_date))| ExplainedDelivery { view, why, stop_date }).collect())
    }
}

impl ApplicationQuestions<'_> {
    pub(crate) async fn delivery(&self, seq: Seq) -> Result<DeliveryView, Error> {
        let found = self.store().delivery_views(self.id, vec![seq]).await?.pop();
        found.ok_or_else(|| Missing::Delivery.into())
    }
}

/// What came of the newest attempt, if that failed.
fn failure_of(view: &DeliveryView) -> Option<Failure> {
    let last = view.last.as_ref().filter(|last| !last.error.is_empty())?;
    Some(Failure { status_code: last.status_code, kind: last.failure, text: last.error.clone() })
}

/// Why each delivery has its state, and its stop date. The endpoints of the deliveries are known.
pub(super) async fn explained(
    engine: &Engine,
    views: &[DeliveryView],
    endpoints: &BTreeMap<EndpointId, Endpoint>,
) -> Vec<(Why, Option<Timestamp>)> {
    let waiting: Vec<_> = views
        .iter()
        .filter(|view| matches!(view.status.state, DeliveryState::Waiting { .. }))
        .filter_map(|view| Some((endpoints.get(&view.status.endpoint)?, view.status.seq)))
        .collect();
    let wait_reasons = if waiting.is_empty() { Vec::new() } else { engine.wait_reasons(&waiting).await };
    let wait_reasons: BTreeMap<Seq, WaitReasons> =
        waiting.iter().map(|(_, seq)| *seq).zip(wait_reasons).collect();
    let mut heads = BTreeMap::new();
    for (endpoint, _) in waiting.iter().filter(|(endpoint, _)| endpoint.config.ordering.is_fifo()) {
        let first = DueQuery { endpoint: endpoint.id, ordered: true, after: None, limit: 1 };
        // If it cannot be read now, the explanation does without it.
        let first = engine.store().due(first).await.unwrap_or_default();
        heads.extend(first.first().map(|head| (endpoint.id, *head)));
    }
    let now = engine.clock().now();
    let explain = |view: &DeliveryView| {
        let status = &view.status;
        let Some(endpoint) = endpoints.get(&status.endpoint) else {
            return (explain::without_endpoint(), None);
        };
        let policy = engine.policies().of(endpoint.org, &endpoint.config.policy);
        let failure = failure_of(view);
        let facts = DeliveryFacts {
            delivery: status,
            endpoint,
            policy: &policy,
            wait_reasons: wait_reasons.get(&status.seq).copied().unwrap_or_default(),
            ahead: heads.get(&endpoint.id).copied().filter(|head| head.seq != status.seq),
            delivered_by: view.delivered_by,
            failure: failure.as_ref(),
        };
        let delivery = Delivery { attempts: status.attempts, clock_start: status.clock_start };
        let why = explain::delivery(&facts, now);
        (why, endpoint.state().stop_rule(policy).stop_at(&delivery))
    };
    views.iter().map(explain).collect()
}
