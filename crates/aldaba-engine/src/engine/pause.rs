//! The pause after a restore: a server on a copy of its data would send again what it has delivered since the copy was made. So it
//! accepts and sends nothing until the operator resumes, however often it is started meanwhile.

use crate::housekeeping::ClockTrust;
use crate::scheduling::{Inbox, SchedulingCommand};
use aldaba_delivery::Timestamp;
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::{Notify, oneshot};

/// The name of the setting that keeps the [`PauseRecord`]. Empty: sending was resumed.
pub const PAUSE_SETTING: &str = "paused";

/// Nothing is paused.
const RUNNING: i64 = i64::MIN;

/// Why nothing is sent, as it is kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseRecord {
    /// When the backup was made that the data is from.
    pub backup_made_at: Timestamp,
}

impl PauseRecord {
    /// What is stored once sending was resumed.
    pub const RESUMED: &'static [u8] = b"";

    pub fn to_bytes(self) -> Vec<u8> {
        format!("backup {}", self.backup_made_at.millis()).into_bytes()
    }

    /// `None`: nothing is paused. What cannot be read is a pause of a newer version: sending is what cannot be undone.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes == Self::RESUMED {
            return None;
        }
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let millis = text.strip_prefix("backup ").and_then(|millis| millis.parse().ok());
        Some(Self { backup_made_at: Timestamp::from_millis(millis.unwrap_or(0)) })
    }
}

/// Whether sending is paused. Clones share it.
#[derive(Clone)]
pub(crate) struct Pause(Arc<PauseState>);

struct PauseState {
    store: Arc<dyn Store>,
    /// In milliseconds, or [`RUNNING`].
    backup_made_at: AtomicI64,
    resumed: Notify,
}

impl Pause {
    /// What the store says. `resume`: sending goes on from this start on.
    pub(crate) async fn read(store: &Arc<dyn Store>, resume: bool) -> Result<Self, Error> {
        let stored = store.setting(PAUSE_SETTING).await?;
        let record = stored.and_then(|bytes| PauseRecord::from_bytes(&bytes));
        let millis = record.map_or(RUNNING, |record| record.backup_made_at.millis());
        let state = PauseState {
            store: store.clone(),
            backup_made_at: AtomicI64::new(millis),
            resumed: Notify::new(),
        };
        let pause = Self(Arc::new(state));
        match record {
            None if resume => tracing::warn!("sending is not paused: there is nothing to resume"),
            Some(_) if resume => pause.end().await?,
            Some(_) => tracing::warn!(
                "PAUSED: this data was restored from a backup. Messages are accepted, and nothing is sent. Look at what \
                 waits; then: aldaba restore --resume"
            ),
            None => {}
        }
        Ok(pause)
    }

    pub(crate) fn record(&self) -> Option<PauseRecord> {
        let millis = self.0.backup_made_at.load(Ordering::Acquire);
        (millis != RUNNING).then(|| PauseRecord { backup_made_at: Timestamp::from_millis(millis) })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.record().is_some()
    }

    /// Waits while sending is paused.
    pub(crate) async fn ended(&self) {
        let mut resumed = std::pin::pin!(self.0.resumed.notified());
        // Registered before the look, so that no end in between is missed.
        resumed.as_mut().enable();
        if self.is_on() {
            resumed.await;
        }
    }

    /// Ends the pause. It is on disk before anything is sent.
    async fn end(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
        let value = PauseRecord::RESUMED.to_vec();
        self.0.store.change(Change::PutSetting { name: PAUSE_SETTING, value }, None, done);
        answered.await.map_err(|_| Error::Closed)??;
        self.0.backup_made_at.store(RUNNING, Ordering::Release);
        self.0.resumed.notify_waiters();
        tracing::warn!("sending was resumed by the operator: what waits is sent now");
        Ok(())
    }

    /// The same in a running engine.
    pub(crate) async fn resume(&self, trust: &ClockTrust, inbox: &Inbox) -> Result<bool, Error> {
        if !self.is_on() {
            return Ok(false);
        }
        self.end().await?;
        trust.pause(false);
        inbox.send(SchedulingCommand::Resume);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_back_and_one_that_cannot_be_read_is_a_pause() {
        let record = PauseRecord { backup_made_at: Timestamp::from_millis(1_800_000_000_123) };
        assert_eq!(PauseRecord::from_bytes(&record.to_bytes()), Some(record));
        assert_eq!(PauseRecord::from_bytes(PauseRecord::RESUMED), None);
        for unknown in [&b"later"[..], b"backup x", &[0xff, 0xfe]] {
            let epoch = PauseRecord { backup_made_at: Timestamp::from_millis(0) };
            assert_eq!(PauseRecord::from_bytes(unknown), Some(epoch), "{unknown:?}");
        }
    }
}
