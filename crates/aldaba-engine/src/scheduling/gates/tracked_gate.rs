//! A gate with its state in memory.

use super::held_list::SharedBacklog;
use crate::scheduling::lane::Ramp;
use aldaba_delivery::{AppId, EndpointId, Gate, GateKey};
use aldaba_store::{GateRecord, Seq};
use std::collections::{BTreeMap, BTreeSet};

/// A gate and the lanes that it holds.
#[derive(Default)]
pub(super) struct TrackedGate {
    pub(super) gate: Gate,
    /// The failure that caused the present hold.
    pub(super) why: String,
    /// After a hold.
    pub(super) ramp: Option<Ramp>,
    /// An operator has opened it. An earlier record may be written after that; the next record corrects it.
    pub(super) opened_by_operator: bool,
    /// The delivery whose attempt is the probe. A probe from before the gate was last opened no longer counts.
    pub(super) prober: Option<Seq>,
    /// Those of the held lanes that wait for the probe's result.
    pub(super) waiters: BTreeSet<EndpointId>,
    pub(super) held: HeldLanes,
    /// It was used since the last search for unused gates.
    pub(super) touched: bool,
}

impl TrackedGate {
    pub(super) fn record(&self, key: &GateKey) -> GateRecord {
        GateRecord { key: key.clone(), gate: self.gate.clone(), why: self.why.clone() }
    }

    /// Whether the store may have it. Failures without a hold are not stored.
    pub(super) fn may_be_on_disk(&self) -> bool {
        self.gate.held_until.is_some() || self.opened_by_operator
    }
}

/// How much a gate holds, as far as it is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateBacklog {
    pub lanes: usize,
    pub deliveries: usize,
}

impl GateBacklog {
    pub(super) fn add(&mut self, deliveries: usize) {
        self.lanes += 1;
        self.deliveries += deliveries;
    }

    pub(super) fn subtract(&mut self, deliveries: usize) {
        self.lanes -= 1;
        self.deliveries -= deliveries;
    }
}

/// The lanes that a gate holds, each until its next selection. They are counted as they come and go, so that nobody walks over
/// them to answer a question.
#[derive(Default)]
pub(super) struct HeldLanes {
    /// Each with how many deliveries it had buffered.
    lanes: BTreeMap<EndpointId, (AppId, usize)>,
    pub(super) backlog: SharedBacklog,
}

impl HeldLanes {
    pub(super) fn insert(&mut self, endpoint: EndpointId, app: AppId, deliveries: usize) {
        self.remove(endpoint);
        self.lanes.insert(endpoint, (app, deliveries));
        self.backlog.add(app, deliveries);
    }

    pub(super) fn remove(&mut self, endpoint: EndpointId) {
        if let Some((app, deliveries)) = self.lanes.remove(&endpoint) {
            self.backlog.subtract(app, deliveries);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn endpoints(&self) -> impl Iterator<Item = EndpointId> {
        self.lanes.keys().copied()
    }
}
