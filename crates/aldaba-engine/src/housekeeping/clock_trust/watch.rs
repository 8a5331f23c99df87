//! Keeps the record of the clock on disk.

use super::{CLOCK_SETTING, ClockRecord, ClockTrust};
use crate::housekeeping::background::{StoreClosed, Task};
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

#[derive(Clone)]
pub(crate) struct ClockWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) trust: ClockTrust,
    pub(crate) interval: Duration,
}

impl Task for ClockWatch {
    const NAME: &'static str = "clock-watch";

    async fn run(&mut self) -> StoreClosed {
        loop {
            // At once, too: a process that is killed soon must leave its record.
            match self.write().await {
                Err(Error::Closed) => return StoreClosed,
                // The next one tells as much.
                Err(error) => tracing::debug!(%error, "cannot note what the clock shows"),
                Ok(()) => {}
            }
            tokio::select! {
                biased;
                () = self.trust.leapt() => {}
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }
}

impl ClockWatch {
    /// What the last run has left.
    pub(crate) async fn read(store: &dyn Store) -> Result<Option<ClockRecord>, Error> {
        Ok(store.setting(CLOCK_SETTING).await?.and_then(|bytes| ClockRecord::from_bytes(&bytes)))
    }

    pub(crate) async fn write(&self) -> Result<(), Error> {
        let Some(record) = self.trust.look() else { return Ok(()) };
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
        let value = record.to_bytes();
        self.store.change(Change::PutSetting { name: CLOCK_SETTING, value }, None, done);
        answered.await.map_err(|_| Error::Closed)?.map(drop)
    }
}
