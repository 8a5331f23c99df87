//! Whether mails are queued, and who is told that there are some.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What stages that queue mails know of the queue. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct MailQueue {
    /// How long a mail about an endpoint waits for others. `None`: no mail server is configured, and nothing is queued.
    pub(crate) delay: Option<Duration>,
    pub(crate) pending: Arc<Notify>,
}

impl MailQueue {
    pub(crate) fn new(delay: Option<Duration>) -> Self {
        Self { delay, pending: Arc::default() }
    }
}
