//! Alerts: what fires, what has been resolved, and the rules.

use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;

answer! {
    /// An alert, from when it fires until it is resolved.
    Alert {
        /// Its id.
        id: String,
        /// `firing` or `resolved`.
        state: String,
        /// Which rule.
        rule: String,
        /// `server`, `organization` or `endpoint`.
        scope: String,
        /// `warning` or `critical`.
        severity: String,
        /// What is wrong, in a few words.
        title: String,
        /// What to do.
        what_to_do: String,
        /// What was measured when it fired.
        value: f64,
        /// What the limit was then.
        threshold: f64,
        /// `>` or `<`: on which side of the threshold a value is bad.
        comparison: String,
        /// The application of the endpoint that it is about.
        app_id: Option<String>,
        /// The endpoint that it is about.
        endpoint_id: Option<String>,
        /// When it fired.
        fired_at: Timestamp,
        /// When it was resolved.
        resolved_at: Option<Timestamp>,
        /// When somebody has taken note of it.
        acknowledged_at: Option<Timestamp>,
        /// Who that was.
        acknowledged_by: Option<String>,
    }
}

answer! {
    /// The rules in force.
    AlertRules {
        /// The rules.
        data: Vec<AlertRule>,
        /// How often they are judged.
        interval_seconds: u64,
    }
}

answer! {
    /// A rule with its limits.
    AlertRule {
        /// Its name.
        rule: String,
        /// `false`: the configuration turns it off.
        enabled: bool,
        /// `built-in` or `configuration`: where its limits come from.
        source: String,
        /// What it is judged for.
        scopes: Vec<String>,
        /// `warning` or `critical`.
        severity: String,
        /// What is wrong, in a few words.
        title: String,
        /// What is measured.
        meaning: String,
        /// What to do.
        what_to_do: String,
        /// The metric that has the value for the whole server.
        metric: Option<String>,
        /// `ratio`, `number`, `seconds` or `bytes`.
        unit: String,
        /// `>` or `<`: on which side of the threshold a value is bad.
        comparison: String,
        /// The threshold.
        threshold: Option<f64>,
        /// An alert ends when the value is no longer beyond this one.
        resolve: Option<f64>,
        /// For how long the value must be bad, such as `1m`.
        r#for: Option<String>,
        /// What a rate is over, such as `5m`.
        window: Option<String>,
    }
}

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
