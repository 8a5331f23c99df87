//! How many attempts there were.

use crate::Error;
use crate::api::applications::App;
use crate::call::Call;
use aldaba_api::{Timestamp, answer, input};
use std::collections::BTreeMap;

impl App {
    /// How many attempts there were in a span of time.
    pub async fn attempt_stats(&self, filter: &AttemptStatsFilter) -> Result<AttemptStats, Error> {
        let path = ["app", &self.id, "stats", "attempts"];
        Call::get(&path).query_of(filter).answer(&self.client).await
    }
}

input! {
    /// Which attempts are counted.
    AttemptStatsFilter {
        /// From then on.
        since: Option<Timestamp>,
        /// Until then.
        until: Option<Timestamp>,
        /// Of messages of one of these types.
        #[serde(rename = "event_types")]
        event_types: Option<Vec<String>>,
    }
}

/// Attempts of an application in a span of time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct AttemptStats {
    /// The beginning of the first hour that is counted.
    pub since: Timestamp,
    /// The end of the last one.
    pub until: Timestamp,
    /// Delivered.
    pub total_success: u64,
    /// Failed.
    pub total_failure: u64,
    /// Discarded.
    pub total_canceled: u64,
    /// The same for each event type.
    pub by_event_type: BTreeMap<String, EventTypeStats>,
}

answer! {
    /// Attempts of an event type.
    EventTypeStats {
        /// Delivered.
        success: u64,
        /// Failed.
        failure: u64,
        /// Discarded.
        canceled: u64,
    }
}
