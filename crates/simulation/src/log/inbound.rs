//! What happened at the inbound doors, and to them.

use super::Step;
use aldaba_delivery::{AppId, MessageId, SourceId, Timestamp};
use aldaba_store::Seq;
use bytes::Bytes;

/// One request to a source, as its sender saw it.
#[derive(Clone, Debug)]
pub struct InboundRequest {
    pub step: Step,
    pub at: Timestamp,
    pub source: usize,
    /// What its sender calls the event, where that has names.
    pub id: Option<String>,
    /// As our names are.
    pub event_type: String,
    pub body: Bytes,
    /// Which of the source's keys shows that it is the sender; `None`: none does.
    pub key: Option<usize>,
    /// To a URL that is no longer the newest.
    pub old_url: bool,
    /// A header that only this request has, and that goes out with the event.
    pub label: String,
    /// `None`: the server died before it answered.
    pub heard: Option<Heard>,
    /// Rounds of the event that had failed when it was sent, and that a repeat is to open again.
    pub failed: Vec<Seq>,
}

/// What the sender heard.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    pub step: Step,
    pub at: Timestamp,
    pub said: Said,
    /// The event was on disk at that moment.
    pub on_disk: bool,
    /// Whether those that had failed when it was sent are still all that there is of it.
    pub still_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// 200. `None`: it does not say as what.
    New(Option<MessageId>),
    /// 200, `duplicate`.
    Duplicate(MessageId),
    /// 200, `reopened`.
    Reopened(MessageId),
    /// 200, `ignored`.
    Ignored,
    /// 401.
    NotVerified,
    /// 404.
    NoSource,
    /// 409.
    OtherBody(MessageId),
    /// 503 or 507; nothing was stored.
    NotNow,
    /// 503: nobody knows whether it is stored yet.
    TookLong,
    /// Nothing: the sender has hung up.
    Nothing,
}

impl Said {
    /// Whether the sender takes it for safe.
    pub fn is_taken(self) -> bool {
        matches!(self, Self::New(_) | Self::Duplicate(_) | Self::Reopened(_))
    }

    /// Whether the event may be stored all the same.
    pub fn leaves_open(self) -> bool {
        matches!(self, Self::TookLong | Self::Nothing)
    }
}

/// A change of a source that reached the disk.
#[derive(Clone, Debug)]
pub struct SourceCommit {
    pub at: Timestamp,
    pub source: SourceId,
    pub app: AppId,
    pub action: SourceAction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAction {
    /// Made or changed; its name says what it is now.
    Is(String),
    Rotated,
    Deleted,
}
