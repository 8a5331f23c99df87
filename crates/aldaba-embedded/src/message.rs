use aldaba_delivery::{AttemptId, EndpointId, FailureKind, MessageId, Timestamp};
use aldaba_store::{
    Attempt as StoredAttempt, DeliveryState, DeliveryView, Message as StoredMessage, Trigger,
};
use bytes::Bytes;
use std::time::Duration;

/// An accepted event with its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The id, which receivers see as `webhook-id`.
    pub id: MessageId,
    /// The event type, such as `invoice.paid`.
    pub event_type: String,
    /// Your own name of the event.
    pub event_id: Option<String>,
    /// The bytes that are sent; empty if they were deleted.
    pub payload: Bytes,
    /// The time of acceptance.
    pub created_at: Timestamp,
    /// The time before which nothing is sent.
    pub deliver_at: Option<Timestamp>,
    /// One delivery for each matching endpoint, and more after a replay. Empty if no endpoint matched.
    pub deliveries: Vec<Delivery>,
}

/// A message on its way to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The id of the message.
    pub message: MessageId,
    /// The endpoint. The address of a dispatch has such an id too.
    pub endpoint: EndpointId,
    /// The event type of the message; `None` if the message is no longer kept.
    pub event_type: Option<String>,
    /// The state of the delivery.
    pub state: DeliveryState,
    /// The number of attempts that the policy counts; manual attempts are not counted.
    pub attempts: u32,
    /// The number of scheduled retries: 1 after the first failure.
    pub retries: u32,
    /// The status of the newest attempt, if there was an answer.
    pub last_status: Option<u16>,
    /// The error of the newest attempt.
    pub last_error: Option<String>,
    /// The start of the newest attempt.
    pub last_attempt_at: Option<Timestamp>,
}

/// One HTTP request of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The id of the attempt.
    pub id: AttemptId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The start of the attempt.
    pub started_at: Timestamp,
    /// The duration of the attempt.
    pub duration: Duration,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The kind of failure, if there was no answer.
    pub failure: Option<FailureKind>,
    /// The error; empty on success.
    pub error: String,
    /// The beginning of the answer's body.
    pub response: Bytes,
    /// Whether the receiver accepted the message.
    pub success: bool,
    /// Whether the attempt was made by [`Application::resend`](crate::Application::resend), or is the first of a
    /// recovery.
    pub by_hand: bool,
}

impl Message {
    /// Whether all deliveries have ended, with or without success.
    pub fn has_ended(&self) -> bool {
        self.deliveries.iter().all(Delivery::has_ended)
    }

    /// Whether all deliveries succeeded; `true` for a message without deliveries.
    pub fn is_delivered(&self) -> bool {
        self.deliveries.iter().all(Delivery::is_delivered)
    }

    pub(crate) fn new(stored: StoredMessage, deliveries: Vec<DeliveryView>) -> Self {
        Self {
            id: stored.id,
            event_type: stored.content.event_type.as_ref().to_owned(),
            event_id: stored.content.event_id.as_deref().map(Into::into),
            payload: stored.content.payload,
            created_at: stored.created_at,
            deliver_at: stored.deliver_at,
            deliveries: deliveries.into_iter().map(Delivery::from).collect(),
        }
    }
}

impl Delivery {
    /// Whether the delivery has ended, with or without success.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state, DeliveryState::Waiting { .. })
    }

    /// Whether the delivery succeeded.
    pub fn is_delivered(&self) -> bool {
        matches!(self.state, DeliveryState::Delivered { .. })
    }
}

impl From<DeliveryView> for Delivery {
    fn from(view: DeliveryView) -> Self {
        let (last_status, last_attempt_at) =
            view.last.as_ref().map_or((None, None), |last| (last.status_code, Some(last.started_at)));
        Self {
            message: view.status.message,
            endpoint: view.status.endpoint,
            event_type: view.event_type,
            state: view.status.state,
            attempts: view.status.attempts,
            retries: view.status.retries,
            last_status,
            last_error: view.last.map(|last| last.error).filter(|error| !error.is_empty()),
            last_attempt_at,
        }
    }
}

impl From<StoredAttempt> for Attempt {
    fn from(stored: StoredAttempt) -> Self {
        Self {
            id: stored.id,
            endpoint: stored.endpoint,
            started_at: stored.started_at,
            duration: stored.duration,
            status: stored.status_code,
            failure: stored.failure,
            error: stored.error,
            response: stored.response,
            success: stored.success,
            by_hand: stored.trigger != Trigger::Scheduled,
        }
    }
}
