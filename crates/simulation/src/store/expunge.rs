//! What somebody wants to be forgotten. Payloads stay on the disk, for the checks; nobody else can read them.

use super::disk::Disk;
use aldaba_delivery::{AppId, AttemptId, MessageId};
use aldaba_store::{Attempt, Changed, Message};
use bytes::Bytes;

impl Disk {
    pub(super) fn expunge_message(&mut self, app: AppId, message: MessageId) -> Changed {
        let Some(row) = self.messages.get_mut(&(app, message)) else { return Changed::NotFound };
        match std::mem::replace(&mut row.expunged, true) {
            true => Changed::Unchanged,
            false => Changed::Done { removed: Vec::new() },
        }
    }

    pub(super) fn expunge_attempt(&mut self, message: MessageId, attempt: AttemptId) -> Changed {
        let found = self.attempts.get_mut(&attempt).filter(|row| row.message == message);
        let Some(row) = found else { return Changed::NotFound };
        if row.response == Attempt::EXPUNGED {
            return Changed::Unchanged;
        }
        row.response = Bytes::from_static(Attempt::EXPUNGED);
        Changed::Done { removed: Vec::new() }
    }
}

/// A message as it can be read.
pub(super) fn readable(message: &Message) -> Message {
    let mut readable = message.clone();
    if readable.expunged {
        readable.content.payload = Bytes::new();
        readable.content.sealed_headers = None;
    }
    readable
}
