//! Sources: inbound doors for the webhooks of other senders.

use crate::api::source_types::SourceEventFilter;
use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error};
use aldaba_api::{
    Endpoint, EndpointHeaders, EndpointUpdate, IngestUrl, NewEndpoint, NewSource, RotateSecret, SetHeaders,
    SigningSecret, Source, SourceEvent, SourcePatch, SourceRefusal,
};
use futures_util::Stream;

/// The sources of an organization.
#[derive(Clone, Debug)]
pub struct Sources {
    client: Client,
}

/// One source, by its id or uid.
#[derive(Clone, Debug)]
pub struct OneSource {
    client: Client,
    id: String,
}

/// An endpoint that a source forwards to, by its id or uid.
#[derive(Clone, Debug)]
pub struct SourceEndpoint {
    source: OneSource,
    id: String,
}

impl Client {
    /// The organization's sources.
    #[must_use]
    pub fn sources(&self) -> Sources {
        Sources { client: self.clone() }
    }

    /// One of them, by its id or uid.
    #[must_use]
    pub fn source(&self, id: impl Into<String>) -> OneSource {
        OneSource { client: self.clone(), id: id.into() }
    }
}

const PATH: [&str; 2] = ["ingest", "source"];

impl Sources {
    /// Makes one, with the application that has its endpoints.
    pub async fn create(&self, new: &NewSource) -> Result<Source, Error> {
        Call::post(&PATH).json(new).answer(&self.client).await
    }

    /// A page of them.
    pub fn list(&self) -> Listing<Source, Ordered> {
        Listing::new(&self.client, &PATH)
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Source, Error>> + Send + Unpin + use<> {
        self.list().all()
    }
}

impl OneSource {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&PATH[..], &[self.id.as_str()], more].concat()
    }

    /// Shows it.
    pub async fn get(&self) -> Result<Source, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Makes it what is given, or makes it.
    pub async fn update(&self, update: &NewSource) -> Result<Source, Error> {
        Call::put(&self.path(&[])).json(update).answer(&self.client).await
    }

    /// Changes only what is given.
    pub async fn patch(&self, patch: &SourcePatch) -> Result<Source, Error> {
        Call::patch(&self.path(&[])).json(patch).answer(&self.client).await
    }

    /// Deletes it, with its application and endpoints.
    pub async fn delete(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.client).await
    }

    /// Makes another URL for the sender; the present one counts for 48 hours.
    pub async fn rotate_token(&self) -> Result<IngestUrl, Error> {
        Call::post(&self.path(&["token", "rotate"])).answer(&self.client).await
    }

    /// What came in, newest first.
    pub fn events(&self) -> Listing<SourceEvent, SourceEventFilter> {
        Listing::new(&self.client, &self.path(&["event"]))
    }

    /// One of them, by what its sender calls it or by the id of its message.
    pub async fn event(&self, id: &str) -> Result<SourceEvent, Error> {
        Call::get(&self.path(&["event", id])).answer(&self.client).await
    }

    /// The last requests that were not taken, newest first.
    pub fn refusals(&self) -> Listing<SourceRefusal, Ordered> {
        Listing::new(&self.client, &self.path(&["log"]))
    }

    /// The endpoints that it forwards to.
    pub fn endpoints(&self) -> Listing<Endpoint, Ordered> {
        Listing::new(&self.client, &self.path(&["endpoint"]))
    }

    /// Makes one.
    pub async fn create_endpoint(&self, new: &NewEndpoint) -> Result<Endpoint, Error> {
        Call::post(&self.path(&["endpoint"])).json(new).answer(&self.client).await
    }

    /// One of them, by its id or uid.
    #[must_use]
    pub fn endpoint(&self, id: impl Into<String>) -> SourceEndpoint {
        SourceEndpoint { source: self.clone(), id: id.into() }
    }
}

impl SourceEndpoint {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.source.path(&[&["endpoint", self.id.as_str()], more].concat())
    }

    /// Shows it.
    pub async fn get(&self) -> Result<Endpoint, Error> {
        Call::get(&self.path(&[])).answer(&self.source.client).await
    }

    /// Makes it what is given, or makes it.
    pub async fn update(&self, update: &EndpointUpdate) -> Result<Endpoint, Error> {
        Call::put(&self.path(&[])).json(update).answer(&self.source.client).await
    }

    /// Deletes it.
    pub async fn delete(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.source.client).await
    }

    /// The headers that its requests carry.
    pub async fn headers(&self) -> Result<EndpointHeaders, Error> {
        Call::get(&self.path(&["headers"])).answer(&self.source.client).await
    }

    /// Its requests carry these, and no others of its own.
    pub async fn set_headers(&self, headers: &SetHeaders) -> Result<(), Error> {
        Call::put(&self.path(&["headers"])).json(headers).done(&self.source.client).await
    }

    /// What its requests are signed with.
    pub async fn secret(&self) -> Result<SigningSecret, Error> {
        Call::get(&self.path(&["secret"])).answer(&self.source.client).await
    }

    /// Signs with another one from now on.
    pub async fn rotate_secret(&self, rotate: &RotateSecret) -> Result<SigningSecret, Error> {
        Call::post(&self.path(&["secret", "rotate"])).json(rotate).answer(&self.source.client).await
    }
}
