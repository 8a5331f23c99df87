//! How far messages are at endpoints: the destinations of a message, the messages of an endpoint.

use crate::api::endpoints::AppEndpoint;
use crate::api::messages::AppMessage;
use crate::listing::Listing;
use aldaba_api::{Destination, EndpointMessage, Status, Timestamp, input};

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
