//! Event types: what can happen, and what its payloads look like.

use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::{
    EventType, EventTypePatch, EventTypeUpdate, ImportOpenApi, ImportedOpenApi, NewEventType, input,
};
use futures_util::Stream;

input! {
    /// Which event types.
    EventTypeFilter {
        /// Also archived ones.
        #[serde(rename = "include_archived")]
        include_archived: Option<bool>,
        /// Whether schemas are shown; no, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
        /// Which come first.
        order: Option<Order>,
    }
}

/// The event types of an organization.
#[derive(Clone, Debug)]
pub struct EventTypes {
    client: Client,
}

impl Client {
    /// The event types.
    #[must_use]
    pub fn event_types(&self) -> EventTypes {
        EventTypes { client: self.clone() }
    }
}

impl EventTypes {
    /// A page of them.
    pub fn list(&self) -> Listing<EventType, EventTypeFilter> {
        Listing::new(&self.client, &["event-type"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<EventType, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Makes one.
    pub async fn create(&self, new: &NewEventType) -> Result<EventType, Error> {
        Call::post(&["event-type"]).json(new).answer(&self.client).await
    }

    /// Shows one.
    pub async fn get(&self, name: &str) -> Result<EventType, Error> {
        Call::get(&["event-type", name]).answer(&self.client).await
    }

    /// Makes one what is given, or makes it.
    pub async fn update(&self, name: &str, update: &EventTypeUpdate) -> Result<EventType, Error> {
        Call::put(&["event-type", name]).json(update).answer(&self.client).await
    }

    /// Changes only what is given.
    pub async fn patch(&self, name: &str, patch: &EventTypePatch) -> Result<EventType, Error> {
        Call::patch(&["event-type", name]).json(patch).answer(&self.client).await
    }

    /// Archives one.
    pub async fn archive(&self, name: &str) -> Result<(), Error> {
        Call::delete(&["event-type", name]).done(&self.client).await
    }

    /// Removes one for good.
    pub async fn expunge(&self, name: &str) -> Result<(), Error> {
        Call::delete(&["event-type", name]).query("expunge", &true).done(&self.client).await
    }

    /// Makes event types of the webhooks of an OpenAPI document.
    pub async fn import_openapi(&self, import: &ImportOpenApi) -> Result<ImportedOpenApi, Error> {
        Call::post(&["event-type", "import", "openapi"]).json(import).answer(&self.client).await
    }
}
