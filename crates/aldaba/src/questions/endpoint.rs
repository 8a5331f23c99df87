//! Endpoints, the changes of their health, and their messages.

use super::{ApplicationQuestions, Error, Missing, Questions};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_store::{
    DeliveryView, Endpoint, EndpointMessage, EndpointMessagesQuery, HealthChange, HealthChangeNumber,
    ListPage, Order, Page, Seq,
};
use std::collections::BTreeMap;

/// Messages of an endpoint, each with its delivery.
#[derive(Debug)]
pub(crate) struct EndpointMessagesPage {
    pub(crate) list: ListPage<EndpointMessage, MessageId>,
    pub(crate) deliveries: BTreeMap<Seq, DeliveryView>,
}

impl Questions<'_> {
    /// An endpoint by the keys of its application and its own.
    pub(crate) async fn endpoint(&self, (app, endpoint): &(String, String)) -> Result<Endpoint, Error> {
        self.application(app).await?.endpoint(endpoint).await
    }
}

impl ApplicationQuestions<'_> {
    /// An endpoint by its id or uid.
    pub(crate) async fn endpoint(&self, key: &str) -> Result<Endpoint, Error> {
        self.find_endpoint(key).await?.ok_or_else(|| Missing::Endpoint.into())
    }

    pub(crate) async fn find_endpoint(&self, key: &str) -> Result<Option<Endpoint>, Error> {
        Ok(self.store().endpoint(self.id, key.to_owned()).await?)
    }

    pub(crate) async fn endpoints(
        &self,
        page: Page<EndpointId>,
        order: Order,
    ) -> Result<Vec<Endpoint>, Error> {
        Ok(self.store().endpoints(self.id, page, order).await?)
    }

    pub(crate) async fn health_changes(
        &self,
        endpoint: &Endpoint,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Result<Vec<HealthChange>, Error> {
        Ok(self.store().health_changes(endpoint.id, page, order).await?)
    }

    pub(crate) async fn endpoint_messages(
        &self,
        query: EndpointMessagesQuery,
    ) -> Result<EndpointMessagesPage, Error> {
        let query = EndpointMessagesQuery { app: self.id, ..query };
        let list = self.store().endpoint_messages(query).await?;
        let deliveries = list.items.iter().map(|item| item.delivery.seq).collect();
        let deliveries = self.store().delivery_views(self.id, deliveries).await?;
        let deliveries = deliveries.into_iter().map(|view| (view.status.seq, view)).collect();
        Ok(EndpointMessagesPage { list, deliveries })
    }
}
