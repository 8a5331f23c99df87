//! Whoever hands something in waits for the store for so long, and no longer: one who hangs learns nothing, and has given up
//! before the store answers.

use crate::Engine;
use crate::intake::SendError;
use std::time::Duration;

impl Engine {
    /// Waits for some work of the store as long as [`Options::patience`](crate::Options::patience) says, as for a message.
    /// What had been handed to the store by then is on its way, and nothing calls it back.
    pub async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, SendError> {
        within(self.patience(), work).await
    }
}

/// [`SendError::Late`]: that was not long enough. `None`: it is.
pub(crate) async fn within<T>(
    patience: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, SendError> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, work).await.map_err(|_| SendError::Late),
        None => Ok(work.await),
    }
}
