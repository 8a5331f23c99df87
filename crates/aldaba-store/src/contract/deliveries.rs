//! Deliveries as their owners see them: what waits, what has ended, and the dead letter.

use crate::operations::{delivery, delivery_list};
use crate::{AuditEntry, DeliveryState, DeliveryStatus, Order, Seq};
use aldaba_delivery::{AppId, AttemptId, EndpointId, FailureKind, MessageId, OrgId, Reason, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Which deliveries a list is made of, and thereby its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryList {
    Of(AppId, Phase),
    /// The dead letter of all applications of an organization that are not deleted.
    DeadLetter(OrgId),
}

impl DeliveryList {
    /// Whether the place can be one of this list.
    pub fn has(self, place: DeliveryPosition) -> bool {
        let by_message = matches!(self, Self::Of(_, phase) if phase.is_by_message());
        by_message == matches!(place, DeliveryPosition::Message(..))
    }
}

/// Where in its life a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In the order of acceptance.
    Any,
    /// What waits, in the order of the next attempts.
    Pending,
    /// What has ended, in the order of acceptance.
    Settled,
    Delivered,
    /// The dead letter, in the order of the endings. What was discarded is not in it, nor what ended
    /// because its endpoint was deleted.
    Dead,
}

impl Phase {
    /// Whether the list is in the order of acceptance.
    pub fn is_by_message(self) -> bool {
        matches!(self, Self::Any | Self::Settled | Self::Delivered)
    }

    /// Whether a delivery in this state is on the list, as far as its state can tell.
    pub fn has(self, state: DeliveryState) -> bool {
        match self {
            Self::Any => true,
            Self::Pending => matches!(state, DeliveryState::Waiting { .. }),
            Self::Settled => !matches!(state, DeliveryState::Waiting { .. }),
            Self::Delivered => matches!(state, DeliveryState::Delivered { .. }),
            Self::Dead => matches!(state, DeliveryState::Dead { .. }),
        }
    }
}

/// What a delivery must be like to be on a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub endpoint: Option<EndpointId>,
    pub event_type: Option<String>,
    pub reason: Option<Reason>,
    /// Only after this moment: of its end in a dead letter, else of its acceptance.
    pub after: Option<Timestamp>,
    /// Only before this moment.
    pub before: Option<Timestamp>,
}

impl DeliveryFilter {
    /// Whether the moment lies between the bounds.
    pub fn includes(&self, at: Timestamp) -> bool {
        self.after.is_none_or(|after| at > after) && self.before.is_none_or(|before| at < before)
    }
}

/// A place in a list. It stays one when its delivery is gone or has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryPosition {
    /// Lists in the order of acceptance.
    Message(MessageId, Seq),
    /// Lists by the moment of the next attempt, or of the end.
    Moment(Timestamp, Seq),
}

#[derive(Clone, Debug)]
pub struct DeliveriesQuery {
    pub list: DeliveryList,
    pub filter: DeliveryFilter,
    /// Only what lies beyond this place. One of another kind of list counts as none.
    pub from: Option<DeliveryPosition>,
    pub order: Order,
    pub limit: usize,
    /// How many deliveries to look at, at most: a filter that finds little must not walk for ever.
    pub walk: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveriesPage {
    pub found: Vec<(DeliveryPosition, DeliveryView)>,
    /// Where the walk was given up before the limit was reached. Others may follow.
    pub stopped: Option<DeliveryPosition>,
}

/// One delivery with what is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryView {
    pub status: DeliveryStatus,
    pub app: AppId,
    /// `None`: nobody knows it any more.
    pub event_type: Option<String>,
    /// When its message was accepted; to 4 ms once that is gone.
    pub created_at: Timestamp,
    pub last: Option<LastAttempt>,
    /// Which of its attempts has delivered it, counted from 1, those by hand with the others. `None`: none has, or it
    /// is not kept.
    pub delivered_by: Option<u32>,
    /// It is dead, and neither was it discarded nor had its endpoint been deleted.
    pub in_dead_letter: bool,
}

/// The newest attempt of a delivery, without what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAttempt {
    pub id: AttemptId,
    pub started_at: Timestamp,
    pub duration: Duration,
    pub status_code: Option<u16>,
    pub failure: Option<FailureKind>,
    pub error: String,
}

contract! {
    pub trait Deliveries {
        writes {
            /// Takes dead deliveries of an application out of the dead letter, and leaves their history to retention
            /// ([`crate::operations::Cutoff::discarded`]). How many there were that nobody had discarded; the entry for the audit log is
            /// written with that number, unless there were none.
            discard(app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>) -> usize
                = Discard(app, deliveries, audit);
        }
        reads {
            /// Those of the deliveries that are the application's, in the order asked for.
            read delivery_views(app: AppId, deliveries: Vec<Seq>) -> Vec<DeliveryView>
                = |reading| delivery::views(reading, app, &deliveries);

            read delivery_list(query: DeliveriesQuery) -> DeliveriesPage
                = |reading| delivery_list::list(reading, &query);
        }
    }
}
