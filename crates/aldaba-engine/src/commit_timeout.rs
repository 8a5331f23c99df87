//! Whoever hands something in waits for the store for so long, and no longer: one who hangs learns nothing, and has given up
//! before the store answers.

use crate::Engine;
use crate::intake::SendError;
use std::time::Duration;

impl Engine {
    /// Waits for some work of the store as long as [`Options::commit_timeout`](crate::Options::commit_timeout) says, as for a message.
    /// What had been handed to the store by then is on its way, and nothing calls it back.
    pub async fn within_commit_timeout<T>(&self, work: impl Future<Output = T>) -> Result<T, SendError> {
        within(self.commit_timeout(), work).await
    }
}

/// [`SendError::Late`]: that was not long enough. `None`: it is.
pub(crate) async fn within<T>(
    commit_timeout: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, SendError> {
    match commit_timeout {
        Some(commit_timeout) => tokio::time::timeout(commit_timeout, work).await.map_err(|_| SendError::Late),
        None => Ok(work.await),
    }
}
