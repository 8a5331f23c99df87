//! Whether mails are queued, and who is told that there are some.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};

/// How long a stop waits for the answer of a mail server.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// What stages that queue mails know of the queue. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct MailQueue {
    /// How long a mail about an endpoint waits for others. `None`: no mail server is configured, and nothing is queued.
    pub(crate) delay: Option<Duration>,
    pub(crate) pending: Arc<Notify>,
    /// Held while a mail server has a mail, until that is written.
    pub(crate) sending: Arc<Mutex<()>>,
}

impl MailQueue {
    pub(crate) fn new(delay: Option<Duration>) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Waits for the mail that is on its way, but not for long: without an answer it is sent again after the next start.
    pub(crate) async fn drained(&self, limit: Duration) {
        if tokio::time::timeout(limit.min(DRAIN_TIMEOUT), self.sending.lock()).await.is_err() {
            tracing::warn!("a mail was still on its way; it is sent again after the next start");
        }
    }
}
