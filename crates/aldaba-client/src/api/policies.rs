//! Policies: when a delivery is tried again, and when it is given up.

use crate::call::Call;
use crate::listing::Page;
use crate::{Client, Error};
use aldaba_api::{NewPolicy, Policy, Previewed, input};

input! {
    /// What a policy is to show.
    Preview {
        /// For how long the receiver refuses connections, such as `90s`; for ever, if not given.
        outage: Option<String>,
        /// Of chance.
        seed: Option<u64>,
    }
}

/// The policies.
#[derive(Clone, Debug)]
pub struct Policies {
    client: Client,
}

impl Client {
    /// The policies, built in and of your own.
    #[must_use]
    pub fn policies(&self) -> Policies {
        Policies { client: self.clone() }
    }
}

impl Policies {
    /// All of them.
    pub async fn list(&self) -> Result<Vec<Policy>, Error> {
        let page: Page<Policy> = Call::get(&["policy"]).answer(&self.client).await?;
        Ok(page.data)
    }

    /// Makes one. Not tried again after an answer was lost: what it made would be in its own way.
    pub async fn create(&self, new: &NewPolicy) -> Result<Policy, Error> {
        Call::post(&["policy"]).json(new).only_once().answer(&self.client).await
    }

    /// Shows one.
    pub async fn get(&self, name: &str) -> Result<Policy, Error> {
        Call::get(&["policy", name]).answer(&self.client).await
    }

    /// Makes one of your own what is given, or makes it.
    pub async fn update(&self, policy: &NewPolicy) -> Result<Policy, Error> {
        Call::put(&["policy", &policy.name]).json(policy).answer(&self.client).await
    }

    /// Deletes one that no endpoint names.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        Call::delete(&["policy", name]).done(&self.client).await
    }

    /// What it would do.
    pub async fn preview(&self, name: &str, preview: &Preview) -> Result<Previewed, Error> {
        Call::get(&["policy", name, "preview"]).query_of(preview).answer(&self.client).await
    }
}
