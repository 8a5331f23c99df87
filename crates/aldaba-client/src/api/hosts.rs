//! Hosts that look down, and are held back.

use crate::call::Call;
use crate::listing::Listing;
use crate::{Client, Error};
use aldaba_api::{Host, Released};
use futures_util::Stream;

/// The hosts that are held back.
#[derive(Clone, Debug)]
pub struct Hosts {
    client: Client,
}

impl Client {
    /// The hosts that are held back.
    #[must_use]
    pub fn hosts(&self) -> Hosts {
        Hosts { client: self.clone() }
    }
}

impl Hosts {
    /// A page of them.
    pub fn list(&self) -> Listing<Host> {
        Listing::new(&self.client, &["host"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Host, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Lets requests to one go at once. `origin` is its scheme, host and port.
    pub async fn release(&self, origin: &str) -> Result<Released, Error> {
        Call::post(&["host", origin, "release"]).answer(&self.client).await
    }
}
