//! What a source is, and what came in through it.

use crate::Secret;
use aldaba_api::words;
use aldaba_api::{Timestamp, answer, input};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
