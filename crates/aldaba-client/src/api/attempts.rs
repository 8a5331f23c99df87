//! Attempts: every request that was made for a message, and what came of it.

use crate::Error;
use crate::api::endpoints::AppEndpoint;
use crate::api::messages::{AppMessage, Message};
use crate::call::Call;
use crate::listing::Listing;
use aldaba_api::numbers;
use aldaba_api::{Timestamp, answer, input};
use serde_json::Value;
use std::collections::BTreeMap;

numbers! {
    /// How far a message is at an endpoint, or how an attempt ended.
    Status {
        /// Delivered.
        Success = 0,
        /// It waits.
        Pending = 1,
        /// It ended without success.
        Fail = 2,
        /// On its way.
        Sending = 3,
        /// Discarded.
        Canceled = 4,
    }
}

numbers! {
    /// Why an attempt was made.
    Trigger {
        /// It was its turn.
        Scheduled = 0,
        /// By hand, or the first that a replay has made.
        Manual = 1,
    }
}

answer! {
    /// An attempt.
    Attempt {
        /// Such as `atmpt_…`.
        id: String,
        /// The message.
        msg_id: String,
        /// The endpoint.
        endpoint_id: String,
        /// Where the request went.
        url: String,
        /// How it ended.
        status: Status,
        /// The same as a word.
        status_text: String,
        /// The body of the answer, as far as it is kept.
        response: String,
        /// The status of the answer; 0 where there was none.
        response_status_code: u16,
        /// How long it took.
        response_duration_ms: u64,
        /// Why it failed, in words.
        error: Option<String>,
        /// Which part of the request took too long, where the error is a timeout.
        error_detail: Option<String>,
        /// Why it was made.
        trigger_type: Trigger,
        /// When.
        timestamp: Timestamp,
        /// The message, where it was asked for, without its payload.
        msg: Option<Message>,
    }
}

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
        Call::get(&path).query_of(filter).answer(&self.client).await
    }
}

answer! {
    /// What was sent once more.
    Resent {
        /// The attempt that was made; `None` where it is still under way.
        attempt: Option<Attempt>,
    }
}

answer! {
    /// What an attempt carried.
    AttemptHeaders {
        /// As they follow from the attempt, its message and how its endpoint is set up now.
        sent_headers: BTreeMap<String, String>,
        /// The names of headers whose values are not shown.
        sensitive: Vec<String>,
        /// They are not kept.
        response_headers: Option<Value>,
    }
}

answer! {
    /// How many attempts there are.
    AttemptCount {
        /// So many.
        count: u64,
        /// Counting was given up; there are at least so many.
        approximated: bool,
    }
}
