//! Cache of application configurations, with shared reads.
//!
//! However many messages need a configuration at once, one read fetches it: a change to an endpoint under
//! load costs one read, not one per message.

use aldaba_delivery::AppId;
use aldaba_store::{ApplicationRef, Error, Read, Tenant};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio::sync::Notify;

type TenantResult = Result<Option<Arc<Tenant>>, Error>;

pub(crate) struct Tenants {
    limits: TenantLimits,
    table: Mutex<TenantTable>,
}

/// Past either limit the cache is cleared. An application larger than the limit is cached alone.
#[derive(Clone, Copy)]
struct TenantLimits {
    applications: usize,
    endpoints: usize,
}

#[derive(Default)]
struct TenantTable {
    cached: HashMap<ApplicationRef, Arc<Tenant>>,
    /// The keys of each cached application: its id, its uid, or both.
    names: HashMap<AppId, Vec<ApplicationRef>>,
    /// The total weight, in endpoints.
    endpoints: usize,
    /// The pending reads, at most one per request.
    reads: HashMap<ApplicationRef, Arc<PendingRead>>,
}

/// A read that others wait for. They wake in order of arrival (a `watch` channel would not keep it), so that
/// simulations are reproducible.
#[derive(Default)]
struct PendingRead {
    outcome: Mutex<Option<ReadOutcome>>,
    finished: Notify,
}

#[derive(Clone)]
enum ReadOutcome {
    Found(TenantResult),
    /// The reading request was cancelled.
    Cancelled,
}

impl PendingRead {
    fn finish(&self, outcome: ReadOutcome) {
        *self.outcome.lock() = Some(outcome);
        self.finished.notify_waiters();
    }

    async fn outcome(&self) -> ReadOutcome {
        loop {
            let mut finished = std::pin::pin!(self.finished.notified());
            // From here on no notification is missed.
            finished.as_mut().enable();
            if let Some(outcome) = self.outcome.lock().clone() {
                return outcome;
            }
            finished.await;
        }
    }
}

enum TenantLookup<'a> {
    Cached(Arc<Tenant>),
    Read(TenantRead<'a>),
    /// Another request reads it.
    Wait(Arc<PendingRead>),
}

impl Tenants {
    pub(crate) fn new(applications: usize, endpoints: usize) -> Self {
        Self { limits: TenantLimits { applications, endpoints }, table: Mutex::default() }
    }

    /// From the cache where possible, else by `read`, which concurrent callers share.
    pub(super) async fn get(
        &self,
        which: &ApplicationRef,
        read: impl Fn() -> Read<Option<Tenant>>,
    ) -> TenantResult {
        let mut asked_before_the_read = true;
        loop {
            let pending = match self.look_up(which) {
                TenantLookup::Cached(tenant) => return Ok(Some(tenant)),
                TenantLookup::Read(reading) => return reading.finish(read().await),
                TenantLookup::Wait(pending) => pending,
            };
            match pending.outcome().await {
                ReadOutcome::Cancelled => {}
                // That read may have begun before the application was created; the next one did not.
                ReadOutcome::Found(Ok(None)) if asked_before_the_read => {}
                ReadOutcome::Found(found) => return found,
            }
            asked_before_the_read = false;
        }
    }

    fn look_up(&self, which: &ApplicationRef) -> TenantLookup<'_> {
        let mut table = self.table.lock();
        if let Some(tenant) = table.cached.get(which) {
            return TenantLookup::Cached(tenant.clone());
        }
        if let Some(pending) = table.reads.get(which) {
            return TenantLookup::Wait(pending.clone());
        }
        let pending = Arc::new(PendingRead::default());
        table.reads.insert(which.clone(), pending.clone());
        TenantLookup::Read(TenantRead { tenants: self, which: which.clone(), found: None, pending })
    }

    /// Drops a stale configuration. A newer one stays: several messages may report the same stale one.
    pub(super) fn forget(&self, which: &ApplicationRef, old: &Arc<Tenant>) {
        let mut table = self.table.lock();
        if table.cached.get(which).is_some_and(|cached| Arc::ptr_eq(cached, old)) {
            table.forget(which);
        }
    }

    /// Drops a deleted application. A read that began earlier may bring it back; its version is refused when
    /// used.
    pub(super) fn forget_application(&self, app: AppId) {
        let mut table = self.table.lock();
        for which in table.names.remove(&app).unwrap_or_default() {
            table.forget(&which);
        }
    }

    /// Applications, keys and total weight.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize, usize) {
        let table = self.table.lock();
        (table.names.len(), table.cached.len(), table.endpoints)
    }
}

impl TenantTable {
    fn insert(&mut self, which: ApplicationRef, tenant: Arc<Tenant>, limits: TenantLimits) {
        let more = tenant.weight();
        if self.cached.len() >= limits.applications || self.endpoints.saturating_add(more) > limits.endpoints
        {
            // Rare, and cheap to refill: one read per application.
            self.cached.clear();
            self.names.clear();
            self.endpoints = 0;
        }
        // Another application may have had this key.
        self.forget(&which);
        self.endpoints += more;
        self.names.entry(tenant.application.id).or_default().push(which.clone());
        self.cached.insert(which, tenant);
    }

    fn forget(&mut self, which: &ApplicationRef) {
        let Some(tenant) = self.cached.remove(which) else { return };
        self.endpoints -= tenant.weight();
        if let Entry::Occupied(mut names) = self.names.entry(tenant.application.id) {
            names.get_mut().retain(|name| name != which);
            if names.get().is_empty() {
                names.remove();
            }
        }
    }
}

/// A pending read. Waiting requests are woken when it ends or is cancelled.
struct TenantRead<'a> {
    tenants: &'a Tenants,
    which: ApplicationRef,
    found: Option<TenantResult>,
    pending: Arc<PendingRead>,
}

impl TenantRead<'_> {
    fn finish(mut self, read: Result<Option<Tenant>, Error>) -> TenantResult {
        let found = read.map(|tenant| tenant.map(Arc::new));
        self.found = Some(found.clone());
        found
    }
}

impl Drop for TenantRead<'_> {
    fn drop(&mut self) {
        let mut table = self.tenants.table.lock();
        table.reads.remove(&self.which);
        if let Some(Ok(Some(tenant))) = &self.found {
            table.insert(self.which.clone(), tenant.clone(), self.tenants.limits);
        }
        drop(table);
        self.pending.finish(self.found.take().map_or(ReadOutcome::Cancelled, ReadOutcome::Found));
    }
}

#[cfg(test)]
mod tests;
