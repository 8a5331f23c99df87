//! Operational webhooks: an organization's own endpoints, which are told what happens in Aldaba.

use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error};
use aldaba_api::{
    Endpoint, EndpointHeaders, EndpointUpdate, NewEndpoint, RotateSecret, SetHeaders, SigningSecret,
};
use futures_util::Stream;

/// The endpoints that are told what happens in Aldaba.
#[derive(Clone, Debug)]
pub struct OperationalEndpoints {
    client: Client,
}

/// One of them, by its id or uid.
#[derive(Clone, Debug)]
pub struct OperationalEndpoint {
    client: Client,
    id: String,
}

impl Client {
    /// The endpoints that are told what happens in Aldaba.
    #[must_use]
    pub fn operational_endpoints(&self) -> OperationalEndpoints {
        OperationalEndpoints { client: self.clone() }
    }

    /// One of them, by its id or uid.
    #[must_use]
    pub fn operational_endpoint(&self, id: impl Into<String>) -> OperationalEndpoint {
        OperationalEndpoint { client: self.clone(), id: id.into() }
    }
}

const PATH: [&str; 2] = ["operational-webhook", "endpoint"];

impl OperationalEndpoints {
    /// A page of them.
    pub fn list(&self) -> Listing<Endpoint, Ordered> {
        Listing::new(&self.client, &PATH)
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Endpoint, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Makes one.
    pub async fn create(&self, new: &NewEndpoint) -> Result<Endpoint, Error> {
        Call::post(&PATH).json(new).answer(&self.client).await
    }
}

impl OperationalEndpoint {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&PATH[..], &[self.id.as_str()], more].concat()
    }

    /// Shows it.
    pub async fn get(&self) -> Result<Endpoint, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Makes it what is given, or makes it.
    pub async fn update(&self, update: &EndpointUpdate) -> Result<Endpoint, Error> {
        Call::put(&self.path(&[])).json(update).answer(&self.client).await
    }

    /// Deletes it.
    pub async fn delete(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.client).await
    }

    /// The headers that its requests carry.
    pub async fn headers(&self) -> Result<EndpointHeaders, Error> {
        Call::get(&self.path(&["headers"])).answer(&self.client).await
    }

    /// Its requests carry these, and no others of its own.
    pub async fn set_headers(&self, headers: &SetHeaders) -> Result<(), Error> {
        Call::put(&self.path(&["headers"])).json(headers).done(&self.client).await
    }

    /// What its requests are signed with.
    pub async fn secret(&self) -> Result<SigningSecret, Error> {
        Call::get(&self.path(&["secret"])).answer(&self.client).await
    }

    /// Signs with another one from now on.
    pub async fn rotate_secret(&self, rotate: &RotateSecret) -> Result<SigningSecret, Error> {
        Call::post(&self.path(&["secret", "rotate"])).json(rotate).answer(&self.client).await
    }
}
