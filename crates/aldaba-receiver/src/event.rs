use crate::after_commit::Actions;
use bytes::Bytes;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use std::fmt::{self, Display};
use std::future::Future;

/// An event whose signature was checked.
#[derive(Clone)]
pub struct Event {
    /// What its sender calls it, the same whenever it is sent again.
    pub id: String,
    /// Empty where the sender says nothing of it.
    pub event_type: String,
    /// The exact bytes that came.
    pub body: Bytes,
    /// All headers of the request.
    pub headers: HeaderMap,
    pub(crate) actions: Actions,
}

impl Event {
    /// An event made by hand, such as for the tests of a ledger. Whoever makes one answers for what it says.
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

    /// What tells its body from another one.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.body).into()
    }

    /// Leaves something for the time after the commit, such as a mail. It runs if the event's effect was committed, and
    /// only then: not where the handler fails, and not for a duplicate. The answer does not wait for it and does not
    /// depend on it; an error or a panic is logged and counted.
    ///
    /// It is left before the handler ends. What a task of its own leaves later does not run, and the log says so.
    ///
    /// It runs at most once: a process that is killed between the commit and the action does not come back to it, nor is
    /// there an action where nobody learns of the commit: the connection is lost, or it takes longer than 60 s. What must
    /// happen belongs into the transaction, such as a row that a worker sends off.
    pub fn after_commit<F, E>(&self, action: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        if !self.actions.add(action) {
            tracing::error!(
                event_id = self.id,
                "an action was left for after a commit when its event had ended; it does not run"
            );
        }
    }
}

impl fmt::Debug for Event {
    // Headers and body hold what belongs into no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
