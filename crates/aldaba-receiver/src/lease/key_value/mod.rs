//! Leases in any key-value store.

mod record;
mod store;
mod stored_lease;

pub use store::{Atomicity, KeyValueStore, NotAtomic, PlainStore, PutIfAbsentOnly, PutIfAbsentStore};

use super::claim::claim;
use super::expired::Expired;
use super::owned::OwnedLease;
use super::times::{LeaseOptionError, LeaseTimes, check_prefix};
use crate::random::owner_token;
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use record::{Record, Status};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use stored_lease::KeyValueLease;

/// Leases and marks in a [`KeyValueStore`]: **at least once, with deduplication**.
///
/// Each event has one record, under `event:<id>`: `{"type": …, "status": "processing", "receivedAt": …}` while it
/// is handled, which lives for 30 seconds and is renewed; then `"status": "processed"` with `processedAt`, or `"status":
/// "failed"` with `failedAt` and `error`, which live for 30 days. The next copy of a failed event is handled. A record
/// without a status, from another program, is a mark.
///
/// The protection against duplicates depends on the store: see [`KeyValueLeases::ATOMICITY`]. [`OwnedLease`] says when an
/// event has its effect twice, and what is counted.
///
/// Clones are handles on the same ledger.
pub struct KeyValueLeases<S> {
    store: Arc<S>,
    options: KeyValueOptions,
    expired: Expired,
}

/// Options of leases in a key-value store.
#[derive(Clone, Debug)]
pub struct KeyValueOptions {
    /// How long leases and marks live. A store may have a minimum for `life`: edge stores often have one minute.
    pub times: LeaseTimes,
    /// The prefix of the keys. Receivers whose senders may use the same ids need different prefixes.
    pub prefix: String,
}

impl Default for KeyValueOptions {
    fn default() -> Self {
        Self { times: LeaseTimes::default(), prefix: "event".into() }
    }
}

impl<S: KeyValueStore> KeyValueLeases<S> {
    /// The atomicity of the store. Only with [`Atomicity::CompareAndSwap`] are crashes and expired leases the only causes of
    /// duplicate effects.
    pub const ATOMICITY: Atomicity = S::ATOMICITY;

    /// A ledger of leases in this store.
    ///
    /// # Errors
    /// Fails if an option is out of bounds.
    pub fn new(store: S, options: KeyValueOptions) -> Result<Self, LeaseOptionError> {
        check_prefix(&options.prefix)?;
        options.times.check()?;
        Ok(Self { store: Arc::new(store), options, expired: Expired::none("key_value") })
    }

    fn key(&self, event_id: &str) -> String {
        format!("{}:{event_id}", self.options.prefix)
    }

    /// How many leases ended while their events were being handled, since this ledger was built.
    pub fn expired_leases(&self) -> u64 {
        self.expired.total()
    }
}

impl<S: KeyValueStore> Ledger for KeyValueLeases<S> {
    type Work = OwnedLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<OwnedLease>, LedgerError> {
        let key = self.key(&event.id);
        let hold =
            KeyValueLease::new(Arc::clone(&self.store), self.options.times, key, event, owner_token()?);
        claim(Arc::new(hold), self.options.times, wait_timeout, &self.expired).await
    }

    /// Writes the error into the record of the abandoned lease. Does nothing if that is gone or another owner has it.
    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let key = self.key(&event.id);
        let noting = async {
            let Some(text) = self.store.get(&key).await? else { return Ok(()) };
            let record = Record::read(&text);
            if record.status == Status::Failed {
                let noted = Record { error: Some(error.to_owned()), ..record }.text();
                self.store.replace_if(&key, &text, &noted, self.options.times.marks).await?;
            }
            Ok(())
        };
        noting.await.map_err(|error: S::Error| LedgerError::Unavailable(error.into()))
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let found = self.store.get(&self.key(event_id)).await;
        let found = found.map_err(|error| LedgerError::Unavailable(error.into()))?;
        let record = found.map(|text| Record::read(&text)).filter(|record| record.status == Status::Failed);
        Ok(record.map(|record| FailedEvent {
            event_type: record.r#type,
            error: record.error.unwrap_or_default(),
            failed_at: record.failed_at.unwrap_or_default(),
        }))
    }

    /// Always 0: the store removes expired marks itself.
    async fn clean(&self, _older_than: Duration) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

impl<S> Clone for KeyValueLeases<S> {
    fn clone(&self) -> Self {
        let Self { store, options, expired } = self;
        Self { store: Arc::clone(store), options: options.clone(), expired: expired.clone() }
    }
}

impl<S> fmt::Debug for KeyValueLeases<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValueLeases").field("options", &self.options).finish_non_exhaustive()
    }
}
