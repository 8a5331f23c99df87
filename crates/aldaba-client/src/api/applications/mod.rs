//! Applications: the senders, each with endpoints and messages of its own.

mod exports;

pub use exports::*;

use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error};
use aldaba_api::{AlertEmail, AlertEmailState, Application, ApplicationPatch, KeySet, NewApplication, Set};
use futures_util::Stream;

/// The applications of an organization.
#[derive(Clone, Debug)]
pub struct Applications {
    client: Client,
}

/// One application, by its id or uid. Nothing is asked until something is done with it.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) client: Client,
    pub(crate) id: String,
}

impl Client {
    /// The applications.
    #[must_use]
    pub fn applications(&self) -> Applications {
        Applications { client: self.clone() }
    }

    /// One application, by its id or uid.
    #[must_use]
    pub fn app(&self, id: impl Into<String>) -> App {
        App { client: self.clone(), id: id.into() }
    }
}

impl Applications {
    /// Makes one. A uid that another one has is a conflict.
    pub async fn create(&self, new: &NewApplication) -> Result<Application, Error> {
        Call::post(&["app"]).json(new).answer(&self.client).await
    }

    /// Makes one, or gives the one that has this uid.
    pub async fn get_or_create(&self, new: &NewApplication) -> Result<Application, Error> {
        Call::post(&["app"]).query("get_if_exists", &true).json(new).answer(&self.client).await
    }

    /// A page of them.
    pub fn list(&self) -> Listing<Application, Ordered> {
        Listing::new(&self.client, &["app"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Application, Error>> + Send + Unpin + use<> {
        self.list().all()
    }
}

impl App {
    /// Shows it.
    pub async fn get(&self) -> Result<Application, Error> {
        Call::get(&["app", &self.id]).answer(&self.client).await
    }

    /// Makes it what is given, or makes it.
    pub async fn update(&self, new: &NewApplication) -> Result<Application, Error> {
        Call::put(&["app", &self.id]).json(new).answer(&self.client).await
    }

    /// Changes only what is given.
    pub async fn patch(&self, patch: &ApplicationPatch) -> Result<Application, Error> {
        Call::patch(&["app", &self.id]).json(patch).answer(&self.client).await
    }

    /// Deletes it with its endpoints.
    pub async fn delete(&self) -> Result<(), Error> {
        Call::delete(&["app", &self.id]).done(&self.client).await
    }

    /// Where its people are told by mail that something is wrong; `None`: nowhere. The answer says whether the server can send
    /// mails.
    pub async fn set_alert_email(&self, email: Option<&str>) -> Result<AlertEmailState, Error> {
        let body = AlertEmail { email: email.map_or(Set::Clear, Set::to) };
        Call::patch(&["app", &self.id, "alert-email"]).json(&body).answer(&self.client).await
    }

    /// The public keys that its asymmetric endpoints are signed with. Everybody may ask, and so only by its id.
    pub async fn public_keys(&self) -> Result<KeySet, Error> {
        Call::get(&["app", &self.id, "jwks.json"]).answer(&self.client).await
    }
}
