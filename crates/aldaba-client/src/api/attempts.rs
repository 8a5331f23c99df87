//! Attempts: every request that was made for a message, and what came of it.

use crate::Error;
use crate::api::endpoints::AppEndpoint;
use crate::api::messages::AppMessage;
use crate::call::Call;
use crate::listing::Listing;
use aldaba_api::{Attempt, AttemptCount, AttemptHeaders, Resent, Status, Timestamp, input};

input! {
    /// Which attempts.
    AttemptFilter {
        /// That ended so.
        status: Option<Status>,
        /// With an answer of this class: 100, 200, 300, 400, 500; 0 for none.
        #[serde(rename = "status_code_class")]
        status_code_class: Option<u16>,
        /// Of messages with this channel.
        channel: Option<String>,
        /// Of messages with this tag.
        tag: Option<String>,
        /// Of messages of one of these types.
        #[serde(rename = "event_types")]
        event_types: Option<Vec<String>>,
        /// Made before.
        before: Option<Timestamp>,
        /// Made after.
        after: Option<Timestamp>,
        /// Whether bodies of answers are shown; yes, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
        /// Whether messages are shown, without payloads; no, if not given.
        #[serde(rename = "with_msg")]
        with_msg: Option<bool>,
        /// Of a message's attempts: only those at this endpoint.
        #[serde(rename = "endpoint_id")]
        endpoint_id: Option<String>,
    }
}

impl AppMessage {
    /// The attempts for it, newest first.
    pub fn attempts(&self) -> Listing<Attempt, AttemptFilter> {
        Listing::new(&self.client, &["app", &self.app, "attempt", "msg", &self.id])
    }

    /// The same, asked for as older clients do.
    pub fn attempts_of_old(&self) -> Listing<Attempt, AttemptFilter> {
        Listing::new(&self.client, &self.path(&["attempt"]))
    }

    /// The attempts for it at one endpoint, newest first.
    pub fn attempts_at(&self, endpoint: &str) -> Listing<Attempt, AttemptFilter> {
        Listing::new(&self.client, &self.path(&["endpoint", endpoint, "attempt"]))
    }

    /// One attempt.
    pub async fn attempt(&self, id: &str) -> Result<Attempt, Error> {
        Call::get(&self.path(&["attempt", id])).answer(&self.client).await
    }

    /// What an attempt carried.
    pub async fn attempt_headers(&self, id: &str) -> Result<AttemptHeaders, Error> {
        Call::get(&self.path(&["attempt", id, "headers"])).answer(&self.client).await
    }

    /// Deletes what an attempt's receiver answered.
    pub async fn expunge_attempt(&self, id: &str) -> Result<(), Error> {
        Call::delete(&self.path(&["attempt", id, "content"])).done(&self.client).await
    }

    /// Sends it to an endpoint once more, now. A repeat after a lost answer sends nothing more; while the first is
    /// still being sent it is a 409.
    pub async fn resend(&self, endpoint: &str) -> Result<Resent, Error> {
        Call::post(&self.path(&["endpoint", endpoint, "resend"])).answer(&self.client).await
    }
}

impl AppEndpoint {
    /// The attempts at it, newest first.
    pub fn attempts(&self) -> Listing<Attempt, AttemptFilter> {
        Listing::new(&self.client, &["app", &self.app, "attempt", "endpoint", &self.id])
    }

    /// How many there are, up to 10,000.
    pub async fn count_attempts(&self, filter: &AttemptFilter) -> Result<AttemptCount, Error> {
        let path = ["app", &self.app, "attempt", "endpoint", &self.id, "count"];
        // A count knows nothing of what a list shows.
        let filter = AttemptFilter { with_content: None, with_msg: None, ..filter.clone() };
        Call::get(&path).query_of(&filter).answer(&self.client).await
    }
}
