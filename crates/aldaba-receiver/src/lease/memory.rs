//! Leases in the memory of one process, for tests: all marks are lost when the process ends.

use crate::clock::{instant, timestamp};
use crate::random::owner_token;
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a lease lives without a renewal, as in Redis.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The maximum life of a lease. Longer values are reduced to it.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Renewals in a lease's life. One late renewal does not lose the lease.
const RENEWALS: u32 = 3;

/// The maximum number of remembered events. Above it the ledger is unavailable until a cleanup.
const MAX_EVENTS: usize = 1_000_000;

/// A ledger in memory. Clones are handles on the same ledger.
#[derive(Clone, Debug)]
pub struct MemoryLeases(Arc<SharedLeases>);

#[derive(Debug)]
struct SharedLeases {
    entries: Mutex<HashMap<String, MemoryEntry>>,
    /// Notified when any work ends.
    ended: Notify,
    lease: Duration,
    expired: AtomicU64,
    down: AtomicBool,
}

#[derive(Debug)]
struct MemoryEntry {
    digest: [u8; 32],
    state: EntryState,
}

#[derive(Debug)]
enum EntryState {
    Held {
        owner: u128,
        until: Instant,
    },
    Done {
        at: Instant,
    },
    /// The next copy can claim the event.
    Failed {
        at: Instant,
        note: FailedEvent,
    },
}

impl MemoryEntry {
    fn is_held_by(&self, someone: u128) -> bool {
        matches!(self.state, EntryState::Held { owner, .. } if owner == someone)
    }
}

/// The lease of one event. It is renewed until it is dropped.
#[derive(Debug)]
pub struct MemoryLease {
    shared: Arc<SharedLeases>,
    event_id: String,
    owner: u128,
    renewal: AbortHandle,
}

impl MemoryLeases {
    /// An empty ledger with the default times.
    pub fn new() -> Self {
        Self::with_lease(DEFAULT_LEASE)
    }

    /// An empty ledger whose leases expire after this time without a renewal, at most a day.
    pub fn with_lease(lease: Duration) -> Self {
        Self(Arc::new(SharedLeases {
            entries: Mutex::default(),
            ended: Notify::new(),
            lease: lease.min(MAX_LEASE),
            expired: AtomicU64::new(0),
            down: AtomicBool::new(false),
        }))
    }

    /// Makes the ledger unavailable, or available again, to test the program's reaction.
    pub fn set_down(&self, down: bool) {
        self.0.down.store(down, Relaxed);
    }

    /// How many expired leases were taken over. Each may be an event that had its effect twice.
    pub fn expired_leases(&self) -> u64 {
        self.0.expired.load(Relaxed)
    }

    /// Whether an event is marked as handled.
    pub fn is_marked(&self, event_id: &str) -> bool {
        matches!(self.0.entries().get(event_id), Some(MemoryEntry { state: EntryState::Done { .. }, .. }))
    }
}

impl Default for MemoryLeases {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of looking up an event.
enum Lookup {
    Ended(Claim<MemoryLease>),
    /// Another owner has it, at least until this moment.
    HeldUntil(Instant),
}

impl SharedLeases {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, MemoryEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available(&self) -> Result<(), LedgerError> {
        if self.down.load(Relaxed) {
            Err(LedgerError::Unavailable("it is turned off".into()))
        } else {
            Ok(())
        }
    }

    fn look_up(self: &Arc<Self>, event: &Event) -> Result<Lookup, LedgerError> {
        self.available()?;
        let digest = event.digest();
        let now = instant();
        let mut entries = self.entries();
        if let Some(entry) = entries.get(&event.id) {
            match entry.state {
                EntryState::Held { until, .. } if until <= now => drop(self.expired.fetch_add(1, Relaxed)),
                EntryState::Failed { .. } => {}
                _ if entry.digest != digest => return Ok(Lookup::Ended(Claim::OtherBody)),
                EntryState::Done { .. } => return Ok(Lookup::Ended(Claim::Duplicate)),
                EntryState::Held { until, .. } => return Ok(Lookup::HeldUntil(until)),
            }
        } else if entries.len() >= MAX_EVENTS {
            return Err(LedgerError::Unavailable("it is full; clean old marks".into()));
        }
        let owner = owner_token()?;
        let state = EntryState::Held { owner, until: now + self.lease };
        entries.insert(event.id.clone(), MemoryEntry { digest, state });
        drop(entries);
        Ok(Lookup::Ended(Claim::New(MemoryLease::of(Arc::clone(self), event.id.clone(), owner))))
    }

