//! Hosts that look down, and are held back.

use crate::call::Call;
use crate::listing::Listing;
use crate::{Client, Error};
use aldaba_api::{Timestamp, answer};
use futures_util::Stream;

answer! {
    /// A host that is held back.
    Host {
        /// Scheme, host and port.
        origin: String,
        /// For whom: `host` (all applications of the organization) or `application`.
        scope: String,
        /// Which application.
        application_id: Option<String>,
        /// Since when.
        since: Option<Timestamp>,
        /// Until when.
        until: Option<Timestamp>,
        /// Why.
        why: String,
        /// Failures in a row.
        failures: u32,
        /// The hold is over, and one request is on its way to find out more.
        probing: bool,
        /// Endpoints that wait for it.
        lanes: u64,
        /// Deliveries that wait for it.
        deliveries: u64,
    }
}

answer! {
    /// For whom a host was held back.
    HostScope {
        /// `host` (all applications of the organization) or `application`.
        scope: String,
        /// Which application.
        application_id: Option<String>,
    }
}

answer! {
    /// A host that was released.
    Released {
        /// Scheme, host and port.
        origin: String,
        /// For whom.
        released: Vec<HostScope>,
    }
}

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
