use super::KeyValueStore;
use super::record::{Record, Status};
use crate::Event;
use crate::clock::timestamp;
use crate::lease::digest::{hex, is_digest};
use crate::lease::keep::{Asked, Keep, Standing, Trouble};
use crate::lease::times::LeaseTimes;
use futures_util::future::{BoxFuture, FutureExt};
use std::future::Future;
use std::sync::{Arc, OnceLock};
use tokio::time::timeout;

/// How often a step is begun again because the record has changed between a look and a write.
const TRIES: usize = 5;

/// One owner's lease of one event.
pub(super) struct Hold<S> {
    store: Arc<S>,
    times: LeaseTimes,
    event_id: String,
    key: String,
    record: Record,
    // Its text while the event is being handled, by which its owner knows it.
    processing: String,
    // Always the same texts, by which a record that was written already is known.
    processed: OnceLock<String>,
    failed: OnceLock<String>,
}

/// What is under the key, as this owner sees it.
enum There {
    /// Nothing, or the record of a handler that has failed: the text of it.
    Free(Option<String>),
    /// What this owner writes, or has written when the answer was lost.
    Ours,
    Others(Record),
}

impl<S: KeyValueStore> Hold<S> {
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

    async fn look(&self, ours: &str) -> Result<There, Trouble> {
        let Some(text) = self.store.get(&self.key).await? else { return Ok(There::Free(None)) };
        if text == ours {
            return Ok(There::Ours);
        }
        let record = Record::read(&text);
        Ok(if record.status == Status::Failed { There::Free(Some(text)) } else { There::Others(record) })
    }

    /// Writes where nobody is, if it is still so.
    async fn take(&self, there: Option<&str>, new: &str, status: Status) -> Result<bool, Trouble> {
        let life = if status == Status::Processing { self.times.life } else { self.times.marks };
        Ok(match there {
            None => self.store.put_if_absent(&self.key, new, life).await?,
            Some(old) => self.store.replace_if(&self.key, old, new, life).await?,
        })
    }

    async fn take_or_look(&self) -> Result<Asked, Trouble> {
        // Most events are new, and this is all that they need.
        if self.take(None, &self.processing, Status::Processing).await? {
            return Ok(Asked::Granted);
        }
        for _ in 0..TRIES {
            match self.look(&self.processing).await? {
                There::Ours => return Ok(Asked::Granted),
                There::Free(there) => {
                    if self.take(there.as_deref(), &self.processing, Status::Processing).await? {
                        return Ok(Asked::Granted);
                    }
                }
                There::Others(record) => return Ok(self.others(&record)),
            }
        }
        // Others come and go: one of them is at it.
        Ok(Asked::InProgress)
    }

    fn others(&self, record: &Record) -> Asked {
        let digest = record.digest.as_deref().filter(|digest| is_digest(digest));
        match digest {
            Some(_) if digest != self.record.digest.as_deref() => Asked::OtherBody,
            _ if record.status == Status::Processing => Asked::InProgress,
            _ => Asked::Duplicate,
        }
    }

    /// From this owner's lease to another record of this owner's, or the same; where it has expired, from nothing.
    async fn change_to(&self, new: &str, status: Status) -> Result<Standing, Trouble> {
        let life = if status == Status::Processing { self.times.life } else { self.times.marks };
        for _ in 0..TRIES {
            if self.store.replace_if(&self.key, &self.processing, new, life).await? {
                return Ok(Standing::Ours);
            }
            match self.look(new).await? {
                There::Ours => return Ok(Standing::Ours),
                There::Free(_) if status == Status::Failed => return Ok(Standing::Lapsed),
                There::Free(there) => {
                    if self.take(there.as_deref(), new, status).await? {
                        return Ok(Standing::Lapsed);
                    }
                }
                There::Others(_) => return Ok(Standing::Taken),
            }
        }
        Ok(Standing::Taken)
    }

    /// A store that does not answer is as good as one that is down.
    async fn in_time<T>(&self, step: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        match timeout(self.times.answer, step).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("the store did not answer within {:?}", self.times.answer).into()),
        }
    }
}

impl<S: KeyValueStore> Keep for Hold<S> {
    fn event_id(&self) -> &str {
        &self.event_id
    }

    fn ask(&self) -> BoxFuture<'_, Result<Asked, Trouble>> {
        self.in_time(self.take_or_look()).boxed()
    }

    fn renew(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        self.in_time(self.change_to(&self.processing, Status::Processing)).boxed()
    }

    fn complete(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        self.in_time(self.change_to(self.processed(), Status::Processed)).boxed()
    }

    fn release(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        self.in_time(self.change_to(self.failed(), Status::Failed)).boxed()
    }
}