    /// Changes the entry of an event if this owner still has it. Returns whether it does.
    fn if_owned(&self, event_id: &str, owner: u128, change: impl FnOnce(&mut EntryState)) -> bool {
        match self.entries().get_mut(event_id) {
            Some(entry) if entry.is_held_by(owner) => {
                change(&mut entry.state);
                true
            }
            _ => false,
        }
    }

    fn release(&self, event_id: &str, owner: u128) {
        let mut entries = self.entries();
        if entries.get(event_id).is_some_and(|entry| entry.is_held_by(owner)) {
            entries.remove(event_id);
        }
        drop(entries);
        self.ended.notify_waiters();
    }
}

impl MemoryLease {
    fn of(shared: Arc<SharedLeases>, event_id: String, owner: u128) -> Self {
        let renewal = tokio::spawn(renew(Arc::clone(&shared), event_id.clone(), owner)).abort_handle();
        Self { shared, event_id, owner, renewal }
    }

    /// Whether this owner still has the event. A long handler should check it before an effect that cannot be undone.
    pub fn is_held(&self) -> bool {
        self.shared.if_owned(&self.event_id, self.owner, |_| {})
    }

    /// Stops the renewal, like a process that hangs.
    pub fn stop_renewing(&self) {
        self.renewal.abort();
    }
}

async fn renew(shared: Arc<SharedLeases>, event_id: String, owner: u128) {
    loop {
        tokio::time::sleep(shared.lease / RENEWALS).await;
        let renewed = shared.if_owned(&event_id, owner, |state| {
            *state = EntryState::Held { owner, until: instant() + shared.lease };
        });
        if !renewed {
            return;
        }
    }
}

impl Ledger for MemoryLeases {
    type Work = MemoryLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<MemoryLease>, LedgerError> {
        // `None`: the timeout is too long for a deadline.
        let deadline = instant().checked_add(wait_timeout);
        loop {
            let mut ended = pin!(self.0.ended.notified());
            // From here on it notices every end, also one between the lookup and the wait.
            ended.as_mut().enable();
            let until = match self.0.look_up(event)? {
                Lookup::Ended(claim) => return Ok(claim),
                Lookup::HeldUntil(until) => until,
            };
            let wake = deadline.map_or(until, |deadline| deadline.min(until));
            let is_over = || deadline.is_some_and(|deadline| instant() >= deadline);
            if tokio::time::timeout_at(wake, ended).await.is_err() && is_over() {
                return Ok(Claim::InProgress);
            }
        }
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        self.0.available()?;
        let now = instant();
        let mut entries = self.0.entries();
        let before = entries.len();
        entries.retain(|_, entry| match entry.state {
            EntryState::Done { at } => now.duration_since(at) <= older_than,
            EntryState::Held { .. } | EntryState::Failed { .. } => true,
        });
        let removed = (before - entries.len()) as u64;
        let is_young = |state: &EntryState| !matches!(state, EntryState::Failed { at, .. } if now.duration_since(*at) > older_than);
        entries.retain(|_, entry| is_young(&entry.state));
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        self.0.available()?;
        let mut entries = self.0.entries();
        let (event_type, error) = (event.event_type.clone(), error.to_owned());
        let note = FailedEvent { event_type, error, failed_at: timestamp() };
        let is_free =
            entries.get(&event.id).is_none_or(|entry| matches!(entry.state, EntryState::Failed { .. }));
        // Half of the capacity is reserved for handled events.
        if is_free && entries.len() < MAX_EVENTS / 2 {
            let state = EntryState::Failed { at: instant(), note };
            entries.insert(event.id.clone(), MemoryEntry { digest: event.digest(), state });
        }
        Ok(())
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        self.0.available()?;
        Ok(match self.0.entries().get(event_id) {
            Some(MemoryEntry { state: EntryState::Failed { note, .. }, .. }) => Some(note.clone()),
            _ => None,
        })
    }
}

impl Work for MemoryLease {
    async fn complete(self) -> Result<(), LedgerError> {
        self.shared.available()?;
        if self
            .shared
            .if_owned(&self.event_id, self.owner, |state| *state = EntryState::Done { at: instant() })
        {
            Ok(())
        } else {
            Err(LedgerError::Lost("the lease expired, and another owner has the event".into()))
        }
    }

    async fn abandon(self) {}
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        self.renewal.abort();
        self.shared.release(&self.event_id, self.owner);
    }
}
