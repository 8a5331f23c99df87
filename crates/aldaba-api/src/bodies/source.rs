//! Sources: inbound doors for the webhooks of other senders.

#[cfg(feature = "server")]
use crate::read::{bodies, body, choice, moment, number, object, short_strings, size, text, texts, uid};
use crate::{Json, Metadata, Secret, Timestamp, request, resource, response, words};
use std::collections::BTreeMap;

resource! {
    ($)
    new {
        /// A source: an inbound door, which takes in the webhooks of another sender.
        NewSource "SourceIn" = {
            "name": "Our repositories",
            "type": "github",
            "config": {"secret": "the secret that GitHub was given"},
        }
    }
    patch {
        /// Fields of a source that change; null clears one. Another `type` needs another `config`, which stands in the place of all
        /// that it was.
        SourcePatch "SourcePatch" = {"name": "All our repositories"}
    }
    shown {
        /// A source: an inbound door.
        Source "SourceOut" of SourceState
    }
    each source_fields;
    first {
        /// Such as `src_…`.
        required id: String = text();
    }
    fields {
        /// For people.
        own required name: String = text().chars(256).filled();
        /// Your own name for it.
        own nullable uid: String = uid("src_");
        /// Who sends: `generic-webhook`, `github`, `stripe` and others.
        own required r#type: String = text();
        /// What the type needs: mostly `secret`, or `secrets` where several count at once. It is shown without what is secret.
        own or_default config: Json = object();
        /// Names and values of your own.
        own map metadata: Metadata = short_strings();
        /// Where the id of an event is: `header:x-event-id`, `$.data.id` or `body-digest`; the first place that has one
        /// counts.
        own nullable event_id_from: Vec<String> = texts(10, text().length(MAX_VALUE_BYTES));
        /// Where the type of an event is.
        own nullable event_type_from: Vec<String> = texts(10, text().length(MAX_VALUE_BYTES));
        /// Only events of these types; others are acknowledged and forgotten.
        own nullable filter_types: Vec<String> = texts(100, text().length(MAX_VALUE_BYTES));
        /// Only events with these headers: all must be there, each with one of its values.
        own nullable filter_headers: Vec<HeaderCondition> = bodies(10);
        /// The names of headers that go out as they came; if not given, those that the sender is known by.
        own nullable forward_headers: Vec<String> = texts(50, text().length(MAX_VALUE_BYTES));
        /// What the sender hears once an event is safe.
        own nullable answer: SourceAnswer = body();
        /// How far a signed time may be from now; 300, if not given.
        own nullable tolerance_seconds: u32 = number(1, 86400);
        /// How long an event id is remembered; 30, if not given.
        own reset duplicate_window_days: u16 = number(1, 366).or(30);
        /// What another body under the id of a former event is: `conflict` (default; 409) or `duplicate`.
        own reset on_other_body: String = choice(&["conflict", "duplicate"]).asked();
    }
    once {}
    last {
        /// Whether requests are verified.
        required verified: bool;
        /// Where the sender sends to. Null for callers who may not see secrets.
        nullable ingest_url: Secret = text().shown("uri");
        /// The application that has its endpoints, messages and all that belongs to them.
        required app_id: String = text();
        /// What has come since the server began to count; null where nothing has. In memory alone: they begin anew with the
        /// server.
        nullable counters: SourceCounters;
        /// When it was made.
        required created_at: Timestamp = moment();
        /// When it was last changed.
        required updated_at: Timestamp = moment();
    }
}

/// Bytes of a value in the settings of a source.
#[cfg(feature = "server")]
pub const MAX_VALUE_BYTES: usize = 1024;

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

request! {
    /// A header that must be there.
    HeaderCondition "HeaderCondition" = {"name": "x-live", "values": ["1"]} {
        /// Its name.
        required name: String = text();
        /// One of these; if not given, any.
        nullable values: Vec<String> = texts(50, text().length(MAX_VALUE_BYTES));
    }
}

request! {
    /// What the sender hears once an event is safe.
    SourceAnswer "SourceAnswer" = {"status": 202} {
        /// 200, if not given.
        nullable status: u16 = number(200, 299);
        /// `text/plain; charset=utf-8`, if not given.
        nullable content_type: String = text().length(256);
        /// As it is sent.
        nullable body: String = text().length(4096);
    }
}

response! {
    /// How often what came. Kept in memory: they begin anew with the server.
    SourceCounters "SourceCountersOut" of SourceCountersView {
        /// When counting began.
        required since: Timestamp = moment();
        /// New events.
        required received: u64;
        /// Repeats of former ones.
        required duplicates: u64;
        /// Repeats of events that had failed; they are forwarded again.
        required reopened: u64;
        /// What the source's filters did not want.
        required ignored: u64;
        /// Another body under the id of a former event.
        required conflicts: u64;
        /// All that was not taken.
        required refused: u64;
        /// Questions whether this receiver is one.
        required challenges: u64;
    }
}

response! {
    /// The URL of a source.
    IngestUrl "RotateTokenOut" of IngestUrlView {
        /// Without verification, anybody who knows it can send.
        required ingest_url: Secret = text().shown("uri");
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

response! {
    /// An event that came in.
    SourceEvent "SourceEventOut" of SourceEventView {
        /// The message's.
        required id: String;
        /// What its sender calls it; null where that has no names for events.
        nullable event_id: String;
        /// What happened.
        required event_type: String;
        /// `processing` until every endpoint has it (`processed`) or none will try again (`failed`).
        required status: SourceEventStatus = text().pattern("^(processing|processed|failed)$");
        /// When it came.
        required received_at: Timestamp = moment();
        /// When every endpoint had it.
        nullable processed_at: Timestamp = moment();
        /// When it was given up.
        nullable failed_at: Timestamp = moment();
        /// Of the last attempt, or why there was none.
        nullable error: String;
        /// Endpoints that it goes, or went, to.
        required deliveries: u64 = size();
    }
}

response! {
    /// What the sender of an event hears. A source may have an answer of its own.
    TakenIn "ReceivedOut" of TakenInView {
        /// The event is safe on disk, came before, or is one that the source does not want.
        required received: bool;
        /// It was received before.
        omitted duplicate: bool;
        /// It was received before and could not be forwarded then; it is forwarded again.
        omitted reopened: bool;
        /// The source ignores such events.
        omitted ignored: bool;
    }
}

response! {
    /// A request that a source did not take. Kept in memory alone, the last 100 of a source: it begins anew with the server. Nothing of
    /// the request itself is kept, neither its headers nor its body.
    SourceRefusal "SourceLogOut" of SourceRefusalView {
        /// Ours.
        required id: String;
        /// The source's.
        required source_id ["source_id"]: String;
        /// What its sender was answered.
        required status_code ["status_code"]: u16;
        /// Why.
        required error_text ["error_text"]: String;
        /// Always empty.
        required headers: BTreeMap<String, String>;
        /// Always empty.
        required payload: String;
        /// When it came.
        required created_at ["created_at"]: Timestamp = moment();
        /// The same.
        required updated_at ["updated_at"]: Timestamp = moment();
    }
}
