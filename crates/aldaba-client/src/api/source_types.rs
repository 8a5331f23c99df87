//! What a source is, and what came in through it.

use crate::shape::{Metadata, Set, Timestamp, answer, input};
use crate::text::words;
use crate::{Json, Secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

input! {
    /// An inbound door.
    NewSource {
        /// For people.
        name: String,
        /// Your own name for it.
        uid: Option<String>,
        /// Who sends: `generic-webhook`, `github`, `stripe` and others.
        r#type: String,
        /// What the type needs: mostly `secret`.
        config: Option<Json>,
        /// Names and values of your own.
        metadata: Metadata,
        /// Where the id of an event is: `header:x-event-id`, `$.data.id` or `body-digest`.
        event_id_from: Option<Vec<String>>,
        /// Where the type of an event is.
        event_type_from: Option<Vec<String>>,
        /// Only events of these types.
        filter_types: Option<Vec<String>>,
        /// Only events with these headers.
        filter_headers: Option<Vec<HeaderCondition>>,
        /// The names of headers that go out as they came.
        forward_headers: Option<Vec<String>>,
        /// What the sender hears once an event is safe.
        answer: Option<SourceAnswer>,
        /// How far a signed time may be from now.
        tolerance_seconds: Option<u32>,
        /// How long an event id is remembered.
        duplicate_window_days: Option<u16>,
        /// What another body under the id of a former event is: `conflict` or `duplicate`.
        on_other_body: Option<String>,
    }
}

impl NewSource {
    /// A source without verification: anybody who knows its URL can send.
    pub fn generic(name: impl Into<String>) -> Self {
        Self { name: name.into(), r#type: "generic-webhook".into(), ..Self::default() }
    }

    /// One of a type whose sender signs with this secret.
    pub fn signed(name: impl Into<String>, kind: impl Into<String>, secret: &str) -> Self {
        let config = Some(serde_json::json!({ "secret": secret }).into());
        Self { r#type: kind.into(), config, ..Self::generic(name) }
    }
}

input! {
    /// What changes of a source.
    SourcePatch {
        /// For people.
        name: Option<String>,
        /// Your own name for it.
        uid: Set<String>,
        /// Another sender needs another `config`.
        r#type: Option<String>,
        /// In the place of all that it was.
        config: Option<Json>,
        /// Names and values of your own.
        metadata: Option<Metadata>,
        /// Where the id of an event is: `header:x-event-id`, `$.data.id` or `body-digest`.
        event_id_from: Set<Vec<String>>,
        /// Where the type of an event is.
        event_type_from: Set<Vec<String>>,
        /// Only events of these types.
        filter_types: Set<Vec<String>>,
        /// Only events with these headers.
        filter_headers: Set<Vec<HeaderCondition>>,
        /// The names of headers that go out as they came.
        forward_headers: Set<Vec<String>>,
        /// What the sender hears once an event is safe.
        answer: Set<SourceAnswer>,
        /// How far a signed time may be from now.
        tolerance_seconds: Set<u32>,
        /// How long an event id is remembered.
        duplicate_window_days: Set<u16>,
        /// What another body under the id of a former event is: `conflict` or `duplicate`.
        on_other_body: Set<String>,
    }
}

input! {
    /// A header that must be there.
    HeaderCondition {
        /// Its name.
        name: String,
        /// One of these; if not given, any.
        values: Option<Vec<String>>,
    }
}

input! {
    /// What a sender hears.
    SourceAnswer {
        /// 200 to 299.
        status: Option<u16>,
        /// Of the body.
        content_type: Option<String>,
        /// As it is sent.
        body: Option<String>,
    }
}

answer! {
    /// An inbound door.
    Source {
        /// Ours.
        id: String,
        /// Your own name for it.
        uid: Option<String>,
        /// For people.
        name: String,
        /// Who sends.
        r#type: String,
        /// Without what is secret.
        config: Json,
        /// Whether requests are verified.
        verified: bool,
        /// Where the sender sends to; `None` for callers who may not see secrets.
        ingest_url: Option<Secret>,
        /// The application that has its endpoints and messages.
        app_id: String,
        /// Names and values of your own.
        metadata: Metadata,
        /// Where the id of an event is: `header:x-event-id`, `$.data.id` or `body-digest`.
        event_id_from: Option<Vec<String>>,
        /// Where the type of an event is.
        event_type_from: Option<Vec<String>>,
        /// Only events of these types.
        filter_types: Option<Vec<String>>,
        /// Only events with these headers.
        filter_headers: Option<Vec<HeaderCondition>>,
        /// The names of headers that go out as they came.
        forward_headers: Option<Vec<String>>,
        /// What the sender hears once an event is safe.
        answer: Option<SourceAnswer>,
        /// How far a signed time may be from now.
        tolerance_seconds: Option<u32>,
        /// How long an event id is remembered.
        duplicate_window_days: u16,
        /// What another body under the id of a former event is: `conflict` or `duplicate`.
        on_other_body: String,
        /// What has come since the server began to count.
        counters: Option<SourceCounters>,
        /// When it was made.
        created_at: Timestamp,
        /// When it was last changed.
        updated_at: Timestamp,
    }
}

answer! {
    /// How often what came. They begin anew with the server.
    SourceCounters {
        /// When counting began.
        since: Timestamp,
        /// New events.
        received: u64,
        /// Repeats of former ones.
        duplicates: u64,
        /// Repeats of former ones that had failed, and are forwarded again.
        reopened: u64,
        /// What the source's filters did not want.
        ignored: u64,
        /// Another body under the id of a former event.
        conflicts: u64,
        /// All that was not taken.
        refused: u64,
        /// Questions whether this receiver is one.
        challenges: u64,
    }
}

answer! {
    /// The URL of a source.
    IngestUrl {
        /// The URL. Without verification, anybody who knows it can send.
        ingest_url: Secret,
    }
}

words! {
    /// How far an event has come.
    SourceEventStatus {
        /// An attempt is to come.
        Processing = "processing",
        /// Every endpoint has it; or there was none.
        Processed = "processed",
        /// No endpoint will try again, and one does not have it.
        Failed = "failed",
    }
}

answer! {
    /// An event that came in.
    SourceEvent {
        /// The message's id.
        id: String,
        /// What its sender calls it.
        event_id: Option<String>,
        /// What happened.
        event_type: String,
        /// How far it has come.
        status: SourceEventStatus,
        /// When it came.
        received_at: Timestamp,
        /// When every endpoint had it.
        processed_at: Option<Timestamp>,
        /// When it was given up.
        failed_at: Option<Timestamp>,
        /// Why.
        error: Option<String>,
        /// Endpoints that it goes, or went, to.
        deliveries: u64,
    }
}

input! {
    /// Which events.
    SourceEventFilter {
        /// That have come so far.
        status: Option<SourceEventStatus>,
        /// Received before.
        before: Option<Timestamp>,
        /// Received after.
        after: Option<Timestamp>,
    }
}

/// A request that a source did not take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceRefusal {
    /// Ours.
    pub id: String,
    /// The source's.
    pub source_id: String,
    /// What its sender was answered.
    pub status_code: u16,
    /// Why.
    pub error_text: String,
    /// Always empty.
    pub headers: BTreeMap<String, String>,
    /// Always empty.
    pub payload: String,
    /// When it came.
    pub created_at: Timestamp,
    /// The same.
    pub updated_at: Timestamp,
}
