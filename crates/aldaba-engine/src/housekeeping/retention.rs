//! Removes what is no longer kept, a little at a time.
//!
//! A round walks all endpoints, application by application, and then what belongs to none: old messages that
//! went to nobody, keys that have expired, gates and deleted applications. Reads find, slices of the writer
//! remove, and between two slices there is a pause, so that neither accepting nor delivering feels it. A
//! round that is cut off, by an error or a crash, is begun again: everything that it had to do is still to
//! be found.

mod newest;
mod steady;
mod sums;
#[cfg(test)]
mod tests;

use crate::clock::MAX_TRUSTED_STEP;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::FORGOTTEN_AFTER;
use crate::{Clock, ClockTrust, Credentials, Policies};
use aldaba_delivery::policy::RetentionDefaults;
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use aldaba_store::{
    Cut, Done, Error, GateRecord, KeptEndpoint, PayloadsCursor, Removal, Removed, RemovedCounts, Seq,
    Settled, Stale, Store, StoredKey,
};
use newest::Newest;
use std::sync::Arc;
use std::time::Duration;
use steady::Steady;
use tokio::sync::oneshot;

/// Endpoints that one read names, and that one read looks for old deliveries of.
const ENDPOINTS: usize = 500;
/// What one read finds at most, to be removed in slices.
const FOUND: usize = 2000;
/// What one slice removes at most; the store ends it earlier when its time is over.
const SLICE: usize = 100;
/// The shortest pause between two slices. A longer slice is followed by a pause that is longer as well.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 4;
/// How long until a slice is tried again that the store had no room for.
const BUSY: Duration = Duration::from_secs(1);
/// Rows that one step of a walk looks at.
const STEP: usize = 5000;
/// Keys that one round looks at; the next round goes on from there.
const KEYS: usize = 100_000;
/// The same for payloads whose time has come: those that something still waits for are passed over again and again.
const PAYLOADS: usize = 100_000;
/// Every so many rounds the walk over messages starts from the beginning, in case one was passed over.
const WHOLE: u32 = 60;
/// The share of its time that a round may take of the time between two rounds.
const SHARE: u32 = 50;

/// What is kept for how long, where no policy says so, and how often to look.
#[derive(Clone, Copy, Debug)]
pub struct RetentionOptions {
    /// Its span for delivered ones is that of messages which went to nobody, too.
    pub defaults: RetentionDefaults,
    /// Counters of endpoints per minute.
    pub counters: Duration,
    /// Replays that have ended. One is kept for as long as the idempotency key that it was started with, too.
    pub replays: Duration,
    /// Rows of the audit log.
    pub audit: Duration,
    pub interval: Duration,
}

impl Default for RetentionOptions {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        Self {
            defaults: RetentionDefaults { delivered: Some(days(90)), dead: Some(days(365)) },
            counters: days(30),
            replays: days(30),
            audit: days(365),
            interval: Duration::from_secs(60),
        }
    }
}

pub(crate) struct Retention {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policies: Policies,
    pub(crate) credentials: Credentials,
    pub(crate) options: RetentionOptions,
    pub(crate) idempotency_kept: Duration,
    pub(crate) trust: ClockTrust,
    pub(crate) walks: Walks,
}

/// How far the walks have come that last longer than a round.
#[derive(Default)]
pub(crate) struct Walks {
    rounds: u32,
    /// Messages that were made before this moment were looked at.
    messages_before: Option<Timestamp>,
    payloads: Option<PayloadsCursor>,
    keys: Option<StoredKey>,
    /// Gates on disk that were not remembered at the start, being over the limits.
    surplus_gates: Vec<Stale>,
}

impl Walks {
    pub(crate) fn new(surplus_gates: &[GateRecord]) -> Self {
        // One that has been held anew since then stays.
        let as_found = |record: &GateRecord| {
            let until = record.gate.held_until?;
            Some(Stale::Gate(record.key.clone(), until + Duration::from_millis(1)))
        };
        Self { surplus_gates: surplus_gates.iter().filter_map(as_found).collect(), ..Self::default() }
    }
}

