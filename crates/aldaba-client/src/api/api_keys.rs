//! API keys.

use crate::call::Call;
use crate::listing::{Listing, Ordered};
use crate::{Client, Error, Secret};
use aldaba_api::words;
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;

words! {
    /// What a key may do.
    Scope {
        /// Everything.
        Admin = "admin",
        /// Messages, and nothing else.
        Send = "send",
        /// Everything but changes and secrets.
        Read = "read",
    }
}

input! {
    /// A new API key.
    NewApiKey {
        /// For people.
        name: String,
        /// What it may do.
        scope: Scope,
        /// The id or uid of the one application that it is for; all, if not given.
        app_id: Option<String>,
        /// From then on it counts no longer; never, if not given.
        expires_at: Option<Timestamp>,
    }
}

impl NewApiKey {
    /// For all applications, for ever.
    pub fn new(name: impl Into<String>, scope: Scope) -> Self {
        Self { name: name.into(), scope, ..Self::default() }
    }
}

answer! {
    /// An API key, without what must be kept to oneself.
    ApiKey {
        /// Its id.
        id: String,
        /// For people.
        name: String,
        /// What the key begins with, after `aldaba_`.
        prefix: String,
        /// What it may do.
        scope: Scope,
        /// The one application that it is for.
        app_id: Option<String>,
        /// When it was made.
        created_at: Timestamp,
        /// From then on it counts no longer.
        expires_at: Option<Timestamp>,
        /// To about an hour.
        last_used_at: Option<Timestamp>,
    }
}

answer! {
    /// An API key that was just made.
    CreatedApiKey {
        /// Its id.
        id: String,
        /// For people.
        name: String,
        /// What the key begins with, after `aldaba_`.
        prefix: String,
        /// What it may do.
        scope: Scope,
        /// The one application that it is for.
        app_id: Option<String>,
        /// When it was made.
        created_at: Timestamp,
        /// From then on it counts no longer.
        expires_at: Option<Timestamp>,
        /// To about an hour.
        last_used_at: Option<Timestamp>,
        /// The key. Nobody can read it again.
        key: Secret,
    }
}

input! {
    /// What is to change about a key.
    ApiKeyPatch {
        /// For people.
        name: String,
    }
}

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
