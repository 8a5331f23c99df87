//! Leases in Redis.

mod hold;
mod scripts;
mod wire;

use super::claim::claim;
use super::expired::Expired;
use super::owned::OwnedLease;
use super::times::{LeaseOptionError, LeaseTimes, check_prefix};
use crate::chance::owner_token;
use crate::clock::timestamp;
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use hold::Hold;
use redis::aio::ConnectionLike;
use redis::{Client, IntoConnectionInfo};
use scripts::Scripts;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wire::Wire;

/// Leases and marks in a Redis server: **at least once, with deduplication**.
///
/// While an event is being handled there is a lock under `webhook:lock:<id>`, which lives for 30 seconds and is renewed
/// as long as the handler works. When it was handled there is a mark under `webhook:processed:<id>`, which lives for 30
/// days and holds `{"processedAt": …, "type": …, "digest": …, "owner": …}`. A mark that another program made, with or
/// without the last two, is a mark as well, and a lock of another program is respected.
///
/// When its handler has failed there is a note under `webhook:failed:<id>`, which lives for 30 days and holds
/// `{"failedAt": …, "type": …, "error": …}`. It is no mark: the next copy is handled.
///
/// The lock holds a random token of its owner. Asking, renewing, completing and releasing are each one script, so that
/// nobody gets in between, and nobody but the owner does the last three.
///
/// # When an event has its effect again
/// - The owner's process ends after the effect and before the mark. The next copy finds the lock for the rest of its
///   life, and then handles the event again.
/// - The owner stands still for longer than the lock lives, and another one takes the event meanwhile. When it goes on,
///   [`OwnedLease::is_lost`] is true, and completing is [`LedgerError::Lost`]. Counted.
/// - Redis cannot be reached for longer than the lock lives after the effect has happened. Counted.
/// - Redis forgets: it was restarted without `appendonly yes`, a replica that had not heard of the mark became the
///   server, or `maxmemory-policy` is not `noeviction`, so that marks are thrown away.
///
/// Counted: `aldaba_receiver_leases_expired_total`, and [`RedisLeases::expired_leases`]. Without crashes there are never
/// more repetitions than that.
///
/// # When Redis is in trouble
/// Every question has a time for its answer, two seconds unless told otherwise. Past it, claiming is
/// [`LedgerError::Unavailable`]: nothing is handled while it cannot be marked. A connection that was lost is made again
/// by itself, and scripts that a restarted server does not know are sent again.
///
/// # Redis Cluster
/// A script's keys must be in one slot, and those above need not be. With [`RedisOptions::hash_tags`] they are
/// `webhook:lock:{event:<id>}` and `webhook:processed:{event:<id>}`, which always are. Behind a proxy that shows one
/// address this is enough; for a cluster without one, hand the cluster's connection to [`RedisLeases::over`].
///
/// Copies of it are handles on the same one.
#[derive(Clone)]
pub struct RedisLeases {
    wire: Arc<Wire>,
    scripts: Arc<Scripts>,
    options: RedisOptions,
    expired: Expired,
}

/// How leases are kept in Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// How long leases and marks live.
    pub times: LeaseTimes,
    /// What the keys begin with. Receivers whose senders may use the same ids for different events need one each.
    pub prefix: String,
    /// Both keys of an event in one slot, as a cluster wants it.
    pub hash_tags: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { times: LeaseTimes::default(), prefix: "webhook".into(), hash_tags: false }
    }
}

impl RedisOptions {
    fn check(self) -> Result<Self, LeaseOptionError> {
        check_prefix(&self.prefix)?;
        self.times.check()?;
        Ok(self)
    }

    fn key(&self, kind: &str, id: &str) -> String {
        let prefix = &self.prefix;
        if self.hash_tags {
            // An id that begins with a brace would make an empty tag, which is none.
            format!("{prefix}:{kind}:{{event:{id}}}")
        } else {
            format!("{prefix}:{kind}:{id}")
        }
    }
}

impl RedisLeases {
    /// In the server at this address, such as `redis://127.0.0.1/`. It is connected to when the first event comes, so
    /// that a receiver can start before its Redis. Inside a tokio runtime only.
    pub fn open(address: impl IntoConnectionInfo, options: RedisOptions) -> Result<Self, LeaseOptionError> {
        let client = Client::open(address).map_err(|error| not_an_address(&error))?;
        let options = options.check()?;
        let wire = Wire::to(&client, options.times.answer).map_err(|error| not_an_address(&error))?;
        Ok(Self::new(wire, options))
    }

    /// Over a connection of the caller's, such as one to a cluster. It has to connect again by itself.
    pub fn over<C>(connection: C, options: RedisOptions) -> Result<Self, LeaseOptionError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let options = options.check()?;
        Ok(Self::new(Wire::over(connection, options.times.answer), options))
    }

    fn new(wire: Wire, options: RedisOptions) -> Self {
        let (wire, scripts) = (Arc::new(wire), Arc::new(Scripts::new()));
        Self { wire, scripts, options, expired: Expired::none("redis") }
    }

    /// How many leases have ended while their events were being handled, since this was made: that many events at most
    /// had their effect again, beside those whose owners were killed.
    pub fn expired_leases(&self) -> u64 {
        self.expired.total()
    }
}

impl Ledger for RedisLeases {
    type Work = OwnedLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, patience: Duration) -> Result<Claim<OwnedLease>, LedgerError> {
        let hold = Hold::new(self, event, owner_token()?);
        claim(Arc::new(hold), self.options.times, patience, &self.expired).await
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let note = json!({ "failedAt": timestamp(), "type": event.event_type, "error": error }).to_string();
        let mut noting = self.scripts.note.key(self.options.key("failed", &event.id));
        noting.key(self.options.key("processed", &event.id)).arg(note);
        let marks = u64::try_from(self.options.times.marks.as_millis()).unwrap_or(u64::MAX);
        let noted: Result<String, _> = self.wire.run(noting.arg(marks)).await;
        noted.map(drop).map_err(LedgerError::Unavailable)
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let mut asking = self.scripts.failure.key(self.options.key("failed", event_id));
        asking.key(self.options.key("processed", event_id));
        let note: Option<String> = self.wire.run(&asking).await.map_err(LedgerError::Unavailable)?;
        let note: Option<Value> = note.and_then(|note| serde_json::from_str(&note).ok());
        let text = |note: &Value, name: &str| note[name].as_str().unwrap_or_default().to_owned();
        Ok(note.map(|note| FailedEvent {
            event_type: text(&note, "type"),
            error: text(&note, "error"),
            failed_at: text(&note, "failedAt"),
        }))
    }

    /// Redis removes marks by itself when their life is over: there is nothing to remove, and so it is always 0.
    async fn clean(&self, _older_than: Duration) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

/// Neither the address nor a password is in it.
impl fmt::Debug for RedisLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLeases").field("options", &self.options).finish_non_exhaustive()
    }
}

fn not_an_address(error: &redis::RedisError) -> LeaseOptionError {
    LeaseOptionError::Address(error.to_string())
}
