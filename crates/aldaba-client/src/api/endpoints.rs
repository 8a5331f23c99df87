//! Endpoints: where an application's messages go.

use crate::api::applications::App;
use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error};
use aldaba_api::{
    CancelMessages, Endpoint, EndpointPatch, EndpointStats, EndpointUpdate, HealthChange, Message,
    NewEndpoint, Resume, Resumed, SendExample, Throttling, Timestamp, input,
};
use futures_util::Stream;

/// The endpoints of an application.
#[derive(Clone, Debug)]
pub struct Endpoints {
    app: App,
}

/// One endpoint, by its id or uid.
#[derive(Clone, Debug)]
pub struct AppEndpoint {
    pub(crate) client: Client,
    pub(crate) app: String,
    pub(crate) id: String,
}

impl App {
    /// Its endpoints.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        Endpoints { app: self.clone() }
    }

    /// One of its endpoints, by its id or uid.
    #[must_use]
    pub fn endpoint(&self, id: impl Into<String>) -> AppEndpoint {
        AppEndpoint { client: self.client.clone(), app: self.id.clone(), id: id.into() }
    }
}

impl Endpoints {
    /// Makes one.
    pub async fn create(&self, new: &NewEndpoint) -> Result<Endpoint, Error> {
        Call::post(&["app", &self.app.id, "endpoint"]).json(new).answer(&self.app.client).await
    }

    /// A page of them.
    pub fn list(&self) -> Listing<Endpoint, Ordered> {
        Listing::new(&self.app.client, &["app", &self.app.id, "endpoint"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Endpoint, Error>> + Send + Unpin + use<> {
        self.list().all()
    }
}

impl AppEndpoint {
    /// The parts of a path below it.
    pub(crate) fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app, "endpoint", &self.id], more].concat()
    }

    /// Shows it.
    pub async fn get(&self) -> Result<Endpoint, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Makes it what is given, or makes it.
    pub async fn update(&self, update: &EndpointUpdate) -> Result<Endpoint, Error> {
        Call::put(&self.path(&[])).json(update).answer(&self.client).await
    }

    /// Changes only what is given.
    pub async fn patch(&self, patch: &EndpointPatch) -> Result<Endpoint, Error> {
        Call::patch(&self.path(&[])).json(patch).answer(&self.client).await
    }

    /// Deletes it; what waits for it is discarded.
    pub async fn delete(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.client).await
    }

    /// How its condition changed.
    pub fn health_changes(&self) -> Listing<HealthChange, Ordered> {
        Listing::new(&self.client, &self.path(&["health"]))
    }

    /// Lets its messages go again after it failed or blocked, by hand.
    pub async fn resume(&self, resume: &Resume) -> Result<Resumed, Error> {
        Call::post(&self.path(&["resume"])).json(resume).answer(&self.client).await
    }

    /// Discards what waits for it and was accepted before a moment.
    pub async fn cancel_messages(&self, created_before: impl Into<Timestamp>) -> Result<(), Error> {
        let body = CancelMessages { created_before: created_before.into() };
        Call::post(&self.path(&["cancel-msgs"])).json(&body).done(&self.client).await
    }

    /// Sends it an example of an event type, and nobody else.
    pub async fn send_example(&self, example: &SendExample) -> Result<Message, Error> {
        Call::post(&self.path(&["send-example"])).json(example).answer(&self.client).await
    }

    /// Whether something waits for its rate.
    pub async fn throttling(&self) -> Result<Throttling, Error> {
        Call::get(&self.path(&["rate-limit-status"])).answer(&self.client).await
    }

    /// How many messages are in which state.
    pub async fn stats(&self, between: &Between) -> Result<EndpointStats, Error> {
        Call::get(&self.path(&["stats"])).query_of(between).answer(&self.client).await
    }
}

input! {
    /// A span of time; the server says what it is, if not given.
    Between {
        /// From then on.
        since: Option<Timestamp>,
        /// Until then.
        until: Option<Timestamp>,
    }
}