impl Task for Retention {
    const NAME: &'static str = "retention";

    async fn run(&mut self) -> StoreClosed {
        self.walks =
            Walks { surplus_gates: std::mem::take(&mut self.walks.surplus_gates), ..Walks::default() };
        let mut steady = Steady::new(self.clock.now(), self.clock.monotonic());
        let mut pause = self.options.interval;
        loop {
            tokio::time::sleep(pause).await;
            let begun = self.clock.monotonic();
            let now = self.clock.now();
            if steady.look(now, begun) && self.trust.may_end_by_time() {
                let (removed, end) = self.run_once(now).await;
                if removed != RemovedCounts::default() {
                    let RemovedCounts { deliveries, attempts, messages, payloads, keys, .. } = removed;
                    let RemovedCounts { counters, gates, replays, endpoints, applications, .. } = removed;
                    let RemovedCounts { audit, revocations, .. } = removed;
                    tracing::info!(
                        deliveries,
                        attempts,
                        messages,
                        payloads,
                        keys,
                        counters,
                        gates,
                        replays,
                        endpoints,
                        applications,
                        audit,
                        revocations,
                        "removed what is no longer kept"
                    );
                }
                match end {
                    Ok(()) => {}
                    Err(Error::Closed) => return StoreClosed,
                    Err(error) => {
                        tracing::warn!(%error, "cannot remove what is no longer kept; trying again");
                    }
                }
            }
            // Where there is very much to look at, it is looked at less often.
            let took = self.clock.monotonic().saturating_sub(begun);
            pause = self.options.interval.max(took.saturating_mul(SHARE));
        }
    }
}

impl Retention {
    /// One round: what was removed, and whether it came to its end.
    pub(crate) async fn run_once(&mut self, now: Timestamp) -> (RemovedCounts, Result<(), Error>) {
        let mut round = Round { removed: RemovedCounts::default(), keeper: self, now };
        let end = round.run().await;
        (round.removed, end)
    }
}

/// Where the history of an endpoint ends.
struct History {
    app: AppId,
    /// It goes with the last of its history.
    leaves: bool,
    cut: Cut,
}

struct Round<'a> {
    keeper: &'a mut Retention,
    now: Timestamp,
    removed: RemovedCounts,
}

