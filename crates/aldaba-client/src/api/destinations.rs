//! How far messages are at endpoints: the destinations of a message, the messages of an endpoint.

use crate::Json;
use crate::api::attempts::Status;
use crate::api::endpoints::AppEndpoint;
use crate::api::messages::AppMessage;
use crate::listing::Listing;
use aldaba_api::{Timestamp, answer, input};
use std::collections::BTreeMap;

impl AppMessage {
    /// Where it goes, and how far it is there.
    pub fn destinations(&self) -> Listing<Destination, DestinationFilter> {
        Listing::new(&self.client, &self.path(&["endpoint"]))
    }
}

impl AppEndpoint {
    /// The messages that it was sent, newest first.
    pub fn messages(&self) -> Listing<EndpointMessage, EndpointMessageFilter> {
        Listing::new(&self.client, &self.path(&["msg"]))
    }
}

input! {
    /// Where a message goes.
    DestinationFilter {
        /// Also those that it does not go to, and why.
        all: Option<bool>,
    }
}

answer! {
    /// An endpoint, and how far a message is there.
    Destination {
        /// The endpoint's id.
        id: String,
        /// Your own name for it.
        uid: Option<String>,
        /// Where requests go.
        url: String,
        /// For people.
        description: String,
        /// Nothing is sent to it.
        disabled: bool,
        /// A number of your own.
        version: u32,
        /// Only messages of these types.
        event_types: Option<Vec<String>>,
        /// The same, for older clients.
        filter_types: Option<Vec<String>>,
        /// Only messages with one of these channels.
        channels: Option<Vec<String>>,
        /// Requests a second at most.
        throttle_rate: Option<u32>,
        /// The same, for older clients.
        rate_limit: Option<u32>,
        /// When it was made.
        created_at: Timestamp,
        /// When it was last changed.
        updated_at: Timestamp,
        /// How far; absent where the message does not go there.
        status: Option<Status>,
        /// The same as a word.
        status_text: Option<String>,
        /// When it is tried next.
        next_attempt: Option<Timestamp>,
        /// Why it is so, as a word.
        reason: String,
        /// Why it is so, in words.
        explanation: String,
        /// Retries that were planned; `None` where there is no delivery.
        retry_count: Option<u32>,
        /// When it is tried again, once it was tried.
        next_retry_at: Option<Timestamp>,
        /// Of the newest attempt.
        status_code: Option<u16>,
        /// How long the newest attempt took.
        response_duration_ms: Option<u64>,
        /// Why it ended without success, in words.
        reason_text: Option<String>,
        /// The delivery.
        delivery_id: Option<String>,
    }
}

input! {
    /// Which messages of an endpoint.
    EndpointMessageFilter {
        /// That are so far.
        status: Option<Status>,
        /// Whether those that are on their way count apart from those that wait.
        #[serde(rename = "expanded_statuses")]
        expanded_statuses: Option<bool>,
        /// With this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Of one of these types.
        #[serde(rename = "event_types")]
        event_types: Option<Vec<String>>,
        /// Accepted before.
        before: Option<Timestamp>,
        /// Accepted after.
        after: Option<Timestamp>,
        /// Whether payloads are shown; yes, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
    }
}

answer! {
    /// A message, and how far it is at an endpoint.
    EndpointMessage {
        /// The message's id.
        id: String,
        /// What happened.
        event_type: String,
        /// Your own name for it.
        event_id: Option<String>,
        /// What is sent.
        payload: Json,
        /// When it was accepted.
        timestamp: Timestamp,
        /// Channels.
        channels: Option<Vec<String>>,
        /// To find it by.
        tags: Option<Vec<String>>,
        /// Nothing goes out before.
        deliver_at: Option<Timestamp>,
        /// For filters.
        headers: Option<BTreeMap<String, String>>,
        /// Of the payload's form.
        version: Option<String>,
        /// How far it is.
        status: Status,
        /// The same as a word.
        status_text: String,
        /// When it is tried next.
        next_attempt: Option<Timestamp>,
        /// Retries that were planned.
        retry_count: Option<u32>,
        /// When it is tried again, once it was tried.
        next_retry_at: Option<Timestamp>,
        /// Of the newest attempt.
        status_code: Option<u16>,
        /// How long the newest attempt took.
        response_duration_ms: Option<u64>,
        /// Why it ended without success, in words.
        reason_text: Option<String>,
    }
}
