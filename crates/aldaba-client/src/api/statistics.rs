//! How many attempts there were.

use crate::Error;
use crate::api::applications::App;
use crate::call::Call;
use aldaba_api::{AttemptStats, Timestamp, input};

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