impl Round<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        if self.keeper.walks.rounds.is_multiple_of(WHOLE) {
            self.keeper.walks.messages_before = None;
        }
        self.keeper.walks.rounds = self.keeper.walks.rounds.wrapping_add(1);
        self.sums().await?;
        self.endpoints().await?;
        self.messages().await?;
        self.payloads().await?;
        self.keys().await?;
        self.replays().await?;
        self.applications().await?;
        self.audit().await?;
        self.revocations().await?;
        self.gates().await
    }

    /// Those that memory has forgotten.
    async fn gates(&mut self) -> Result<(), Error> {
        let surplus = std::mem::take(&mut self.keeper.walks.surplus_gates);
        self.remove(surplus).await?;
        let (store, before) = (self.keeper.store.clone(), self.now.before(FORGOTTEN_AFTER));
        self.until_gone(|| store.old_gates(before, FOUND)).await
    }

    /// Deliveries with their attempts and messages, counters, and endpoints that are gone.
    async fn endpoints(&mut self) -> Result<(), Error> {
        let (mut after, mut cuts) = (None, Vec::new());
        let mut application: Vec<KeptEndpoint> = Vec::new();
        loop {
            let page = self.keeper.store.kept_endpoints(after, ENDPOINTS).await?;
            let last = page.len() < ENDPOINTS;
            for endpoint in page {
                after = Some((endpoint.app, endpoint.id));
                if application.first().is_some_and(|first| first.app != endpoint.app) {
                    cuts.extend(self.cuts(std::mem::take(&mut application)).await?);
                }
                application.push(endpoint);
            }
            if last {
                cuts.extend(self.cuts(std::mem::take(&mut application)).await?);
            }
            let whole = if last { 0 } else { cuts.len() % ENDPOINTS };
            let later = cuts.split_off(cuts.len() - whole);
            for batch in cuts.chunks(ENDPOINTS) {
                self.cut(batch).await?;
            }
            cuts = later;
            if last {
                return Ok(());
            }
        }
    }

    /// Where the history of each endpoint of one application ends.
    async fn cuts(&self, endpoints: Vec<KeptEndpoint>) -> Result<Vec<History>, Error> {
        let Retention { policies, options, .. } = &*self.keeper;
        let rule = |endpoint: &KeptEndpoint| policies.of(endpoint.org, &endpoint.policy).retention;
        let counted: Vec<(EndpointId, u32)> =
            endpoints.iter().filter_map(|endpoint| Some((endpoint.id, rule(endpoint).newest?))).collect();
        let newest = self.newest(&counted).await?;
        let cut = |endpoint: KeptEndpoint| {
            let rule = rule(&endpoint);
            let cutoffs = rule.cutoffs(&options.defaults, endpoint.deleted, self.now);
            let place = |at| Settled { at, seq: Seq(i64::MIN) };
            let oldest = rule.newest.and_then(|count| newest.oldest_of(count));
            let cut = Cut {
                endpoint: endpoint.id,
                delivered: cutoffs.delivered.map(place).max(oldest),
                dead: cutoffs.dead.map(place),
                discarded: cutoffs.discarded.map(place),
            };
            History { app: endpoint.app, leaves: endpoint.deleted || endpoint.direct, cut }
        };
        Ok(endpoints.into_iter().map(cut).collect())
    }

    /// The newest delivered deliveries of an application, of those endpoints whose policy counts them.
    async fn newest(&self, counted: &[(EndpointId, u32)]) -> Result<Newest, Error> {
        let mut newest = Newest::of(counted.iter().map(|(_, count)| *count).max().unwrap_or(0));
        for part in counted.chunks(newest.endpoints_at_once()) {
            let endpoints = part.iter().map(|(endpoint, _)| *endpoint).collect();
            let found = self.keeper.store.newest_delivered(endpoints, newest.floor(), newest.most()).await?;
            newest.add(found);
        }
        Ok(newest)
    }

    async fn cut(&mut self, histories: &[History]) -> Result<(), Error> {
        let store = self.keeper.store.clone();
        let endpoints: Vec<EndpointId> = histories.iter().map(|history| history.cut.endpoint).collect();
        let cut: Vec<Cut> = histories.iter().map(|history| history.cut).collect();
        let mut apps: Vec<AppId> = histories.iter().map(|history| history.app).collect();
        apps.dedup();
        let counters_before = self.now.before(self.keeper.options.counters);
        self.until_gone(|| store.cut_off(cut.clone(), FOUND)).await?;
        self.until_gone(|| store.old_application_counters(apps.clone(), counters_before, FOUND)).await?;
        self.until_gone(|| store.old_counters(endpoints.clone(), counters_before, FOUND)).await?;
        let leaving: Vec<_> =
            histories.iter().filter(|history| history.leaves).map(|history| history.cut.endpoint).collect();
        if leaving.is_empty() {
            return Ok(());
        }
        let unused = store.unused_endpoints(leaving).await?;
        self.remove(unused).await
    }

    /// Finds and removes until a read finds less than it could.
    async fn until_gone(&mut self, find: impl Fn() -> aldaba_store::Read<Vec<Stale>>) -> Result<(), Error> {
        loop {
            let stale = find().await?;
            let (last, before) = (stale.len() < FOUND, self.removed);
            self.remove(stale).await?;
            // The second: what is found and does not go would be found without end.
            if last || self.removed == before {
                return Ok(());
            }
        }
    }

    /// Messages that went to nobody.
    async fn messages(&mut self) -> Result<(), Error> {
        let Some(kept) = self.keeper.options.defaults.delivered else { return Ok(()) };
        let before = self.now.before(kept);
        let since = self.keeper.walks.messages_before.unwrap_or(Timestamp::MIN);
        let mut from = None;
        loop {
            let walked = self.keeper.store.lonely_messages(from, (since, before), STEP).await?;
            self.remove(walked.stale).await?;
            from = walked.until;
            if !walked.more {
                self.keeper.walks.messages_before = Some(before);
                return Ok(());
            }
        }
    }

    /// Payloads that were to be kept for a time of their own.
    async fn payloads(&mut self) -> Result<(), Error> {
        for _ in 0..PAYLOADS / STEP {
            let from = self.keeper.walks.payloads;
            let walked = self.keeper.store.old_payloads(from, self.now, STEP).await?;
            self.remove(walked.stale).await?;
            self.keeper.walks.payloads = walked.until.filter(|_| walked.more);
            if !walked.more {
                break;
            }
        }
        Ok(())
    }

    async fn keys(&mut self) -> Result<(), Error> {
        for _ in 0..KEYS / STEP {
            let from = self.keeper.walks.keys.clone();
            let walked = self.keeper.store.expired_keys(from, self.surely_past(), STEP).await?;
            self.remove(walked.stale).await?;
            self.keeper.walks.keys = walked.until.filter(|_| walked.more);
            if !walked.more {
                break;
            }
        }
        Ok(())
    }

    /// A moment that is past though the trusted clock may be ahead: what must not come back to life, keys and
    /// revocations, is kept until then.
    fn surely_past(&self) -> Timestamp {
        self.now.before(MAX_TRUSTED_STEP)
    }

    /// Those that have ended long ago. A repeat of the request that started one must still find it.
    async fn replays(&mut self) -> Result<(), Error> {
        let (store, kept) = (self.keeper.store.clone(), self.keeper.options.replays);
        let before = self.now.before(kept.max(self.keeper.idempotency_kept));
        self.until_gone(|| store.ended_replays(before, FOUND)).await
    }

    async fn audit(&mut self) -> Result<(), Error> {
        let (store, before) = (self.keeper.store.clone(), self.now.before(self.keeper.options.audit));
        self.until_gone(|| store.old_audit(before, FOUND)).await
    }

    /// Ended tokens that would have ended by themselves in the meantime.
    async fn revocations(&mut self) -> Result<(), Error> {
        let (store, before) = (self.keeper.store.clone(), self.surely_past());
        self.until_gone(|| store.needless_revocations(before, FOUND)).await
    }

    async fn applications(&mut self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let walked = self.keeper.store.unused_applications(after, STEP).await?;
            self.remove(walked.stale).await?;
            after = walked.until;
            if !walked.more {
                return Ok(());
            }
        }
    }

    async fn remove(&mut self, stale: Vec<Stale>) -> Result<(), Error> {
        let mut rest = &stale[..];
        while !rest.is_empty() {
            let slice = &rest[..rest.len().min(SLICE)];
            let Removed { seen, counts, took } = match self.slice(slice.to_vec()).await {
                // The writer has better things to do; what was found is still to go.
                Err(Error::Busy) => {
                    tokio::time::sleep(BUSY).await;
                    continue;
                }
                removed => removed?,
            };
            self.removed += counts;
            self.keeper.credentials.forget(&slice[..seen.min(slice.len())]);
            rest = &rest[seen.min(slice.len())..];
            tokio::time::sleep(PAUSE.max(took * PAUSE_FACTOR)).await;
        }
        Ok(())
    }

    async fn slice(&self, items: Vec<Stale>) -> Result<Removed, Error> {
        let (answer, answered) = oneshot::channel();
        let event_ids_kept = self.keeper.idempotency_kept + MAX_TRUSTED_STEP;
        let removal = Removal { items, now: self.now, event_ids_kept };
        self.keeper.store.remove(removal, Done::new(move |result| drop(answer.send(result))));
        answered.await.map_err(|_| Error::Closed)?
    }
}
