//! The configurations of applications that are kept in memory, and the reads that fetch them.
//!
//! However many messages want a configuration at once, one read fetches it: a change to an endpoint
//! under load costs one read, not one for each message on its way.

use aldaba_delivery::AppId;
use aldaba_store::{ApplicationRef, Error, Read, Tenant};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio::sync::Notify;

type Found = Result<Option<Arc<Tenant>>, Error>;

pub(crate) struct Tenants {
    most: Most,
    memory: Mutex<Memory>,
}

/// Past either of the two everything is forgotten and read again. An application that is larger than
/// the limit is kept alone.
#[derive(Clone, Copy)]
struct Most {
    applications: usize,
    endpoints: usize,
}

#[derive(Default)]
struct Memory {
    kept: HashMap<ApplicationRef, Arc<Tenant>>,
    /// By which names each of these is kept: its id, its uid, or both.
    names: HashMap<AppId, Vec<ApplicationRef>>,
    /// The weight of all that is kept, in endpoints.
    endpoints: usize,
    /// One for each read under way, so no more than there are requests.
    reads: HashMap<ApplicationRef, Arc<Underway>>,
}

/// A read that others wait for. They are woken in the order in which they came (a `watch` channel
/// would shuffle them), so that a simulated run can be repeated.
#[derive(Default)]
struct Underway {
    end: Mutex<Option<ReadEnd>>,
    over: Notify,
}

#[derive(Clone)]
enum ReadEnd {
    Found(Found),
    /// The request that read it is gone.
    CalledOff,
}

impl Underway {
    fn ended(&self, end: ReadEnd) {
        *self.end.lock() = Some(end);
        self.over.notify_waiters();
    }

    async fn end(&self) -> ReadEnd {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            // From here on no end is missed.
            over.as_mut().enable();
            if let Some(end) = self.end.lock().clone() {
                return end;
            }
            over.await;
        }
    }
}

enum Turn<'a> {
    Kept(Arc<Tenant>),
    Read(Reading<'a>),
    /// Someone reads it already.
    Wait(Arc<Underway>),
}

impl Tenants {
    pub(crate) fn new(applications: usize, endpoints: usize) -> Self {
        Self { most: Most { applications, endpoints }, memory: Mutex::default() }
    }

    /// From memory where possible, else by `read`, which is shared with all who ask meanwhile.
    pub(super) async fn get(&self, which: &ApplicationRef, read: impl Fn() -> Read<Option<Tenant>>) -> Found {
        let mut asked_before_the_read = true;
        loop {
            let underway = match self.turn(which) {
                Turn::Kept(tenant) => return Ok(Some(tenant)),
                Turn::Read(reading) => return reading.ended(read().await),
                Turn::Wait(underway) => underway,
            };
            match underway.end().await {
                ReadEnd::CalledOff => {}
                // That read may have begun before the application was made; the next one did not.
                ReadEnd::Found(Ok(None)) if asked_before_the_read => {}
                ReadEnd::Found(found) => return found,
            }
            asked_before_the_read = false;
        }
    }

    fn turn(&self, which: &ApplicationRef) -> Turn<'_> {
        let mut memory = self.memory.lock();
        if let Some(tenant) = memory.kept.get(which) {
            return Turn::Kept(tenant.clone());
        }
        if let Some(underway) = memory.reads.get(which) {
            return Turn::Wait(underway.clone());
        }
        let underway = Arc::new(Underway::default());
        memory.reads.insert(which.clone(), underway.clone());
        Turn::Read(Reading { tenants: self, which: which.clone(), found: None, underway })
    }

    /// `old` is not what the store has now. What was read after it stays: others may have been told
    /// the same before.
    pub(super) fn forget(&self, which: &ApplicationRef, old: &Arc<Tenant>) {
        let mut memory = self.memory.lock();
        if memory.kept.get(which).is_some_and(|kept| Arc::ptr_eq(kept, old)) {
            memory.forget(which);
        }
    }

    /// An application is gone. A read that had begun before may bring it back, to be noticed as old when it is used.
    pub(super) fn forget_application(&self, app: AppId) {
        let mut memory = self.memory.lock();
        for which in memory.names.remove(&app).unwrap_or_default() {
            memory.forget(&which);
        }
    }

    /// How many are kept, by how many names, and their weight.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize, usize) {
        let memory = self.memory.lock();
        (memory.names.len(), memory.kept.len(), memory.endpoints)
    }
}

impl Memory {
    fn keep(&mut self, which: ApplicationRef, tenant: Arc<Tenant>, most: Most) {
        let more = tenant.weight();
        if self.kept.len() >= most.applications || self.endpoints.saturating_add(more) > most.endpoints {
            // Rare, and cheap to fill again: one read an application.
            self.kept.clear();
            self.names.clear();
            self.endpoints = 0;
        }
        // By this name another application may have been kept.
        self.forget(&which);
        self.endpoints += more;
        self.names.entry(tenant.application.id).or_default().push(which.clone());
        self.kept.insert(which, tenant);
    }

    fn forget(&mut self, which: &ApplicationRef) {
        let Some(tenant) = self.kept.remove(which) else { return };
        self.endpoints -= tenant.weight();
        if let Entry::Occupied(mut names) = self.names.entry(tenant.application.id) {
            names.get_mut().retain(|name| name != which);
            if names.get().is_empty() {
                names.remove();
            }
        }
    }
}

/// A read under way. When it is over, or called off, those who wait hear of it.
struct Reading<'a> {
    tenants: &'a Tenants,
    which: ApplicationRef,
    found: Option<Found>,
    underway: Arc<Underway>,
}

impl Reading<'_> {
    fn ended(mut self, read: Result<Option<Tenant>, Error>) -> Found {
        let found = read.map(|tenant| tenant.map(Arc::new));
        self.found = Some(found.clone());
        found
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut memory = self.tenants.memory.lock();
        memory.reads.remove(&self.which);
        if let Some(Ok(Some(tenant))) = &self.found {
            memory.keep(self.which.clone(), tenant.clone(), self.tenants.most);
        }
        drop(memory);
        self.underway.ended(self.found.take().map_or(ReadEnd::CalledOff, ReadEnd::Found));
    }
}

#[cfg(test)]
mod tests;
