use super::KeyValueStore;
use super::record::{Record, Status};
use crate::Event;
use crate::clock::timestamp;
use crate::lease::digest::{hex, is_digest};
use crate::lease::stored_lease::{Acquisition, LeaseState, StoreError, StoredLease};
use crate::lease::times::LeaseTimes;
use futures_util::future::{BoxFuture, FutureExt};
use std::future::Future;
use std::sync::{Arc, OnceLock};
use tokio::time::timeout;

/// Retries of one operation after the record changed between a read and a write.
const MAX_CONFLICT_RETRIES: usize = 5;

/// The lease of one owner on one event.
pub(super) struct KeyValueLease<S> {
    store: Arc<S>,
    times: LeaseTimes,
    event_id: String,
    key: String,
    record: Record,
    // The record while the event is handled; its owner recognizes it.
    processing: String,
    // Always the same texts, so that a record that is already written is recognized.
    processed: OnceLock<String>,
    failed: OnceLock<String>,
}

/// The record under the key, as this owner sees it.
enum CurrentRecord {
    /// No record, or the text of a failed handler's record.
    Free(Option<String>),
    /// The record that this owner writes, perhaps written before with a lost answer.
    Ours,
    Others(Record),
}

impl<S: KeyValueStore> KeyValueLease<S> {
    pub(super) fn new(store: Arc<S>, times: LeaseTimes, key: String, event: &Event, owner: u128) -> Self {
        let record = Record {
            r#type: event.event_type.clone(),
            status: Status::Processing,
            received_at: Some(timestamp()),
            processed_at: None,
            failed_at: None,
            error: None,
            digest: Some(hex(event.digest())),
            owner: Some(format!("{owner:032x}")),
        };
        let processing = record.text();
        let event_id = event.id.clone();
        Self {
            event_id,
            store,
            times,
            key,
            record,
            processing,
            processed: OnceLock::new(),
            failed: OnceLock::new(),
        }
    }

    fn processed(&self) -> &str {
        self.processed.get_or_init(|| {
            let processed_at = Some(timestamp());
            Record { status: Status::Processed, processed_at, ..self.record.clone() }.text()
        })
    }

    fn failed(&self) -> &str {
        self.failed.get_or_init(|| {
            let failed_at = Some(timestamp());
            Record { status: Status::Failed, failed_at, ..self.record.clone() }.text()
        })
    }

    async fn read_current(&self, ours: &str) -> Result<CurrentRecord, StoreError> {
        let Some(text) = self.store.get(&self.key).await? else { return Ok(CurrentRecord::Free(None)) };
        if text == ours {
            return Ok(CurrentRecord::Ours);
        }
        let record = Record::read(&text);
        Ok(if record.status == Status::Failed {
            CurrentRecord::Free(Some(text))
        } else {
            CurrentRecord::Others(record)
        })
    }

    /// Writes the record if no other owner has done so.
    async fn take(&self, there: Option<&str>, new: &str, status: Status) -> Result<bool, StoreError> {
        let life = if status == Status::Processing { self.times.life } else { self.times.marks };
        Ok(match there {
            None => self.store.put_if_absent(&self.key, new, life).await?,
            Some(old) => self.store.replace_if(&self.key, old, new, life).await?,
        })
    }

    async fn take_or_read(&self) -> Result<Acquisition, StoreError> {
        // Most events are new and need one operation.
        if self.take(None, &self.processing, Status::Processing).await? {
            return Ok(Acquisition::Granted);
        }
        for _ in 0..MAX_CONFLICT_RETRIES {
            match self.read_current(&self.processing).await? {
                CurrentRecord::Ours => return Ok(Acquisition::Granted),
                CurrentRecord::Free(there) => {
                    if self.take(there.as_deref(), &self.processing, Status::Processing).await? {
                        return Ok(Acquisition::Granted);
                    }
                }
                CurrentRecord::Others(record) => return Ok(self.others(&record)),
            }
        }
        // Other owners keep changing it: one of them handles the event.
        Ok(Acquisition::InProgress)
    }

    fn others(&self, record: &Record) -> Acquisition {
        let digest = record.digest.as_deref().filter(|digest| is_digest(digest));
        match digest {
            Some(_) if digest != self.record.digest.as_deref() => Acquisition::OtherBody,
            _ if record.status == Status::Processing => Acquisition::InProgress,
            _ => Acquisition::Duplicate,
        }
    }

    /// Replaces this owner's lease with another record of the same owner. An expired lease is taken again.
    async fn change_to(&self, new: &str, status: Status) -> Result<LeaseState, StoreError> {
        let life = if status == Status::Processing { self.times.life } else { self.times.marks };
        for _ in 0..MAX_CONFLICT_RETRIES {
            if self.store.replace_if(&self.key, &self.processing, new, life).await? {
                return Ok(LeaseState::Ours);
            }
            match self.read_current(new).await? {
                CurrentRecord::Ours => return Ok(LeaseState::Ours),
                CurrentRecord::Free(_) if status == Status::Failed => return Ok(LeaseState::Lapsed),
                CurrentRecord::Free(there) => {
                    if self.take(there.as_deref(), new, status).await? {
                        return Ok(LeaseState::Lapsed);
                    }
                }
                CurrentRecord::Others(_) => return Ok(LeaseState::Taken),
            }
        }
        Ok(LeaseState::Taken)
    }

    /// Runs an operation with a timeout.
    async fn in_time<T>(&self, step: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match timeout(self.times.answer, step).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("the store did not answer within {:?}", self.times.answer).into()),
        }
    }
}

impl<S: KeyValueStore> StoredLease for KeyValueLease<S> {
    fn event_id(&self) -> &str {
        &self.event_id
    }

    fn acquire(&self) -> BoxFuture<'_, Result<Acquisition, StoreError>> {
        self.in_time(self.take_or_read()).boxed()
    }

    fn renew(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        self.in_time(self.change_to(&self.processing, Status::Processing)).boxed()
    }

    fn complete(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        self.in_time(self.change_to(self.processed(), Status::Processed)).boxed()
    }

    fn release(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        self.in_time(self.change_to(self.failed(), Status::Failed)).boxed()
    }
}
