//! Messages, and the endpoints that each goes to.

use super::delivery::explained;
use super::explain::{self, Why};
use super::{ApplicationQuestions, Error, Missing, cut};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_store::{DeliveryView, Endpoint, ListPage, Message, MessagesQuery, Order, Page};
use std::collections::{BTreeMap, BTreeSet};

/// An endpoint, and what the message has to do with it.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) endpoint: Endpoint,
    /// `None`: the message does not go to the endpoint.
    pub(crate) delivery: Option<DeliveryView>,
    pub(crate) why: Why,
}

impl ApplicationQuestions<'_> {
    /// A message by its id or event id.
    pub(crate) async fn message(&self, key: &str) -> Result<Message, Error> {
        self.find_message(key).await?.ok_or_else(|| Missing::Message.into())
    }

    pub(crate) async fn find_message(&self, key: &str) -> Result<Option<Message>, Error> {
        Ok(self.store().message(self.id, key.to_owned()).await?)
    }

    pub(crate) async fn messages(&self, query: MessagesQuery) -> Result<ListPage<Message, MessageId>, Error> {
        Ok(self.store().messages(MessagesQuery { app: self.id, ..query }).await?)
    }

    /// The endpoints that a message goes to; with `all` also the others.
    pub(crate) async fn destinations(
        &self,
        message: &Message,
        page: &Page<EndpointId>,
        order: Order,
        all: bool,
    ) -> Result<Vec<Destination>, Error> {
        let store = self.store();
        let mut deliveries = store.deliveries(message.id).await?;
        deliveries.sort_by_key(|delivery| delivery.endpoint);
        let deliveries = cut(deliveries, page, order, |delivery| delivery.endpoint);
        let endpoints = deliveries.iter().map(|delivery| delivery.endpoint).collect();
        let endpoints = store.lane_endpoints(endpoints).await?;
        let endpoints: BTreeMap<_, _> =
            endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect();
        let seqs = deliveries.iter().map(|delivery| delivery.seq).collect();
        let views = store.delivery_views(self.id, seqs).await?;
        let explanations = explained(self.engine, &views, &endpoints).await;
        let mut found: Vec<_> = views
            .into_iter()
            .zip(explanations)
            .filter_map(|(view, (why, _))| {
                let endpoint = endpoints.get(&view.status.endpoint)?.clone();
                Some(Destination { endpoint, delivery: Some(view), why })
            })
            .collect();
        if all {
            let others = store.endpoints(self.id, *page, order).await?;
            let has: BTreeSet<_> = found.iter().map(|destination| destination.endpoint.id).collect();
            let others: Vec<_> = others.into_iter().filter(|endpoint| !has.contains(&endpoint.id)).collect();
            let mismatches = self.engine.mismatches(others.iter().map(Into::into).collect(), message).await;
            found.extend(others.into_iter().zip(mismatches).map(|(endpoint, mismatch)| {
                let why = explain::absence(&endpoint, message, mismatch);
                Destination { endpoint, delivery: None, why }
            }));
            found.sort_by_key(|destination| destination.endpoint.id);
            found = cut(found, page, order, |destination| destination.endpoint.id);
        }
        Ok(found)
    }
}
