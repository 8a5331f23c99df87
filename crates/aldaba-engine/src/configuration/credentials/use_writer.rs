//! Writes the last use of API keys: rarely, and never within a request.

use super::ApiKeys;
use crate::housekeeping::background::{StoreClosed, Task};
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const KEY_USE_WRITE_INTERVAL: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(crate) struct KeyUseWriter {
    pub(crate) keys: ApiKeys,
    pub(crate) store: Arc<dyn Store>,
}

impl Task for KeyUseWriter {
    const NAME: &'static str = "key-uses";

    async fn run(&mut self) -> StoreClosed {
        loop {
            tokio::time::sleep(KEY_USE_WRITE_INTERVAL).await;
            match self.write(false).await {
                Err(Error::Closed) => return StoreClosed,
                // The next run writes them.
                Err(error) => tracing::debug!(%error, "cannot store the last use of API keys"),
                Ok(()) => {}
            }
        }
    }
}

impl KeyUseWriter {
    /// Writes the uses that are due. `all`: also those that could wait.
    pub(crate) async fn write(&self, all: bool) -> Result<(), Error> {
        let uses = self.keys.unwritten(all);
        if uses.is_empty() {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
        self.store.change(Change::NoteKeyUses { uses: uses.clone() }, None, done);
        answered.await.map_err(|_| Error::Closed)??;
        self.keys.written(&uses);
        Ok(())
    }
}
