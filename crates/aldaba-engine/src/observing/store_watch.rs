//! Looks now and then at what nothing counts: endpoints that have failed, client certificates, the oldest delivery, the dead
//! letter, and the scheduler. So a question for these numbers reads nothing.

use super::certificate_dates::date_certificates;
use super::certificates::{CertificateExpiries, CertificateKind};
use super::statistics::Statistics;
use crate::Vault;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Inbox, SchedulingQuestion};
use aldaba_delivery::{OrgId, Reason, Timestamp};
use aldaba_store::{Change, Changed, DeadLetterCounts, Done, Error, Seq, Store, WaitingLanes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often the scheduler is asked between two looks at the store.
const SCHEDULER_LOOKS: u32 = 3;
/// A look that takes long is followed by a pause of at least this many times as long.
const PAUSE_FACTOR: u32 = 50;
/// The pause between two slices of a walk.
const SLICE_PAUSE: Duration = Duration::from_millis(10);

/// How long a small write may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The setting that a probe writes.
const PROBE_SETTING: &str = "probe";

/// Writes a few bytes, to see whether anything can be written.
pub(crate) async fn probe_store(store: &dyn Store, now: Timestamp) -> Result<(), Error> {
    let value = now.millis().to_be_bytes().to_vec();
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
    store.change(Change::PutSetting { name: PROBE_SETTING, value }, None, done);
    answered.await.map_err(|_| Error::Closed)?.map(drop)
}

/// What the background task has seen.
#[derive(Debug, Default)]
pub(crate) struct StoreView {
    /// When it has read the store last. `None`: not yet.
    pub(crate) seen_at: Option<Timestamp>,
    /// How many endpoints are given up.
    pub(crate) failed_endpoints: BTreeMap<OrgId, u64>,
    /// When the first client certificate of each organization expires.
    pub(crate) certificates: BTreeMap<OrgId, Timestamp>,
    /// When the oldest delivery that waits might first go out, of endpoints to which anything is sent. It may be in the future.
    pub(crate) oldest_waiting: BTreeMap<OrgId, Timestamp>,
    /// How many deliveries wait for a later time that their sender has named, or for an endpoint to which nothing is sent.
    pub(crate) deferred: BTreeMap<OrgId, u64>,
    /// How many deliveries are in the dead letter.
    pub(crate) dead_letter: Vec<(Reason, u64)>,
    /// Whether a small write has ended well. `None`: none has ended yet.
    pub(crate) is_writable: Option<bool>,
    pub(crate) scheduler: SchedulerLoad,
}

/// What the scheduler has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerLoad {
    /// Requests in flight, and results that are not written yet.
    pub in_flight: usize,
    /// Lanes that have their endpoint in memory.
    pub awake_lanes: usize,
    /// Lanes that only wait.
    pub idle_lanes: usize,
    /// Origins that are held because they look down, counted for each organization.
    pub held_gates: usize,
}

pub(crate) struct StoreWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Inbox,
    pub(crate) statistics: Statistics,
    pub(crate) certificates: CertificateExpiries,
    pub(crate) vault: Vault,
    pub(crate) interval: Duration,
}

impl Task for StoreWatch {
    const NAME: &'static str = "store-watch";

    async fn run(&mut self) -> StoreClosed {
        loop {
            self.probe().await;
            let began = self.statistics.clock.monotonic();
            match self.look().await {
                Err(Error::Closed) => return StoreClosed,
                // The next look tells as much.
                Err(error) => tracing::debug!(%error, "cannot look at the store"),
                Ok(()) => {}
            }
            let took = self.statistics.clock.monotonic().saturating_sub(began);
            let pause = self.interval.max(took * PAUSE_FACTOR) / SCHEDULER_LOOKS;
            for _ in 0..SCHEDULER_LOOKS {
                if let Some(load) = self.inbox.ask(SchedulingQuestion::Load).await {
                    self.statistics.view.lock().scheduler = load;
                }
                tokio::time::sleep(pause).await;
            }
        }
    }
}

impl StoreWatch {
    /// Writes a few bytes, to see whether anything can be written. A store with too much to write does write.
    async fn probe(&self) {
        let probe =
            tokio::time::timeout(PROBE_TIMEOUT, probe_store(&*self.store, self.statistics.clock.now()));
        let is_writable = matches!(probe.await, Ok(Ok(()) | Err(Error::Busy)));
        self.statistics.view.lock().is_writable = Some(is_writable);
    }

    async fn look(&self) -> Result<(), Error> {
        let failed = self.store.failed_endpoints().await?;
        let failed = failed.into_iter().map(|failed| (failed.org, failed.endpoints)).collect();
        date_certificates(&*self.store, &self.vault).await?;
        let certificates = self.store.expiring_certificates().await?;
        let certificates: BTreeMap<_, _> =
            certificates.into_iter().map(|first| (first.org, first.at)).collect();
        let waiting = self.waiting().await?;
        let dead_letter = self.dead_letter().await?;
        self.certificates.put(CertificateKind::Client, certificates.values().min().copied());
        let mut view = self.statistics.view.lock();
        view.seen_at = Some(self.statistics.clock.now());
        view.failed_endpoints = failed;
        view.certificates = certificates;
        view.oldest_waiting = waiting.oldest;
        view.deferred = waiting.deferred;
        view.dead_letter = dead_letter;
        Ok(())
    }

    async fn waiting(&self) -> Result<WaitingLanes, Error> {
        let (now, mut all) = (self.statistics.clock.now(), WaitingLanes::default());
        loop {
            let WaitingLanes { oldest, deferred, next } = self.store.waiting_lanes(all.next, now).await?;
            for (org, at) in oldest {
                let oldest = all.oldest.entry(org).or_insert(at);
                *oldest = at.min(*oldest);
            }
            for (org, more) in deferred {
                *all.deferred.entry(org).or_default() += more;
            }
            all.next = next;
            if next.is_none() {
                return Ok(all);
            }
            tokio::time::sleep(SLICE_PAUSE).await;
        }
    }

    async fn dead_letter(&self) -> Result<Vec<(Reason, u64)>, Error> {
        let (mut counts, mut after): (Vec<_>, Option<Seq>) =
            (Reason::ALL.map(|reason| (reason, 0)).into(), None);
        loop {
            let DeadLetterCounts { counts: found, next } = self.store.dead_letter_reasons(after).await?;
            for (reason, more) in found {
                counts.iter_mut().filter(|(counted, _)| *counted == reason).for_each(|(_, sum)| *sum += more);
            }
            after = next;
            if after.is_none() {
                return Ok(counts);
            }
            tokio::time::sleep(SLICE_PAUSE).await;
        }
    }
}
