//! What survives a crash: the real store's database, in memory.

use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::operations::everything::{self, Everything};
use aldaba_store::operations::{Monotonic, Result};
use aldaba_store::sqlite::{Database, in_memory_for_good, without_bugs};
use aldaba_store::{BackendReads, DeliveryStatus, Endpoint, LiveCounts, Seq};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// An empty one. To copy it is quicker than to make its schema.
static EMPTY: LazyLock<Mutex<Disk>> = LazyLock::new(|| {
    Mutex::new(Disk { database: in_memory_for_good().expect("SQLite needs no disk for it") })
});

#[derive(Debug)]
pub struct Disk {
    pub(super) database: Database,
}

impl Default for Disk {
    fn default() -> Self {
        EMPTY.lock().copy()
    }
}

impl Disk {
    pub(super) fn copy(&self) -> Self {
        Self { database: self.database.copy().expect("memory for a copy") }
    }

    pub(super) fn restart(&mut self, clock: Monotonic) {
        self.database.restart(clock).expect("a start on rows that were written");
    }

    pub(super) fn live_counts(&self) -> LiveCounts {
        self.database.live_counts()
    }

    /// A read of the checks and the clients, which no fault and no planted bug befalls.
    pub(super) fn look<T>(&self, read: impl FnOnce(&dyn BackendReads) -> Result<T>) -> T {
        without_bugs(|| self.database.read(read)).expect("a read of rows that were written")
    }

    /// The tables that have these bytes in a row that is there.
    pub fn tables_with(&self, bytes: &[u8]) -> Vec<String> {
        without_bugs(|| self.database.tables_with(bytes)).expect("a read of rows that were written")
    }

    /// Loads all that is there, and all that ever was.
    pub fn everything(&self) -> Everything {
        self.look(|reading| Everything::read(reading))
    }

    /// With those that were removed.
    pub fn endpoints(&self) -> BTreeMap<EndpointId, Endpoint> {
        self.look(|reading| everything::endpoints(reading))
    }

    /// What waits, with the endpoints that it waits for.
    pub fn waiting(&self) -> Vec<(DeliveryStatus, Endpoint)> {
        self.look(|reading| {
            let mut waiting = Vec::new();
            for delivery in everything::waiting(reading)? {
                waiting.extend(endpoint(reading, delivery.endpoint)?.map(|endpoint| (delivery, endpoint)));
            }
            Ok(waiting)
        })
    }

    pub fn is_replaying(&self) -> bool {
        self.look(|reading| everything::is_replaying(reading))
    }

    /// Whether an event of a source is or was there, by its id if it has one.
    pub fn has_event(&self, app: AppId, id: Option<&str>, body: &[u8]) -> bool {
        self.look(|reading| everything::has_event(reading, app, id, body))
    }

    /// The rounds of an event that have failed, and that a repeat opens again. Endpoints that came later do not count.
    pub fn failed_rounds(&self, app: AppId, id: Option<&str>) -> Vec<Seq> {
        id.map_or_else(Vec::new, |id| self.look(|reading| everything::failed_rounds(reading, app, id)))
    }
}

/// A deleted one too.
pub(super) fn endpoint(reading: &dyn BackendReads, id: EndpointId) -> Result<Option<Endpoint>> {
    everything::endpoint(reading, id)
}
