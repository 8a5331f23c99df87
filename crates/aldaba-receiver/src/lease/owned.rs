use super::expired::{Ending, Expired};
use super::keep::{Keep, Standing, Trouble};
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

/// A living owner renews its lease this many times in its life, and after a failure as many times more.
const RENEWALS_IN_A_LIFE: u32 = 3;
const RENEWALS_AFTER_FAILURE: u32 = 12;

/// How long it rests between two tries to mark an event whose effect has happened.
const PAUSE_OF_COMPLETION: Duration = Duration::from_millis(50);

/// An event that is being handled under a lease. While it exists, the lease is renewed in the background.
///
/// **At least once.** The lease keeps others away, but nothing binds the effect to the mark: a process that dies after
/// its effect and before the mark, or that stands still for longer than the lease lives, leaves the event to another
/// one, who handles it again. An effect that must not happen twice belongs into a transactional ledger, or is made so
/// that a second time changes nothing.
///
/// Completing it marks the event, unless another has taken the lease meanwhile: then it is [`LedgerError::Lost`], and
/// the sender should be asked to send the event again, although its effect has happened: a success is answered only
/// where a mark is. A lease that has expired and is nobody's is marked all the same. Both are counted.
///
/// Marking goes on in a task of its own for as long as the lease lives, whether or not anybody waits for it: the
/// effect has happened.
pub struct OwnedLease {
    known: watch::Sender<Known>,
    // None only when it was completed or abandoned.
    held: Option<Held>,
    runtime: Handle,
}

/// What its owner knows of a lease.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// By this clock, not by the store's; counted from before it was asked for.
    until: Instant,
    taken: bool,
}

impl Known {
    fn is_lost(self) -> bool {
        self.taken || instant() >= self.until
    }
}

struct Held {
    keep: Arc<dyn Keep>,
    times: LeaseTimes,
    known: watch::Sender<Known>,
    expired: Expired,
    stop: Arc<Notify>,
    renewals: JoinHandle<()>,
}

impl OwnedLease {
    /// `asked`: the moment before it was asked for.
    pub(crate) fn begin(keep: Arc<dyn Keep>, times: LeaseTimes, asked: Instant, expired: Expired) -> Self {
        let runtime = Handle::current();
        let known = watch::Sender::new(Known { until: asked + times.life, taken: false });
        let stop = Arc::new(Notify::new());
        let renewing = Renewing {
            keep: Arc::clone(&keep),
            life: times.life,
            known: known.clone(),
            expired: expired.clone(),
        };
        let renewals = runtime.spawn(renewing.until(Arc::clone(&stop)));
        let held = Held { keep, times, known: known.clone(), expired, stop, renewals };
        Self { known, held: Some(held), runtime }
    }

    /// Whether another may be handling the event by now: the lease was taken, or its life is over by this process's
    /// clock. What is not done yet is better left undone then, and the handler fails.
    pub fn is_lost(&self) -> bool {
        self.known.borrow().is_lost()
    }

    /// Waits until the lease is lost. For a handler that wants to stop its work then.
    pub async fn lost(&self) {
        let mut news = self.known.subscribe();
        loop {
            let known = *news.borrow_and_update();
            if known.is_lost() {
                return;
            }
            // The time is over or there is news: both are looked at again. The sender lives as long as this does.
            let _ = timeout_at(known.until, news.changed()).await;
        }
    }
}

impl Work for OwnedLease {
    async fn complete(mut self) -> Result<(), LedgerError> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let (keep, expired) = (Arc::clone(&held.keep), held.expired.clone());
        match self.runtime.spawn(held.complete()).await {
            Ok(completed) => completed,
            Err(ended) => {
                // A store that panics. The effect has happened, and nobody knows whether it is marked.
                expired.count(keep.event_id(), Ending::Unknown);
                Err(LedgerError::Unavailable(ended.into()))
            }
        }
    }

    async fn abandon(mut self) {
        if let Some(held) = self.held.take() {
            // A runtime that ends meanwhile leaves the lease to its expiry.
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

impl Held {
    async fn complete(mut self) -> Result<(), LedgerError> {
        self.stop_renewing().await;
        let end = instant() + self.times.life;
        let marked = loop {
            match self.keep.complete().await {
                Err(_) if instant() < end => sleep(PAUSE_OF_COMPLETION).await,
                marked => break marked,
            }
        };
        self.count(&marked, true);
        match marked {
            Ok(Standing::Ours | Standing::Lapsed) => Ok(()),
            Ok(Standing::Taken) => Err(LedgerError::Lost(
                "its lease had expired, and another has taken the event; it may have its effect twice".into(),
            )),
            Err(trouble) => Err(LedgerError::Unavailable(trouble)),
        }
    }

    async fn release(mut self) {
        self.stop_renewing().await;
        let released = self.keep.release().await;
        self.count(&released, false);
    }

    /// Lets one that is under way come to its end: later it would take back what is given away now.
    async fn stop_renewing(&mut self) {
        self.stop.notify_one();
        // One that panicked has ended too.
        let _ = (&mut self.renewals).await;
    }

    /// Whether the lease has ended too soon, if that was not counted before.
    fn count(&self, end: &Result<Standing, Trouble>, effect_happened: bool) {
        let known = *self.known.borrow();
        match end {
            _ if known.taken => {}
            Ok(Standing::Ours) => {}
            Ok(Standing::Lapsed) => self.expired.count(self.keep.event_id(), Ending::Lapsed),
            Ok(Standing::Taken) => self.expired.count(self.keep.event_id(), Ending::Taken),
            Err(_) if effect_happened || known.is_lost() => {
                self.expired.count(self.keep.event_id(), Ending::Unknown);
            }
            // It was abandoned in time, and expires with nobody at work.
            Err(_) => {}
        }
    }
}

/// What renews a lease.
struct Renewing {
    keep: Arc<dyn Keep>,
    life: Duration,
    known: watch::Sender<Known>,
    expired: Expired,
}

impl Renewing {
    async fn until(self, stop: Arc<Notify>) {
        let mut pause = self.life / RENEWALS_IN_A_LIFE;
        while timeout(pause, stop.notified()).await.is_err() {
            let asked = instant();
            let standing = self.keep.renew().await;
            pause = self.life / if standing.is_ok() { RENEWALS_IN_A_LIFE } else { RENEWALS_AFTER_FAILURE };
            match standing {
                Ok(Standing::Ours) => self.lives_from(asked),
                Ok(Standing::Lapsed) => {
                    self.expired.count(self.keep.event_id(), Ending::Lapsed);
                    self.lives_from(asked);
                }
                Ok(Standing::Taken) => {
                    self.expired.count(self.keep.event_id(), Ending::Taken);
                    return self.known.send_modify(|known| known.taken = true);
                }
                Err(trouble) => {
                    tracing::warn!(event_id = self.keep.event_id(), %trouble, "a lease could not be renewed; it is tried again soon");
                }
            }
        }
    }

    fn lives_from(&self, asked: Instant) {
        self.known.send_modify(|known| known.until = asked + self.life);
    }
}
