//! Alerts: what fires, what has been resolved, and the rules.

use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::{Alert, AlertRules, input};
use futures_util::Stream;

input! {
    /// Which alerts.
    AlertFilter {
        /// `firing` or `resolved`.
        state: Option<String>,
        /// Of this rule.
        rule: Option<String>,
        /// Which come first.
        order: Option<Order>,
    }
}

/// The alerts.
#[derive(Clone, Debug)]
pub struct Alerts {
    client: Client,
}

impl Client {
    /// The alerts.
    #[must_use]
    pub fn alerts(&self) -> Alerts {
        Alerts { client: self.clone() }
    }
}

impl Alerts {
    /// A page of them, newest first.
    pub fn list(&self) -> Listing<Alert, AlertFilter> {
        Listing::new(&self.client, &["alert"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Alert, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// One of them.
    pub async fn get(&self, alert: &str) -> Result<Alert, Error> {
        Call::get(&["alert", alert]).answer(&self.client).await
    }

    /// Says that somebody has taken note of it.
    pub async fn acknowledge(&self, alert: &str) -> Result<Alert, Error> {
        Call::post(&["alert", alert, "acknowledge"]).answer(&self.client).await
    }

    /// The rules in force.
    pub async fn rules(&self) -> Result<AlertRules, Error> {
        Call::get(&["alert", "rule"]).answer(&self.client).await
    }
}
