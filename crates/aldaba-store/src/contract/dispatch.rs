//! What was sent to an address, and to no endpoint that somebody has made.

use crate::operations::dispatch;
use crate::{DeliveryState, DeliveryView, ListPage, ListRange, Message};
use aldaba_delivery::{AppId, MessageId};

/// Why something was dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchKind {
    /// Somebody gave the address.
    ByAddress,
    /// A job has ended.
    AsJob,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchState {
    /// An attempt is to come.
    Pending,
    Delivered,
    /// It ended without success.
    Failed,
}

impl DispatchState {
    pub fn of(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Waiting { .. } => Self::Pending,
            DeliveryState::Delivered { .. } => Self::Delivered,
            DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => Self::Failed,
        }
    }
}

/// What an application has dispatched, by the ids of the messages.
#[derive(Clone, Debug)]
pub struct DispatchesQuery {
    pub app: AppId,
    pub how: DispatchKind,
    /// Only of this job.
    pub job: Option<String>,
    /// `None`: all.
    pub state: Option<DispatchState>,
    pub part: ListRange<MessageId>,
    /// The page ends early when its payloads and headers have more bytes than this.
    pub bytes: usize,
}

impl DispatchesQuery {
    pub fn wants(&self, state: DeliveryState) -> bool {
        self.state.is_none_or(|wanted| wanted == DispatchState::of(state))
    }
}

/// One of them, with all that is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    pub delivery: DeliveryView,
    pub message: Message,
    /// Without credentials.
    pub url: String,
    pub policy: String,
}

contract! {
    pub trait Dispatches {
        reads {
            read dispatches(query: DispatchesQuery) -> ListPage<Dispatch, MessageId>
                = |reading| dispatch::list(reading, &query);

            /// `None`: there is no such message, or it was not dispatched.
            read dispatch(app: AppId, message: MessageId) -> Option<Dispatch>
                = |reading| dispatch::one(reading, app, message);
        }
    }
}
