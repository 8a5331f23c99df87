//! What endpoints are described by.

use crate::shape::{Metadata, Set, Timestamp, answer, input};
use crate::text::words;
use crate::{Json, Secret};
use std::collections::BTreeMap;

words! {
    /// What becomes of messages while an endpoint is disabled.
    WhenDisabled {
        /// It never gets them.
        Skip = "skip",
        /// It gets them when it is enabled.
        Hold = "hold",
    }
}

words! {
    /// In which order an endpoint gets its messages.
    Ordering {
        /// In none.
        None = "none",
        /// In the order in which they were accepted.
        Fifo = "fifo",
    }
}

words! {
    /// What an ordered endpoint does with a message that cannot be delivered.
    OnExhausted {
        /// It goes on with the next.
        Skip = "skip",
        /// It waits for its owner.
        Block = "block",
    }
}

words! {
    /// How an endpoint is.
    Condition {
        /// It gets its messages.
        Active = "active",
        /// It failed lately.
        Degraded = "degraded",
        /// It failed for so long that nothing is sent but a probe now and then.
        Failed = "failed",
        /// It was turned off by hand.
        Disabled = "disabled",
    }
}

words! {
    /// Whether an endpoint is sent to.
    EndpointStatus {
        /// It is, or somebody has turned it off.
        Active = "active",
        /// Its policy has given it up.
        Failed = "failed",
    }
}

input! {
    /// A new endpoint.
    NewEndpoint {
        /// Absolute, http or https; user and password in it become basic authentication.
        url: String,
        /// Your own name for it, that does wherever its id does.
        uid: Option<String>,
        /// For people.
        description: Option<String>,
        /// Only messages of these types; `None`: of all.
        event_types: Option<Vec<String>>,
        /// Only messages with one of these channels; `None`: all.
        channels: Option<Vec<String>>,
        /// Only messages that pass this filter.
        filter: Option<Json>,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
        /// Names and values of your own.
        metadata: Metadata,
        /// Of retries; `standard`, if not given.
        policy: Option<String>,
        /// Wire profile; the server's default, if not given.
        profile: Option<String>,
        /// `whsec_…` or `whsk_…`; one is made, if not given.
        secret: Option<Secret>,
        /// Requests a second at most.
        throttle_rate: Option<u32>,
        /// Nothing is sent to it.
        disabled: Option<bool>,
        /// What becomes of messages meanwhile; skipped, if not given.
        when_disabled: Option<WhenDisabled>,
        /// In none, if not given.
        ordering: Option<Ordering>,
        /// Of an ordered one.
        on_exhausted: Option<OnExhausted>,
        /// Offer HTTP/2 to the receiver (https only).
        http2: Option<bool>,
        /// A number of your own.
        version: Option<u32>,
    }
}

