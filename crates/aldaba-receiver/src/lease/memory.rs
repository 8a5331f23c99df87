//! Leases in the memory of one process. For tests, and to see how a receiver behaves: when the process ends, every
//! mark is gone.

use crate::chance::owner_token;
use crate::clock::{instant, timestamp};
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a lease lives without being renewed, as with Redis.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The longest lease. Whoever asks for more gets this.
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// A lease is renewed this many times within its life, so that one renewal that comes late loses nothing.
const RENEWALS: u32 = 3;

/// The most events that are remembered. Beyond, the ledger is not available until it was cleaned.
const MAX_EVENTS: usize = 1_000_000;

/// A ledger in memory. Copies of it are handles on the same one.
#[derive(Clone, Debug)]
pub struct MemoryLeases(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    entries: Mutex<HashMap<String, Entry>>,
    /// Some work has ended, one way or the other.
    ended: Notify,
    lease: Duration,
    expired: AtomicU64,
    down: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    digest: [u8; 32],
    state: State,
}

#[derive(Debug)]
enum State {
    Held {
        owner: u128,
        until: Instant,
    },
    Done {
        at: Instant,
    },
    /// The event is anybody's.
    Failed {
        at: Instant,
        note: FailedEvent,
    },
}

impl Entry {
    fn is_held_by(&self, someone: u128) -> bool {
        matches!(self.state, State::Held { owner, .. } if owner == someone)
    }
}

/// The lease of one event, renewed for as long as it lives.
#[derive(Debug)]
pub struct MemoryLease {
    shared: Arc<Shared>,
    event_id: String,
    owner: u128,
    renewal: AbortHandle,
}

impl MemoryLeases {
    /// An empty ledger with the default times.
    pub fn new() -> Self {
        Self::with_lease(DEFAULT_LEASE)
    }

    /// With leases that live this long unless they are renewed, a day at most.
    pub fn with_lease(lease: Duration) -> Self {
        Self(Arc::new(Shared {
            entries: Mutex::default(),
            ended: Notify::new(),
            lease: lease.min(LONGEST_LEASE),
            expired: AtomicU64::new(0),
            down: AtomicBool::new(false),
        }))
    }

    /// Makes the ledger unavailable, or available again: what a program does then can be tried without a server to kill.
    pub fn set_down(&self, down: bool) {
        self.0.down.store(down, Relaxed);
    }

    /// How many leases were taken over because their owners had not renewed them. Each may be an event that had its
    /// effect twice.
    pub fn expired_leases(&self) -> u64 {
        self.0.expired.load(Relaxed)
    }

    /// Whether an event is marked as handled.
    pub fn is_marked(&self, event_id: &str) -> bool {
        matches!(self.0.entries().get(event_id), Some(Entry { state: State::Done { .. }, .. }))
    }
}

impl Default for MemoryLeases {
    fn default() -> Self {
        Self::new()
    }
}

/// What is known of an event at one moment.
enum Standing {
    Ended(Claim<MemoryLease>),
    /// Somebody is at it, for this long at least.
    HeldUntil(Instant),
}

impl Shared {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available(&self) -> Result<(), LedgerError> {
        if self.down.load(Relaxed) {
            Err(LedgerError::Unavailable("it was turned off".into()))
        } else {
            Ok(())
        }
    }

    fn look(self: &Arc<Self>, event: &Event) -> Result<Standing, LedgerError> {
        self.available()?;
        let digest = event.digest();
        let now = instant();
        let mut entries = self.entries();
        if let Some(entry) = entries.get(&event.id) {
            match entry.state {
                State::Held { until, .. } if until <= now => drop(self.expired.fetch_add(1, Relaxed)),
                State::Failed { .. } => {}
                _ if entry.digest != digest => return Ok(Standing::Ended(Claim::OtherBody)),
                State::Done { .. } => return Ok(Standing::Ended(Claim::Duplicate)),
                State::Held { until, .. } => return Ok(Standing::HeldUntil(until)),
            }
        } else if entries.len() >= MAX_EVENTS {
            return Err(LedgerError::Unavailable("it is full; old marks have to be cleaned".into()));
        }
        let owner = owner_token()?;
        let state = State::Held { owner, until: now + self.lease };
        entries.insert(event.id.clone(), Entry { digest, state });
        drop(entries);
        Ok(Standing::Ended(Claim::New(MemoryLease::of(Arc::clone(self), event.id.clone(), owner))))
    }

    /// Changes the entry of an event if it is still this owner's; says whether it was.
    fn if_owned(&self, event_id: &str, owner: u128, change: impl FnOnce(&mut State)) -> bool {
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
    fn of(shared: Arc<Shared>, event_id: String, owner: u128) -> Self {
        let renewal = tokio::spawn(renew(Arc::clone(&shared), event_id.clone(), owner)).abort_handle();
        Self { shared, event_id, owner, renewal }
    }

    /// Whether nobody else has taken the event over. A handler that takes long should ask before it does something
    /// that cannot be taken back.
    pub fn is_held(&self) -> bool {
        self.shared.if_owned(&self.event_id, self.owner, |_| {})
    }

    /// Ends the renewal, as a process does that stands still.
    pub fn stop_renewing(&self) {
        self.renewal.abort();
    }
}

async fn renew(shared: Arc<Shared>, event_id: String, owner: u128) {
    loop {
        tokio::time::sleep(shared.lease / RENEWALS).await;
        let renewed = shared.if_owned(&event_id, owner, |state| {
            *state = State::Held { owner, until: instant() + shared.lease };
        });
        if !renewed {
            return;
        }
    }
}

impl Ledger for MemoryLeases {
    type Work = MemoryLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, patience: Duration) -> Result<Claim<MemoryLease>, LedgerError> {
        // None: there is no such moment, it lies too far ahead.
        let deadline = instant().checked_add(patience);
        loop {
            let mut ended = pin!(self.0.ended.notified());
            // From here on it hears of every end, also of one between the look and the wait.
            ended.as_mut().enable();
            let until = match self.0.look(event)? {
                Standing::Ended(claim) => return Ok(claim),
                Standing::HeldUntil(until) => until,
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
            State::Done { at } => now.duration_since(at) <= older_than,
            State::Held { .. } | State::Failed { .. } => true,
        });
        let removed = (before - entries.len()) as u64;
        let is_young = |state: &State| !matches!(state, State::Failed { at, .. } if now.duration_since(*at) > older_than);
        entries.retain(|_, entry| is_young(&entry.state));
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        self.0.available()?;
        let mut entries = self.0.entries();
        let (event_type, error) = (event.event_type.clone(), error.to_owned());
        let note = FailedEvent { event_type, error, failed_at: timestamp() };
        let is_free = entries.get(&event.id).is_none_or(|entry| matches!(entry.state, State::Failed { .. }));
        // Room is for events that are handled, before all.
        if is_free && entries.len() < MAX_EVENTS / 2 {
            let state = State::Failed { at: instant(), note };
            entries.insert(event.id.clone(), Entry { digest: event.digest(), state });
        }
        Ok(())
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        self.0.available()?;
        Ok(match self.0.entries().get(event_id) {
            Some(Entry { state: State::Failed { note, .. }, .. }) => Some(note.clone()),
            _ => None,
        })
    }
}

impl Work for MemoryLease {
    async fn complete(self) -> Result<(), LedgerError> {
        self.shared.available()?;
        if self.shared.if_owned(&self.event_id, self.owner, |state| *state = State::Done { at: instant() }) {
            Ok(())
        } else {
            Err(LedgerError::Lost("the lease expired, and somebody else has the event".into()))
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
