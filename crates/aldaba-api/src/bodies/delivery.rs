//! Deliveries: a message on its way to one endpoint, and the dead letter.

use super::attempt::Attempt;
#[cfg(feature = "server")]
use crate::read::{choice, moment, name, size, text};
use crate::{Timestamp, request, response, words};

words! {
    /// How far a delivery is.
    DeliveryState {
        /// It waits, or is on its way.
        Pending = "pending",
        /// Its receiver has it.
        Delivered = "delivered",
        /// It ended without success.
        Dead = "dead",
        /// In filters: everything that has ended.
        History = "history",
    }
}

response! {
    /// A delivery.
    Delivery "DeliveryOut" of DeliveryView {
        /// Its id.
        required id: String;
        /// The application.
        required app_id: String;
        /// The endpoint.
        required endpoint_id: String;
        /// The message.
        required msg_id: String;
        /// The message's type.
        nullable event_type: String;
        /// How far it is.
        required state: DeliveryState = text();
        /// Why it is where it is. While it waits: `scheduled`, `due`, `in_flight`, `retry`, `throttled`,
        /// `application_throttled`, `in_order`, `host_busy`, `host_held`, `receiver_busy`, `paused`, `endpoint_failed`,
        /// `endpoint_blocked`, `endpoint_gone`, `endpoint_disabled` or `endpoint_deleted`. Of a dead one: `exhausted`, `rejected`, `stop_date`,
        /// `endpoint_gone`, `target_forbidden`, `cancelled`, `expired` or `payload_deleted`. Else `delivered`, or
        /// `endpoint_disabled` where it was not sent.
        required reason: String;
        /// The final reason for people; null unless it is dead.
        nullable reason_text: String;
        /// Why, in words.
        required explanation: String;
        /// Attempts that were made.
        required attempt_count: u32;
        /// Retries that were planned: 1 after the first failure.
        required retry_count: u32;
        /// When it is tried next.
        nullable next_attempt: Timestamp = moment();
        /// The same, once there has been an attempt.
        nullable next_retry_at: Timestamp = moment();
        /// When it is given up.
        nullable stop_date: Timestamp = moment();
        /// When it was last tried.
        nullable last_attempt_at: Timestamp = moment();
        /// Of the newest attempt.
        nullable status_code: u16;
        /// How long the newest attempt took.
        nullable response_duration_ms: u64;
        /// Why the newest attempt failed: every timeout reads `Request timeout`.
        nullable error: String;
        /// Which part of the request took too long, where the error is a timeout.
        nullable error_detail: String;
        /// When the message was accepted.
        required created_at: Timestamp = moment();
        /// When it ended.
        nullable settled_at: Timestamp = moment();
        /// It is dead, and was taken out of the dead letter; or its endpoint was deleted before it ended.
        required discarded: bool;
        /// The newest ones, only where one delivery is shown.
        omitted attempts: Vec<Attempt>;
    }
}

request! {
    /// Which pending deliveries of an endpoint are cancelled.
    CancelMessages "CancelIn" = {"createdBefore": "2025-01-31T12:00:00Z"} {
        /// Those of messages accepted before.
        required created_before: Timestamp = moment();
    }
}

request! {
    /// What is discarded.
    Discard "DiscardIn" = {"state": "dead", "eventType": "invoice.paid"} {
        /// `dead` (default) or `pending`.
        nullable state: DeliveryState = choice(&["dead", "pending"]);
        /// To this endpoint.
        nullable endpoint: String = text();
        /// Of this event type.
        nullable event_type: String = name().undescribed();
        /// That ended for this reason.
        nullable reason: String = text();
        /// Of messages accepted before.
        nullable before: Timestamp = moment();
        /// Of messages accepted after.
        nullable after: Timestamp = moment();
        /// Where to go on.
        nullable iterator: String = text();
    }
}

response! {
    /// What was discarded.
    Discarded "DiscardOut" of DiscardedView {
        /// So many.
        required discarded: u64 = size();
        /// Waiting ones that were being sent, and were left alone.
        required in_flight: u64 = size();
        /// Where to go on.
        nullable iterator: String;
        /// That was all.
        required done: bool;
    }
}
