//! What an export of an application reads, page by page.

use crate::operations::export;
use crate::{Attempt, DeliveryStatus, Message, Seq};
use aldaba_delivery::{AppId, AttemptId, MessageId};

/// Where an export stands among the messages of an application: behind what was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportCursor {
    /// Behind all of this message.
    Message(MessageId),
    /// Behind this delivery of a message.
    Delivery(MessageId, Seq),
    /// Behind this attempt of a message.
    Attempt(MessageId, Seq, AttemptId),
}

/// One thing of an export. The deliveries of a message follow it, and then its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exported {
    Message(Box<Message>),
    Delivery(DeliveryStatus),
    Attempt(Box<Attempt>),
}

#[derive(Clone, Copy, Debug)]
pub struct ExportQuery {
    pub app: AppId,
    /// Messages behind this one …
    pub from: ExportCursor,
    /// … up to this one.
    pub until: MessageId,
    /// Bytes of payloads and responses after which the page ends.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPage {
    pub items: Vec<Exported>,
    /// Where to go on; `None`: that is all.
    pub next: Option<ExportCursor>,
    /// The application was deleted since the export began: what there is of it may be incomplete.
    pub is_deleted: bool,
}

contract! {
    pub trait Exports {
        reads {
            /// The newest message of an application.
            read newest_message(app: AppId) -> Option<MessageId> = |reading| export::newest(reading, app);

            /// A page, which ends early where it takes long.
            walk export(query: ExportQuery) -> ExportPage = |reading, slice| export::page(reading, slice, &query);
        }
    }
}
