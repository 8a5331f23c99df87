//! Direct dispatch: a webhook to a URL that is no endpoint.

use crate::Error;
use crate::api::applications::App;
use crate::call::Call;
use crate::listing::Listing;
use aldaba_api::{Dispatch, DispatchStatus, NewDispatch, SigningSecret, Timestamp, input};
use futures_util::Stream;

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
