//! Deliveries: a message on its way to one endpoint, and the dead letter.

use crate::api::applications::App;
use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::{Attempt, Delivery, DeliveryState, Discard, Discarded, Timestamp, input};
use futures_util::Stream;

input! {
    /// Which deliveries.
    DeliveryFilter {
        /// In this state.
        state: Option<DeliveryState>,
        /// To this endpoint.
        endpoint: Option<String>,
        /// Of this event type.
        event_type: Option<String>,
        /// That ended for this reason.
        reason: Option<String>,
        /// Of messages accepted before.
        before: Option<Timestamp>,
        /// Of messages accepted after.
        after: Option<Timestamp>,
        /// Which come first.
        order: Option<Order>,
    }
}

input! {
    /// Which dead ones.
    DeadLetterFilter {
        /// Of this application.
        app: Option<String>,
        /// To this endpoint.
        endpoint: Option<String>,
        /// Of this event type.
        event_type: Option<String>,
        /// That ended for this reason.
        reason: Option<String>,
        /// Of messages accepted before.
        before: Option<Timestamp>,
        /// Of messages accepted after.
        after: Option<Timestamp>,
        /// Which come first.
        order: Option<Order>,
    }
}

/// The deliveries of an application.
#[derive(Clone, Debug)]
pub struct Deliveries {
    app: App,
}

/// One delivery.
#[derive(Clone, Debug)]
pub struct AppDelivery {
    client: Client,
    app: String,
    id: String,
}

impl Client {
    /// What ended without success, of all applications or of one.
    pub fn dead_letter(&self) -> Listing<Delivery, DeadLetterFilter> {
        Listing::new(self, &["dead-letter"])
    }
}

impl App {
    /// Its deliveries.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries { app: self.clone() }
    }

    /// One of its deliveries.
    #[must_use]
    pub fn delivery(&self, id: impl Into<String>) -> AppDelivery {
        AppDelivery { client: self.client.clone(), app: self.id.clone(), id: id.into() }
    }
}

impl Deliveries {
    /// A page of them: what waits first, of everything else the newest.
    pub fn list(&self) -> Listing<Delivery, DeliveryFilter> {
        Listing::new(&self.app.client, &["app", &self.app.id, "delivery"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Delivery, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Discards what is asked for, as many as one request does; `done` says whether that was all.
    pub async fn discard(&self, discard: &Discard) -> Result<Discarded, Error> {
        let call = Call::post(&["app", &self.app.id, "delivery", "discard"]);
        call.json(discard).answer(&self.app.client).await
    }
}

impl AppDelivery {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app, "delivery", &self.id], more].concat()
    }

    /// Shows it with its newest attempts.
    pub async fn get(&self) -> Result<Delivery, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Its attempts, newest first.
    pub fn attempts(&self) -> Listing<Attempt, WithContent> {
        Listing::new(&self.client, &self.path(&["attempt"]))
    }

    /// Takes it out of the dead letter, or gives it up.
    pub async fn discard(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.client).await
    }
}

input! {
    /// How much of attempts is shown.
    WithContent {
        /// Whether bodies of answers are shown; yes, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
    }
}
