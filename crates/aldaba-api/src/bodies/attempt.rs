//! Attempts: every request that was made for a message, and what came of it.

use super::message::Message;
#[cfg(feature = "server")]
use crate::read::{TypeField, moment};
use crate::{Timestamp, numbers, response};
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

response! {
    ($)
    /// Statuses as the API names them. An attempt is a success or a failure; a message that waits for its next attempt is
    /// being sent.
    StatusWords "Status" of StatusView {
        /// How it ended, or how far it is.
        required status: Status = TypeField::<u16>::new();
        /// The same as a word.
        required status_text: String;
    }
    each status_fields;
}

response! {
    /// An attempt.
    Attempt "AttemptOut" of AttemptView with { status: StatusWords as status_fields; } {
        /// Such as `atmpt_…`.
        required id: String;
        /// The message.
        required msg_id: String;
        /// The endpoint.
        required endpoint_id: String;
        /// Where the request went.
        required url: String;
        /// The body of the answer, as far as it is kept.
        required response: String;
        /// The status of the answer; 0 where there was none.
        required response_status_code: u16;
        /// How long it took.
        required response_duration_ms: u64;
        /// Why it failed, in words; null for a success. Every timeout reads `Request timeout`.
        nullable error: String;
        /// Which part of the request took too long, where the error is a timeout.
        nullable error_detail: String;
        /// 0: it was its turn; 1: made by hand, or the first that a replay has made.
        required trigger_type: Trigger = TypeField::<u16>::new();
        /// When.
        required timestamp: Timestamp = moment();
        /// The message, where it was asked for, without its payload.
        omitted msg: Message;
    }
}

response! {
    /// What an attempt carried. Headers are not kept with an attempt.
    AttemptHeaders "AttemptHeadersOut" of AttemptHeadersView {
        /// As they follow from the attempt, its message and how its endpoint is set up now. Where that was changed since,
        /// or its secret rotated, they may differ from what was sent; the signature of a deleted payload is not known.
        required sent_headers: BTreeMap<String, String>;
        /// Always null: they are not kept.
        nullable response_headers: Value = TypeField::<Vec<Vec<String>>>::new();
        /// The names of headers whose values are not shown.
        required sensitive: Vec<String>;
    }
}

response! {
    /// How many attempts there are.
    AttemptCount "AttemptCountOut" of AttemptCountView {
        /// So many.
        required count: u64;
        /// Counting was given up; there are at least so many.
        required approximated: bool;
    }
}

response! {
    /// Attempts at an endpoint by status. One that is on its way is no attempt yet, so that there are none but successes and failures.
    EndpointStats "EndpointStatsOut" of EndpointStatsView {
        /// Delivered.
        required success: u64;
        /// Waiting.
        required pending: u64;
        /// On their way.
        required sending: u64;
        /// Ended without success.
        required fail: u64;
        /// Discarded.
        required canceled: u64;
    }
}

response! {
    /// Attempts of an application in a span of time. Its names are not in the usual spelling; clients know them so.
    AttemptStats "ApplicationStatsOut" of AttemptStatsView {
        /// The same for each event type.
        required by_event_type ["by_event_type"]: BTreeMap<String, EventTypeStats>;
        /// Delivered.
        required total_success ["total_success"]: u64;
        /// Failed.
        required total_failure ["total_failure"]: u64;
        /// Discarded.
        required total_canceled ["total_canceled"]: u64;
        /// The beginning of the first hour that is counted.
        required since: Timestamp = moment();
        /// The end of the last one.
        required until: Timestamp = moment();
    }
}

response! {
    /// Attempts of an event type.
    EventTypeStats "EventTypeStatsOut" of EventTypeStatsView {
        /// Delivered.
        required success: u64;
        /// Failed.
        required failure: u64;
        /// Discarded.
        required canceled: u64;
    }
}
