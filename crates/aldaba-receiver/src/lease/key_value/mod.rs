//! Leases in any store of values under keys.

mod hold;
mod record;
mod store;

pub use store::{Atomicity, KeyValueStore, NotAtomic, PlainStore, PutIfAbsentOnly, PutIfAbsentStore};

use super::claim::claim;
use super::expired::Expired;
use super::owned::OwnedLease;
use super::times::{LeaseOptionError, LeaseTimes, check_prefix};
use crate::chance::owner_token;
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use hold::Hold;
use record::{Record, Status};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Leases and marks in a [`KeyValueStore`]: **at least once, with deduplication**.
///
/// There is one record for an event, under `event:<id>`: `{"type": …, "status": "processing", "receivedAt": …}` while it
/// is being handled, which lives for 30 seconds and is renewed; then `"status": "processed"` with `processedAt`, or
/// `"status": "failed"` with `failedAt` and `error`, which live for 30 days. An event that has failed is anybody's again. A record of
/// another program that says no status is a mark.
///
/// How far it can be trusted depends on the store: see [`KeyValueLeases::ATOMICITY`]. For when an event has its effect
/// again, and what is counted, see [`OwnedLease`].
///
/// Copies of it are handles on the same one.
pub struct KeyValueLeases<S> {
    store: Arc<S>,
    options: KeyValueOptions,
    expired: Expired,
}

/// How leases are kept in a key-value store.
#[derive(Clone, Debug)]
pub struct KeyValueOptions {
    /// A store may have a shortest life of its own, below which `life` cannot be: at the edge it is often a minute.
    pub times: LeaseTimes,
    /// What the keys begin with. Receivers whose senders may use the same ids for different events need one each.
    pub prefix: String,
}

impl Default for KeyValueOptions {
    fn default() -> Self {
        Self { times: LeaseTimes::default(), prefix: "event".into() }
    }
}

impl<S: KeyValueStore> KeyValueLeases<S> {
    /// What is known of the store: only with [`Atomicity::CompareAndSwap`] are crashes and expired leases the only
    /// reasons for an event to have its effect again.
    pub const ATOMICITY: Atomicity = S::ATOMICITY;

    /// Keeps leases in a store.
    ///
    /// # Errors
    /// If an option is out of bounds.
    pub fn new(store: S, options: KeyValueOptions) -> Result<Self, LeaseOptionError> {
        check_prefix(&options.prefix)?;
        options.times.check()?;
        Ok(Self { store: Arc::new(store), options, expired: Expired::none("key_value") })
    }

    fn key(&self, event_id: &str) -> String {
        format!("{}:{event_id}", self.options.prefix)
    }

    /// How many leases have ended while their events were being handled, since this was made.
    pub fn expired_leases(&self) -> u64 {
        self.expired.total()
    }
}

impl<S: KeyValueStore> Ledger for KeyValueLeases<S> {
    type Work = OwnedLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, patience: Duration) -> Result<Claim<OwnedLease>, LedgerError> {
        let key = self.key(&event.id);
        let hold = Hold::new(Arc::clone(&self.store), self.options.times, key, event, owner_token()?);
        claim(Arc::new(hold), self.options.times, patience, &self.expired).await
    }

    /// Into the record that the abandoned lease has left. Where that is gone, or another has the event, there is none.
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

    /// The store forgets marks by itself when their life is over: there is nothing to remove, and so it is always 0.
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
