use crate::after_commit::Actions;
use bytes::Bytes;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use std::fmt::{self, Display};
use std::future::Future;

/// An event with a verified signature.
#[derive(Clone)]
pub struct Event {
    /// The sender's id of the event; each copy has the same id.
    pub id: String,
    /// The type of the event; empty if the sender names none.
    pub event_type: String,
    /// The exact bytes of the body.
    pub body: Bytes,
    /// All headers of the request.
    pub headers: HeaderMap,
    pub(crate) actions: Actions,
}

impl Event {
    /// Builds an event without verification, for example to test a ledger.
    pub fn new(
        id: impl Into<String>,
        event_type: impl Into<String>,
        body: impl Into<Bytes>,
        headers: HeaderMap,
    ) -> Self {
        Self {
            id: id.into(),
            event_type: event_type.into(),
            body: body.into(),
            headers,
            actions: Actions::default(),
        }
    }

    /// The SHA-256 digest of the body.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.body).into()
    }

    /// Adds an action to run after the commit, such as sending a mail. It runs only if the event's effect was committed: not
    /// after a failed handler, and not for a duplicate. The answer does not wait for it; an error or a panic is logged and
    /// counted.
    ///
    /// Add it before the handler returns. An action that is added later does not run, and the log says so.
    ///
    /// It runs at most once. It does not run if the process is killed between the commit and the action, if the connection
    /// is lost during the commit, or if the commit takes longer than 60 s. What must happen belongs in the transaction: for
    /// example a row that a worker sends.
    pub fn after_commit<F, E>(&self, action: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        if !self.actions.add(action) {
            tracing::error!(
                event_id = self.id,
                "an action was added after its event had ended; it does not run"
            );
        }
    }
}

impl fmt::Debug for Event {
    // Headers and body may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
