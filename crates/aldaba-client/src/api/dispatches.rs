//! Direct dispatch: a webhook to a URL that is no endpoint.

use crate::api::applications::App;
use crate::api::endpoint_keys::SigningSecret;
use crate::api::jobs::DispatchStatus;
use crate::call::Call;
use crate::listing::Listing;
use crate::{Error, Json, Secret};
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;
use std::collections::BTreeMap;

input! {
    /// A webhook to a URL.
    NewDispatch {
        /// Where it goes.
        url: String,
        /// What is sent.
        payload: Json,
        /// What happened; `dispatch`, if not given.
        event_type: Option<String>,
        /// Of retries; `standard`, if not given.
        policy: Option<String>,
        /// Wire profile; the server's default, if not given.
        profile: Option<String>,
        /// Sent with it.
        headers: BTreeMap<String, String>,
        /// Signs it; the application's own for dispatches, if not given.
        secret: Option<Secret>,
        /// Your own name for it, unique in the application.
        event_id: Option<String>,
        /// Nothing goes out before this moment.
        deliver_at: Option<Timestamp>,
        /// To find it by.
        tags: Option<Vec<String>>,
    }
}

impl NewDispatch {
    /// To a URL.
    pub fn new(url: impl Into<String>, payload: impl Into<Json>) -> Self {
        Self { url: url.into(), payload: payload.into(), ..Self::default() }
    }
}

answer! {
    /// A webhook to a URL, and how far it is.
    Dispatch {
        /// The message's id.
        id: String,
        /// Of the URL, policy and profile: where its attempts, deliveries and replays are found.
        endpoint_id: String,
        /// What happened.
        event_type: String,
        /// Your own name for it.
        event_id: Option<String>,
        /// Where it goes.
        url: String,
        /// What is sent.
        payload: Json,
        /// How far it is.
        status: DispatchStatus,
        /// How often it was tried.
        attempts: u32,
        /// How often it may be tried; `None` where the policy counts time and not attempts.
        max_attempts: Option<u32>,
        /// The status of the last answer.
        last_status_code: Option<u16>,
        /// Why the last attempt failed.
        last_error: Option<String>,
        /// When it was last tried.
        last_attempt_at: Option<Timestamp>,
        /// When it was accepted.
        created_at: Timestamp,
        /// When it ended.
        completed_at: Option<Timestamp>,
        /// Nothing goes out before.
        deliver_at: Option<Timestamp>,
    }
}

input! {
    /// Which dispatches.
    DispatchFilter {
        /// That are so far.
        status: Option<DispatchStatus>,
        /// Accepted before.
        before: Option<Timestamp>,
        /// Accepted after.
        after: Option<Timestamp>,
    }
}

/// The direct dispatches of an application.
#[derive(Clone, Debug)]
pub struct Dispatches {
    app: App,
}

impl App {
    /// Its direct dispatches.
    #[must_use]
    pub fn dispatches(&self) -> Dispatches {
        Dispatches { app: self.clone() }
    }
}

impl Dispatches {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app.id, "dispatch"], more].concat()
    }

    /// Sends one. When this returns it is on the server's disk.
    pub async fn send(&self, dispatch: &NewDispatch) -> Result<Dispatch, Error> {
        Call::post(&self.path(&[])).json(dispatch).answer(&self.app.client).await
    }

    /// Shows one.
    pub async fn get(&self, id: &str) -> Result<Dispatch, Error> {
        Call::get(&self.path(&[id])).answer(&self.app.client).await
    }

    /// A page of them.
    pub fn list(&self) -> Listing<Dispatch, DispatchFilter> {
        Listing::new(&self.app.client, &self.path(&[]))
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Dispatch, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// What signs those that have no secret of their own.
    pub async fn secret(&self) -> Result<SigningSecret, Error> {
        Call::get(&self.path(&["secret"])).answer(&self.app.client).await
    }
}
