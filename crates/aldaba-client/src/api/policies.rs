//! Policies: when a delivery is tried again, and when it is given up.

use crate::call::Call;
use crate::listing::Page;
use crate::{Client, Error};
use aldaba_api::{Previewed, Set, answer, input};
use serde_json::{Value, json};

input! {
    /// A policy of your own. Only name and schedule are required; docs/policies.md says what each part may be.
    NewPolicy {
        /// By which endpoints ask for it.
        name: String,
        /// When to try again.
        schedule: Value,
        /// What chance adds.
        jitter: Option<Value>,
        /// `attempts`, `stopAfter`.
        limit: Option<Value>,
        /// `connect`, `answer`, `total`.
        timeouts: Option<Value>,
        /// Statuses that are a success.
        success: Option<Vec<String>>,
        /// Statuses that no retry mends.
        rejects: Option<Vec<String>>,
        /// What a redirect is.
        redirects: Option<Value>,
        /// An answer that is not HTTP ends the delivery.
        malformed_rejects: Option<bool>,
        /// A 410 turns the endpoint off.
        gone_disables: Option<bool>,
        /// Which answers may say when to try again; cleared: none.
        retry_after: Set<Value>,
        /// When a host is held back.
        gate: Option<Value>,
        /// When the endpoint fails.
        endpoint_fails: Option<Value>,
        /// When a failed endpoint is looked at again; cleared: never.
        probe: Set<Value>,
        /// How long what has ended is kept.
        retention: Option<Value>,
    }
}

impl NewPolicy {
    /// With delays such as `10s`, `5m`, `1h`: one attempt more than there are delays.
    pub fn with_delays(name: impl Into<String>, delays: &[&str]) -> Self {
        let schedule = json!({"type": "list", "delays": delays});
        Self { name: name.into(), schedule, ..Self::default() }
    }

    /// With delays that grow from `base` by `factor` up to `cap`.
    pub fn exponential(name: impl Into<String>, base: &str, factor: u32, cap: &str) -> Self {
        let schedule = json!({"type": "exponential", "base": base, "factor": factor, "cap": cap});
        Self { name: name.into(), schedule, ..Self::default() }
    }
}

answer! {
    /// A policy.
    Policy {
        /// By which endpoints ask for it.
        name: String,
        /// It cannot be changed.
        built_in: bool,
        /// When to try again.
        schedule: Value,
        /// What chance adds.
        jitter: Value,
        /// `attempts`, `stopAfter`.
        limit: Value,
        /// `connect`, `answer`, `total`.
        timeouts: Value,
        /// Statuses that are a success.
        success: Vec<String>,
        /// Statuses that no retry mends.
        rejects: Vec<String>,
        /// What a redirect is.
        redirects: Value,
        /// An answer that is not HTTP ends the delivery.
        malformed_rejects: bool,
        /// A 410 turns the endpoint off.
        gone_disables: bool,
        /// Which answers may say when to try again.
        retry_after: Value,
        /// When a host is held back.
        gate: Value,
        /// When the endpoint fails.
        endpoint_fails: Value,
        /// When a failed endpoint is looked at again.
        probe: Option<Value>,
        /// How long what has ended is kept.
        retention: Value,
    }
}

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
