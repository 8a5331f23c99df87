use super::expired::{Ending, Expired};
use super::stored_lease::{LeaseState, StoreError, StoredLease};
use super::times::LeaseTimes;
use crate::clock::instant;
use crate::{LedgerError, Work};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Renewals in a lease's life; after a failed renewal they are more frequent.
const RENEWALS_PER_LIFE: u32 = 3;
const RENEWALS_AFTER_FAILURE: u32 = 12;

/// The delay between two attempts to mark an event whose effect has happened.
const COMPLETION_RETRY_DELAY: Duration = Duration::from_millis(50);

/// An event that is handled under a lease. The lease is renewed in the background until this is dropped.
///
/// **At least once.** The lease keeps other owners away, but the effect and the mark are separate. If a process dies between
/// them, or hangs for longer than the lease lives, another process handles the event again. An effect that must not happen
/// twice needs a transactional ledger, or must be idempotent.
///
/// Completing it marks the event. If another owner has taken the lease, the result is [`LedgerError::Lost`], and the sender
/// should be asked to retry although the effect has happened: success requires a mark. If the lease has expired and is free,
/// the event is marked. Both cases are counted.
///
/// Marking continues in its own task while the lease lives, even if nobody waits for it: the effect has happened.
pub struct OwnedLease {
    known: watch::Sender<LeaseKnowledge>,
    // `None` after it was completed or abandoned.
    held: Option<ActiveLease>,
    runtime: Handle,
}

/// What the owner knows about its lease.
#[derive(Clone, Copy, Debug)]
struct LeaseKnowledge {
    /// By the clock of this process, counted from before the request.
    until: Instant,
    taken: bool,
}

impl LeaseKnowledge {
    fn is_lost(self) -> bool {
        self.taken || instant() >= self.until
    }
}

struct ActiveLease {
    lease: Arc<dyn StoredLease>,
    times: LeaseTimes,
    known: watch::Sender<LeaseKnowledge>,
    expired: Expired,
    stop: Arc<Notify>,
    renewals: JoinHandle<()>,
}

impl OwnedLease {
    /// `asked`: the moment before the request for the lease.
    pub(crate) fn begin(
        lease: Arc<dyn StoredLease>,
        times: LeaseTimes,
        asked: Instant,
        expired: Expired,
    ) -> Self {
        let runtime = Handle::current();
        let known = watch::Sender::new(LeaseKnowledge { until: asked + times.life, taken: false });
        let stop = Arc::new(Notify::new());
        let renewing = LeaseRenewal {
            lease: Arc::clone(&lease),
            life: times.life,
            known: known.clone(),
            expired: expired.clone(),
        };
        let renewals = runtime.spawn(renewing.until(Arc::clone(&stop)));
        let held = ActiveLease { lease, times, known: known.clone(), expired, stop, renewals };
        Self { known, held: Some(held), runtime }
    }

    /// Whether another owner may be handling the event: the lease was taken, or has expired by the clock of this process. The
    /// handler should then stop and fail.
    pub fn is_lost(&self) -> bool {
        self.known.borrow().is_lost()
    }

    /// Waits until the lease is lost, so that a handler can stop its work.
    pub async fn lost(&self) {
        let mut changes = self.known.subscribe();
        loop {
            let known = *changes.borrow_and_update();
            if known.is_lost() {
                return;
            }
            // Checks again after a change or at the expiry. The sender lives as long as this.
            let _ = timeout_at(known.until, changes.changed()).await;
        }
    }
}

impl Work for OwnedLease {
    async fn complete(mut self) -> Result<(), LedgerError> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let (lease, expired) = (Arc::clone(&held.lease), held.expired.clone());
        match self.runtime.spawn(held.complete()).await {
            Ok(completed) => completed,
            Err(ended) => {
                // The store panicked. The effect has happened, and the event may be marked.
                expired.count(lease.event_id(), Ending::Unknown);
                Err(LedgerError::Unavailable(ended.into()))
            }
        }
    }

    async fn abandon(mut self) {
        if let Some(held) = self.held.take() {
            // If the runtime ends meanwhile, the lease expires.
            let _ = self.runtime.spawn(held.release()).await;
        }
    }
}

impl Drop for OwnedLease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.runtime.spawn(held.release());
        }
    }
}

impl fmt::Debug for OwnedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedLease").field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}

impl ActiveLease {
    async fn complete(mut self) -> Result<(), LedgerError> {
        self.stop_renewing().await;
        let end = instant() + self.times.life;
        let marked = loop {
            match self.lease.complete().await {
                Err(_) if instant() < end => sleep(COMPLETION_RETRY_DELAY).await,
                marked => break marked,
            }
        };
        self.count(&marked, true);
        match marked {
            Ok(LeaseState::Ours | LeaseState::Lapsed) => Ok(()),
            Ok(LeaseState::Taken) => Err(LedgerError::Lost(
                "the lease expired, and another owner has taken the event; it may have its effect twice"
                    .into(),
            )),
            Err(error) => Err(LedgerError::Unavailable(error)),
        }
    }

    async fn release(mut self) {
        self.stop_renewing().await;
        let released = self.lease.release().await;
        self.count(&released, false);
    }

    /// Waits for a running renewal: otherwise it could take the lease again after the release.
    async fn stop_renewing(&mut self) {
        self.stop.notify_one();
        // A panicked task has ended too.
        let _ = (&mut self.renewals).await;
    }

    /// Counts a lease that ended too early, unless it was counted before.
    fn count(&self, end: &Result<LeaseState, StoreError>, effect_happened: bool) {
        let known = *self.known.borrow();
        match end {
            _ if known.taken => {}
            Ok(LeaseState::Ours) => {}
            Ok(LeaseState::Lapsed) => self.expired.count(self.lease.event_id(), Ending::Lapsed),
            Ok(LeaseState::Taken) => self.expired.count(self.lease.event_id(), Ending::Taken),
            Err(_) if effect_happened || known.is_lost() => {
                self.expired.count(self.lease.event_id(), Ending::Unknown);
            }
            // It was abandoned in time and expires unused.
            Err(_) => {}
        }
    }
}

/// Renews a lease until it is stopped.
struct LeaseRenewal {
    lease: Arc<dyn StoredLease>,
    life: Duration,
    known: watch::Sender<LeaseKnowledge>,
    expired: Expired,
}

impl LeaseRenewal {
    async fn until(self, stop: Arc<Notify>) {
        let mut pause = self.life / RENEWALS_PER_LIFE;
        while timeout(pause, stop.notified()).await.is_err() {
            let asked = instant();
            let renewed = self.lease.renew().await;
            pause = self.life / if renewed.is_ok() { RENEWALS_PER_LIFE } else { RENEWALS_AFTER_FAILURE };
            match renewed {
                Ok(LeaseState::Ours) => self.lives_from(asked),
                Ok(LeaseState::Lapsed) => {
                    self.expired.count(self.lease.event_id(), Ending::Lapsed);
                    self.lives_from(asked);
                }
                Ok(LeaseState::Taken) => {
                    self.expired.count(self.lease.event_id(), Ending::Taken);
                    return self.known.send_modify(|known| known.taken = true);
                }
                Err(error) => {
                    tracing::warn!(event_id = self.lease.event_id(), %error, "a lease could not be renewed; retrying soon");
                }
            }
        }
    }

    fn lives_from(&self, asked: Instant) {
        self.known.send_modify(|known| known.until = asked + self.life);
    }
}
