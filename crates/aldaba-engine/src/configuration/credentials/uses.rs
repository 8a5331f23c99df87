//! Writes when keys were last used: rarely, and never on the way of a request.

use super::Keys;
use crate::housekeeping::background::{StoreClosed, Task};
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const INTERVAL: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(crate) struct Uses {
    pub(crate) keys: Keys,
    pub(crate) store: Arc<dyn Store>,
}

impl Task for Uses {
    const NAME: &'static str = "key-uses";

    async fn run(&mut self) -> StoreClosed {
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.write(false).await {
                Err(Error::Closed) => return StoreClosed,
                // They are written the next time.
                Err(error) => tracing::debug!(%error, "cannot note when keys were last used"),
                Ok(()) => {}
            }
        }
    }
}

impl Uses {
    /// `all`: also those that could wait.
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