impl NewEndpoint {
    /// With a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

input! {
    /// All there is to say about an endpoint, but its secret and its headers. What is left out is as in a new one.
    EndpointUpdate {
        /// Absolute, http or https.
        url: String,
        /// Your own name for it.
        uid: Option<String>,
        /// For people.
        description: Option<String>,
        /// Only messages of these types; `None`: of all.
        event_types: Option<Vec<String>>,
        /// Only messages with one of these channels; `None`: all.
        channels: Option<Vec<String>>,
        /// Only messages that pass this filter.
        filter: Option<Json>,
        /// Names and values of your own.
        metadata: Metadata,
        /// Of retries.
        policy: Option<String>,
        /// Wire profile.
        profile: Option<String>,
        /// Requests a second at most.
        throttle_rate: Option<u32>,
        /// Nothing is sent to it.
        disabled: Option<bool>,
        /// What becomes of messages meanwhile.
        when_disabled: Option<WhenDisabled>,
        /// In which order it gets its messages.
        ordering: Option<Ordering>,
        /// Of an ordered one.
        on_exhausted: Option<OnExhausted>,
        /// Offer HTTP/2 to the receiver (https only).
        http2: Option<bool>,
        /// A number of your own.
        version: Option<u32>,
    }
}

impl EndpointUpdate {
    /// With a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

input! {
    /// What is to change about an endpoint.
    EndpointPatch {
        /// Absolute, http or https.
        url: Option<String>,
        /// Your own name for it.
        uid: Set<String>,
        /// For people.
        description: Option<String>,
        /// Only messages of these types.
        event_types: Set<Vec<String>>,
        /// Only messages with one of these channels.
        channels: Set<Vec<String>>,
        /// Only messages that pass this filter.
        filter: Set<Json>,
        /// All of them, in the place of what there was.
        metadata: Option<Metadata>,
        /// Of retries.
        policy: Option<String>,
        /// Wire profile.
        profile: Set<String>,
        /// Requests a second at most.
        throttle_rate: Set<u32>,
        /// Nothing is sent to it.
        disabled: Option<bool>,
        /// What becomes of messages meanwhile.
        when_disabled: Option<WhenDisabled>,
        /// In which order it gets its messages.
        ordering: Option<Ordering>,
        /// Of an ordered one.
        on_exhausted: Option<OnExhausted>,
        /// Offer HTTP/2 to the receiver (https only).
        http2: Option<bool>,
        /// A number of your own.
        version: Option<u32>,
    }
}

answer! {
    /// An endpoint.
    Endpoint {
        /// Such as `ep_…`.
        id: String,
        /// Your own name for it.
        uid: Option<String>,
        /// Where requests go.
        url: String,
        /// For people.
        description: String,
        /// Only messages of these types; `None`: of all.
        event_types: Option<Vec<String>>,
        /// The same, for older clients.
        filter_types: Option<Vec<String>>,
        /// Only messages with one of these channels; `None`: all.
        channels: Option<Vec<String>>,
        /// Only messages that pass this filter.
        filter: Option<Json>,
        /// Names and values of your own.
        metadata: Metadata,
        /// Of retries.
        policy: String,
        /// Wire profile; the server's default, if there is none.
        profile: Option<String>,
        /// Requests a second at most.
        throttle_rate: Option<u32>,
        /// The same, for older clients.
        rate_limit: Option<u32>,
        /// Nothing is sent to it.
        disabled: bool,
        /// What becomes of messages meanwhile.
        when_disabled: WhenDisabled,
        /// In which order it gets its messages.
        ordering: Ordering,
        /// Of an ordered one.
        on_exhausted: Option<OnExhausted>,
        /// A delivery of an ordered endpoint ended without success, and it waits for its owner.
        blocked: bool,
        /// HTTP/2 is offered to the receiver.
        http2: bool,
        /// A number of your own.
        version: u32,
        /// How it is.
        health: EndpointHealth,
        /// `Failed` while its health is, else `Active`.
        status: EndpointStatus,
        /// Failures since the last success.
        failure_count: u32,
        /// When it was made.
        created_at: Timestamp,
        /// When it was last changed.
        updated_at: Timestamp,
    }
}

answer! {
    /// How an endpoint is.
    EndpointHealth {
        /// In a word.
        status: Condition,
        /// In a sentence.
        text: String,
        /// Failures in a row.
        failure_count: u32,
        /// When the status last changed.
        since: Timestamp,
        /// Since when there was no success.
        failing_since: Option<Timestamp>,
        /// What happened last.
        last_error: Option<LastError>,
        /// When a failed one is looked at again.
        next_probe_at: Option<Timestamp>,
    }
}

answer! {
    /// What an endpoint failed with.
    LastError {
        /// In words.
        text: String,
        /// Of the answer, if there was one.
        status_code: Option<u16>,
        /// When.
        at: Timestamp,
    }
}

answer! {
    /// A change of an endpoint's condition.
    HealthChange {
        /// When.
        at: Timestamp,
        /// What it was.
        from: Condition,
        /// What it became.
        to: Condition,
        /// Why, in a word.
        reason: String,
        /// And in more words.
        detail: Option<String>,
    }
}
