//! API keys.

use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error};
use aldaba_api::{ApiKey, ApiKeyPatch, CreatedApiKey, NewApiKey};
use futures_util::Stream;

/// The API keys of an organization.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    client: Client,
}

impl Client {
    /// The API keys.
    #[must_use]
    pub fn api_keys(&self) -> ApiKeys {
        ApiKeys { client: self.clone() }
    }
}

impl ApiKeys {
    /// A page of them.
    pub fn list(&self) -> Listing<ApiKey, Ordered> {
        Listing::new(&self.client, &["api-key"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<ApiKey, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Makes one, and shows it once. If the answer is lost on its way, a 409 says what to do.
    pub async fn create(&self, new: &NewApiKey) -> Result<CreatedApiKey, Error> {
        Call::post(&["api-key"]).json(new).answer(&self.client).await
    }

    /// Shows one, by its id or prefix.
    pub async fn get(&self, id: &str) -> Result<ApiKey, Error> {
        Call::get(&["api-key", id]).answer(&self.client).await
    }

    /// Gives one another name.
    pub async fn rename(&self, id: &str, name: impl Into<String>) -> Result<ApiKey, Error> {
        let body = ApiKeyPatch { name: name.into() };
        Call::patch(&["api-key", id]).json(&body).answer(&self.client).await
    }

    /// Ends one at once.
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        Call::delete(&["api-key", id]).done(&self.client).await
    }
}
