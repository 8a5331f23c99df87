//! Actions after the commit, such as sending a mail. The answer does not wait for them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt::{self, Display};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The actions that the handler of one event has added. All clones of the event share them, and an action may hold a
/// clone: they must be taken when the event ends, to break that cycle. After that none can be added.
#[derive(Clone)]
pub(crate) struct Actions(Arc<Mutex<Option<Vec<Action>>>>);

pub(crate) type Action = BoxFuture<'static, Result<(), String>>;

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Failed,
    Panicked,
    TookTooLong,
}

impl Actions {
    /// Adds an action. `false` if the event has ended.
    pub(crate) fn add<F, E>(&self, action: F) -> bool
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        let action = action.map(|result| result.map_err(|error| error.to_string())).boxed();
        let mut late = None;
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(actions) => actions.push(action),
            None => late = Some(action),
        }
        // Dropped without the lock: its destructor may call back.
        late.is_none()
    }

    pub(crate) fn take(&self) -> Vec<Action> {
        let actions = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        actions.unwrap_or_default()
    }
}

impl Default for Actions {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }
}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Actions")
    }
}

/// Runs one action until it ends or reaches its time limit.
pub(crate) async fn run(action: Action, event_id: &str, limit: Duration) -> Ending {
    match tokio::time::timeout(limit, AssertUnwindSafe(action).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Ending::Done,
        Ok(Ok(Err(error))) => {
            tracing::warn!(event_id, error, "an action after the commit failed; the event stays handled");
            Ending::Failed
        }
        Ok(Err(_)) => {
            tracing::error!(event_id, "an action after the commit panicked; the event stays handled");
            Ending::Panicked
        }
        Err(_) => {
            tracing::warn!(event_id, limit = ?limit, "an action after the commit exceeded its time limit and was cancelled; the event stays handled");
            Ending::TookTooLong
        }
    }
}

impl Ending {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TookTooLong => "timed_out",
        }
    }
}
