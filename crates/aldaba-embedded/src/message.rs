use aldaba_delivery::{AttemptId, EndpointId, FailureKind, MessageId, Timestamp};
use aldaba_store::{
    Attempt as StoredAttempt, DeliveryState, DeliveryView, Message as StoredMessage, Trigger,
};
use bytes::Bytes;
use std::time::Duration;

/// An accepted event, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its id, which receivers see as `webhook-id`.
    pub id: MessageId,
    /// Such as `invoice.paid`.
    pub event_type: String,
    /// Your own name for it.
    pub event_id: Option<String>,
    /// The bytes that are sent; empty where they were deleted.
    pub payload: Bytes,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Nothing goes out before.
    pub deliver_at: Option<Timestamp>,
    /// One for each endpoint that it goes to; more where it was replayed. Empty: nobody wanted it.
    pub deliveries: Vec<Delivery>,
}

/// A message on its way to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The message.
    pub message: MessageId,
    /// Where it goes; the address of a dispatch has an id, too.
    pub endpoint: EndpointId,
    /// The message's; `None` where its content is not kept any more.
    pub event_type: Option<String>,
    /// How far it is.
    pub state: DeliveryState,
    /// Those of the policy; one by hand is not counted.
    pub attempts: u32,
    /// Retries that were planned: 1 after the first failure.
    pub retries: u32,
    /// Of the newest attempt: what came back, if anything did.
    pub last_status: Option<u16>,
    /// What was wrong with it, in words.
    pub last_error: Option<String>,
    /// When it began.
    pub last_attempt_at: Option<Timestamp>,
}

/// One request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Where the request went.
    pub endpoint: EndpointId,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// What came back, if anything did.
    pub status: Option<u16>,
    /// Where no answer came.
    pub failure: Option<FailureKind>,
    /// Empty: nothing was wrong.
    pub error: String,
    /// The beginning of what came back.
    pub response: Bytes,
    /// Whether the receiver took it.
    pub success: bool,
    /// Made by [`Application::resend`](crate::Application::resend), or the first that a recovery has made.
    pub by_hand: bool,
}

impl Message {
    /// Whether all of its deliveries have ended, well or not.
    pub fn has_ended(&self) -> bool {
        self.deliveries.iter().all(Delivery::has_ended)
    }

    /// Whether it has arrived everywhere. One that goes to nobody has.
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
    /// Whether it waits no more, well or not.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state, DeliveryState::Waiting { .. })
    }

    /// Whether it has arrived.
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
