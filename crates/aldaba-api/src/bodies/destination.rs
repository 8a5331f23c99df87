//! How far messages are at endpoints: the destinations of a message, the messages of an endpoint.

use super::attempt::Status;
#[cfg(feature = "server")]
use super::{attempt::StatusWords, message::Message};
#[cfg(feature = "server")]
use crate::read::{TypeField, moment};
use crate::{Json, Timestamp, response};
use std::collections::BTreeMap;

response! {
    ($)
    /// What is shown of a delivery's retries where something else is listed.
    Retries "RetriesOut" of RetriesView {
        /// Retries that were planned: 1 after the first failure. Null where there is no delivery, here and below.
        nullable retry_count: u32;
        /// When it is tried again, once it was tried.
        nullable next_retry_at: Timestamp = moment();
        /// Of the newest attempt.
        nullable status_code: u16;
        /// How long the newest attempt took.
        nullable response_duration_ms: u64;
        /// The final reason for people; null unless it is dead.
        nullable reason_text: String;
    }
    each retries_fields;
}

response! {
    /// An endpoint, and how far a message is there.
    Destination "DestinationOut" of DestinationView with { retries: Retries as retries_fields; } {
        /// The endpoint's id.
        required id: String;
        /// Your own name for it.
        nullable uid: String;
        /// Where requests go.
        required url: String;
        /// For people.
        required description: String;
        /// Nothing is sent to it.
        required disabled: bool;
        /// A number of your own.
        required version: u32;
        /// Only messages of these types.
        nullable event_types: Vec<String>;
        /// The same, for older clients.
        nullable filter_types: Vec<String>;
        /// Only messages with one of these channels.
        nullable channels: Vec<String>;
        /// Requests a second at most.
        nullable throttle_rate: u32;
        /// The same, for older clients.
        nullable rate_limit: u32;
        /// When it was made.
        required created_at: Timestamp = moment();
        /// When it was last changed.
        required updated_at: Timestamp = moment();
        /// How far; absent where the message does not go to the endpoint.
        omitted status: Status = TypeField::<u16>::new();
        /// The same as a word.
        omitted status_text: String;
        /// When it is tried next.
        nullable next_attempt: Timestamp = moment();
        /// As of deliveries. Of endpoints that the message does not go to: `event_type_not_subscribed`,
        /// `channel_not_subscribed`, `filtered`, `subscription_changed`, `endpoint_newer` or `for_another_endpoint`.
        required reason: String;
        /// Why it is so, in words.
        required explanation: String;
        /// The delivery.
        nullable delivery_id: String;
    }
}

response! {
    /// A message, and how far it is at an endpoint.
    EndpointMessage "EndpointMessageOut" of EndpointMessageView with {
        message: Message as message_fields;
        status: StatusWords as status_fields;
        retries: Retries as retries_fields;
    } {
        /// When it is tried next; absent where that is not to come.
        omitted next_attempt: Timestamp = moment();
    }
}
