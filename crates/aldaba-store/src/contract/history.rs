//! What is read about the past.

use crate::operations::{attempt, delivery, message, organizations};
use crate::{
    AttemptFilter, BoundedCount, EndpointMessage, EndpointMessagesQuery, ListPage, ListRange, Message,
    MessagesQuery, PendingDelivery, ResourceKey, Seq,
};
use aldaba_delivery::{AppId, AttemptId, EndpointId, FailureKind, MessageId, Reason, SkipReason, Timestamp};
use bytes::Bytes;
use std::time::Duration;

/// A part of a list: `limit` items on the far side of `after`, in the list's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<Id> {
    pub after: Option<Id>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Why a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    Scheduled,
    /// Somebody has asked for this one attempt. The policy does not count it.
    Manual,
    /// The first of a round that a replay has opened. To its policy it is one as any other.
    Replay,
}

impl Trigger {
    /// Whether it uses up one of the attempts that the policy allows.
    pub fn counts(self) -> bool {
        self != Self::Manual
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub id: AttemptId,
    pub seq: Seq,
    pub message: MessageId,
    pub endpoint: EndpointId,
    pub started_at: Timestamp,
    pub duration: Duration,
    pub status_code: Option<u16>,
    pub failure: Option<FailureKind>,
    pub error: String,
    pub response: Bytes,
    pub trigger: Trigger,
    pub success: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptScope {
    Endpoint(EndpointId),
    Message(MessageId),
    /// Of one delivery, which is one of that message.
    Delivery(MessageId, Seq),
}

#[derive(Clone, Debug)]
pub struct AttemptsQuery {
    pub scope: AttemptScope,
    pub filter: AttemptFilter,
    pub part: ListRange<AttemptId>,
    /// Whether what came back is wanted; else it is empty.
    pub responses: bool,
}

impl AttemptsQuery {
    /// A page of all attempts, with what came back.
    pub fn all(scope: AttemptScope, page: Page<AttemptId>, order: Order) -> Self {
        let (filter, part) = (AttemptFilter::default(), ListRange::page(page, order));
        Self { scope, filter, part, responses: true }
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    Waiting {
        due_at: Timestamp,
    },
    Delivered {
        at: Timestamp,
    },
    Dead {
        at: Timestamp,
        reason: Reason,
    },
    /// Never to be sent.
    Skipped {
        at: Timestamp,
        reason: SkipReason,
    },
}

impl DeliveryState {
    /// Why it ended without success.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Dead { reason, .. } => Some(reason),
            Self::Waiting { .. } | Self::Delivered { .. } | Self::Skipped { .. } => None,
        }
    }

    pub fn settled_at(self) -> Option<Timestamp> {
        match self {
            Self::Waiting { .. } => None,
            Self::Delivered { at } | Self::Dead { at, .. } | Self::Skipped { at, .. } => Some(at),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryStatus {
    pub seq: Seq,
    pub endpoint: EndpointId,
    pub message: MessageId,
    pub attempts: u32,
    pub clock_start: Timestamp,
    /// A replay has opened it.
    pub replayed: bool,
    /// How many retries were planned.
    pub retries: u32,
    /// As in [`PendingDelivery`].
    pub sequence: Option<Seq>,
    pub state: DeliveryState,
}

impl DeliveryStatus {
    /// Whether its endpoint was on when the message came.
    pub fn was_to_be_sent(&self) -> bool {
        !matches!(self.state, DeliveryState::Skipped { .. })
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.state, DeliveryState::Dead { .. })
    }

    /// How it waits, if it does.
    pub fn waiting(&self) -> Option<PendingDelivery> {
        let DeliveryState::Waiting { due_at } = self.state else { return None };
        let Self { seq, message, attempts, clock_start, replayed, sequence, .. } = *self;
        Some(PendingDelivery { seq, message, due_at, attempts, clock_start, replayed, sequence })
    }
}

contract! {
    pub trait History {
        reads {
            /// By id or event id.
            read message(app: AppId, key: ResourceKey) -> Option<Message>
                = |reading| message::find(reading, app, &key);

            /// Newest first when descending.
            walk messages(query: MessagesQuery) -> ListPage<Message, MessageId>
                = |reading, slice| message::list(reading, slice, &query);

            /// Those of these messages that are there, without their payloads.
            read bare_messages(app: AppId, messages: Vec<MessageId>) -> Vec<Message>
                = |reading| message::all_bare(reading, app, &messages);

            walk attempts(query: AttemptsQuery) -> ListPage<Attempt, AttemptId>
                = |reading, slice| attempt::list(reading, slice, &query);

            /// How many attempts a query is about, up to the limit of its page.
            walk count_attempts(query: AttemptsQuery) -> BoundedCount
                = |reading, slice| attempt::count(reading, slice, &query);

            /// One attempt of a message.
            read attempt(message: MessageId, attempt: AttemptId) -> Option<Attempt>
                = |reading| attempt::one(reading, message, attempt);

            /// In the order of the messages.
            walk endpoint_messages(query: EndpointMessagesQuery) -> ListPage<EndpointMessage, MessageId>
                = |reading, slice| message::of_endpoint(reading, slice, &query);

            /// The deliveries of one message, in the order of their numbers.
            read deliveries(message: MessageId) -> Vec<DeliveryStatus>
                = |reading| delivery::of_message(reading, message);

            /// How many deliveries wait, in all.
            read waiting() -> u64 = |reading| organizations::total_waiting(reading);
        }
    }
}
