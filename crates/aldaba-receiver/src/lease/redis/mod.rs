//! Leases in Redis.

mod scripts;
mod stored_lease;
mod wire;

use super::claim::claim;
use super::expired::Expired;
use super::owned::OwnedLease;
use super::times::{LeaseOptionError, LeaseTimes, check_prefix};
use crate::clock::{Clock, timestamp};
use crate::random::owner_token;
use crate::{Claim, DuplicateRate, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use redis::aio::ConnectionLike;
use redis::{Client, IntoConnectionInfo};
use scripts::Scripts;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use stored_lease::RedisLease;
use wire::Wire;

/// Leases and marks in a Redis server: **at least once, with deduplication**.
///
/// While an event is handled, there is a lock under `webhook:lock:<id>`; it lives for 30 seconds and is renewed while the
/// handler works. Afterwards there is a mark under `webhook:processed:<id>`; it lives for 30 days and holds
/// `{"processedAt": …, "type": …, "digest": …, "owner": …}`. Marks of other programs, with or without the last two fields,
/// and their locks are respected.
///
/// After a failed handler there is a note under `webhook:failed:<id>`; it lives for 30 days and holds `{"failedAt": …,
/// "type": …, "error": …}`. It is not a mark: the next copy is handled.
///
/// Under `webhook:{counts}:<hour>` are the numbers of new events and of duplicates in an hour since 1970, for the rate of
/// duplicates; they live as long as marks.
///
/// The lock holds a random token of its owner. Acquiring, renewing, completing and releasing are one script each, so they
/// are atomic, and only the owner can do the last three.
///
/// # When an event has its effect twice
/// - The owner's process ends between the effect and the mark. When the lock expires, the next copy is handled.
/// - The owner hangs for longer than the lock lives, and another owner takes the event. When the first continues,
///   [`OwnedLease::is_lost`] is true, and completing fails with [`LedgerError::Lost`]. Counted.
/// - Redis is unreachable for longer than the lock lives after the effect has happened. Counted.
/// - Redis loses data: it restarts without `appendonly yes`, a replica without the mark is promoted, or `maxmemory-policy`
///   is not `noeviction` and evicts marks.
///
/// The counters are `aldaba_receiver_leases_expired_total` and [`RedisLeases::expired_leases`]. Without crashes and data
/// loss there are never more repetitions than that.
///
/// # When Redis fails
/// Every command has a timeout, two seconds by default. After it, claiming fails with [`LedgerError::Unavailable`]: nothing
/// is handled that cannot be marked. Lost connections are reopened, and scripts are sent again after a restart of the
/// server.
///
/// # Redis Cluster
/// The keys of a script must be in one slot. With [`RedisOptions::hash_tags`] they always are: `webhook:lock:{event:<id>}`
/// and `webhook:processed:{event:<id>}`. Behind a proxy with one address this is enough; otherwise pass the cluster's
/// connection to [`RedisLeases::over`].
///
/// Clones are handles on the same ledger.
#[derive(Clone)]
pub struct RedisLeases {
    wire: Arc<Wire>,
    scripts: Arc<Scripts>,
    options: RedisOptions,
    expired: Expired,
}

/// Options of leases in Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// How long leases and marks live.
    pub times: LeaseTimes,
    /// The prefix of the keys. Receivers whose senders may use the same ids need different prefixes.
    pub prefix: String,
    /// Puts both keys of an event into one slot, for Redis Cluster.
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

    /// All hours are in one slot of a cluster: a script reads many of them.
    fn counts_key(&self, hour: u64) -> String {
        format!("{}:{{counts}}:{hour}", self.prefix)
    }

    fn key(&self, kind: &str, id: &str) -> String {
        let prefix = &self.prefix;
        if self.hash_tags {
            // With `event:` before it, an id that begins with a brace does not make an empty tag.
            format!("{prefix}:{kind}:{{event:{id}}}")
        } else {
            format!("{prefix}:{kind}:{id}")
        }
    }
}

const HOUR_SECONDS: u64 = 60 * 60;
/// The longest window of counts: 31 days, as long as marks live by default.
const MAX_HOURS: u64 = 31 * 24;

/// The hours since 1970.
fn hour() -> u64 {
    u64::try_from(Clock::system().seconds()).unwrap_or(0) / HOUR_SECONDS
}

impl RedisLeases {
    /// A ledger in the server at this address, such as `redis://127.0.0.1/`. It connects with the first event, so that a
    /// receiver can start before its Redis. Requires a tokio runtime.
    pub fn open(address: impl IntoConnectionInfo, options: RedisOptions) -> Result<Self, LeaseOptionError> {
        let client = Client::open(address).map_err(|error| not_an_address(&error))?;
        let options = options.check()?;
        let wire = Wire::to(&client, options.times.answer).map_err(|error| not_an_address(&error))?;
        Ok(Self::new(wire, options))
    }

    /// A ledger over the caller's connection, such as one to a cluster. The connection must reconnect by itself.
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

    /// How many leases ended while their events were being handled, since this ledger was built. At most this many events
    /// had their effect twice, besides those whose owners were killed.
    pub fn expired_leases(&self) -> u64 {
        self.expired.total()
    }
}

impl Ledger for RedisLeases {
    type Work = OwnedLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    const KEEPS_COUNTS: bool = true;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<OwnedLease>, LedgerError> {
        let hold = RedisLease::new(self, event, owner_token()?);
        claim(Arc::new(hold), self.options.times, wait_timeout, &self.expired).await
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

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        let [new, duplicates] = seen.stored();
        let mut counting = self.scripts.count.key(self.options.counts_key(hour()));
        let marks = u64::try_from(self.options.times.marks.as_millis()).unwrap_or(u64::MAX);
        counting.arg(new).arg(duplicates).arg(marks).arg(format!("{:032x}", owner_token()?));
        let counted: Result<String, _> = self.wire.run(&counting).await;
        counted.map(drop).map_err(LedgerError::Unavailable)
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        let (now, hours) = (hour(), within.as_secs().div_ceil(HOUR_SECONDS).clamp(1, MAX_HOURS));
        let mut asking = self.scripts.counts.key(self.options.counts_key(now));
        for back in 1..hours {
            asking.key(self.options.counts_key(now.saturating_sub(back)));
        }
        let counts: (i64, i64) = self.wire.run(&asking).await.map_err(LedgerError::Unavailable)?;
        Ok(DuplicateRate::from_stored([counts.0, counts.1]))
    }

    /// Always 0: Redis removes expired marks itself.
    async fn clean(&self, _older_than: Duration) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

/// Shows neither the address nor a password.
impl fmt::Debug for RedisLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLeases").field("options", &self.options).finish_non_exhaustive()
    }
}

fn not_an_address(error: &redis::RedisError) -> LeaseOptionError {
    LeaseOptionError::Address(error.to_string())
}
