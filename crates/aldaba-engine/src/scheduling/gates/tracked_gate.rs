//! A gate with what only memory knows of it.

use crate::scheduling::lane::{FixedMap, Ramp};
use aldaba_delivery::{AppId, EndpointId, Gate, GateKey};
use aldaba_store::{GateRecord, Seq};
use std::collections::{BTreeMap, BTreeSet};

/// A gate and who waits at it.
#[derive(Default)]
pub(super) struct TrackedGate {
    pub(super) gate: Gate,
    /// The failure that the present hold comes from.
    pub(super) why: String,
    /// While those are let go that had to wait.
    pub(super) ramp: Option<Ramp>,
    /// It was opened by a hand. A record from before may have been written after that: the next one puts it
    /// right.
    pub(super) opened_by_operator: bool,
    /// The delivery whose attempt is the probe. An older one may still be on its way, from before the
    /// gate was last opened: it is a probe no longer.
    pub(super) prober: Option<Seq>,
    /// Those of the lanes behind it that wait for the probe's end.
    pub(super) waiters: BTreeSet<EndpointId>,
    pub(super) behind: LanesBehind,
    /// Something happened at it since the last look for gates to forget.
    pub(super) touched: bool,
}

impl TrackedGate {
    pub(super) fn record(&self, key: &GateKey) -> GateRecord {
        GateRecord { key: key.clone(), gate: self.gate.clone(), why: self.why.clone() }
    }

    /// Whether the store may have it. A count of failures that led to no hold is not kept.
    pub(super) fn may_be_on_disk(&self) -> bool {
        self.gate.held_until.is_some() || self.opened_by_operator
    }
}

/// What waits behind a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateBacklog {
    pub lanes: usize,
    pub deliveries: usize,
}

impl GateBacklog {
    fn add(&mut self, deliveries: usize) {
        self.lanes += 1;
        self.deliveries += deliveries;
    }

    fn subtract(&mut self, deliveries: usize) {
        self.lanes -= 1;
        self.deliveries -= deliveries;
    }
}

/// The lanes that a gate has turned away, each until its next turn. They are counted as they come and go, so that
/// nobody who asks how many there are makes the dispatcher walk over them.
#[derive(Default)]
pub(super) struct LanesBehind {
    /// With how many deliveries each had in memory.
    lanes: BTreeMap<EndpointId, (AppId, usize)>,
    all: GateBacklog,
    of_app: FixedMap<AppId, GateBacklog>,
}

impl LanesBehind {
    pub(super) fn insert(&mut self, endpoint: EndpointId, app: AppId, deliveries: usize) {
        self.remove(endpoint);
        self.lanes.insert(endpoint, (app, deliveries));
        self.all.add(deliveries);
        self.of_app.entry(app).or_default().add(deliveries);
    }

    pub(super) fn remove(&mut self, endpoint: EndpointId) {
        let Some((app, deliveries)) = self.lanes.remove(&endpoint) else { return };
        self.all.subtract(deliveries);
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.subtract(deliveries);
            if of_app.lanes == 0 {
                self.of_app.remove(&app);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn endpoints(&self) -> impl Iterator<Item = EndpointId> {
        self.lanes.keys().copied()
    }

    /// How many there are, of all applications or of one.
    pub(super) fn count(&self, app: Option<AppId>) -> GateBacklog {
        match app {
            None => self.all,
            Some(app) => self.of_app.get(&app).copied().unwrap_or_default(),
        }
    }
}
