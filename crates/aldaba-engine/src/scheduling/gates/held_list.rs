//! The closed gates of all organizations, for readers: they wait for no dispatcher, and cost it nothing.

use super::GateBacklog;
use crate::scheduling::held_hosts::HeldHost;
use crate::scheduling::lane::FixedMap;
use aldaba_delivery::{AppId, Gate, GateKey, OrgId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The gates that hold something back. Clones share the list; the dispatcher writes it.
#[derive(Clone, Default)]
pub(crate) struct HeldList(Arc<Mutex<FixedMap<OrgId, Arc<HeldGates>>>>);

type HeldGates = BTreeMap<Arc<GateKey>, Arc<HeldGate>>;

struct HeldGate {
    state: Mutex<(Gate, String)>,
    backlog: SharedBacklog,
}

/// How much a gate holds: of all applications, and of each.
#[derive(Clone, Default)]
pub(super) struct SharedBacklog(Arc<Mutex<(GateBacklog, FixedMap<AppId, GateBacklog>)>>);

impl HeldList {
    /// The gates of an organization, by origin and scope. How much each holds is counted for the whole organization or for one
    /// application.
    pub(crate) fn of(&self, org: OrgId, app: Option<AppId>) -> Vec<HeldHost> {
        // The lock is held for this one clone, however many gates there are.
        let Some(gates) = self.0.lock().get(&org).cloned() else { return Vec::new() };
        let host = |(key, held): (&Arc<GateKey>, &Arc<HeldGate>)| {
            let (gate, why) = held.state.lock().clone();
            HeldHost { key: GateKey::clone(key), gate, why, backlog: held.backlog.count(app) }
        };
        gates.iter().map(host).collect()
    }

    pub(super) fn put(&self, key: &Arc<GateKey>, gate: &Gate, why: &str, backlog: &SharedBacklog) {
        let mut all = self.0.lock();
        let gates = all.entry(key.org).or_default();
        if let Some(held) = gates.get(key) {
            *held.state.lock() = (gate.clone(), why.into());
            return;
        }
        let state = Mutex::new((gate.clone(), why.into()));
        // Copied only while somebody reads.
        Arc::make_mut(gates).insert(key.clone(), Arc::new(HeldGate { state, backlog: backlog.clone() }));
    }

    pub(super) fn remove(&self, key: &GateKey) {
        let mut all = self.0.lock();
        let Some(gates) = all.get_mut(&key.org).filter(|gates| gates.contains_key(key)) else { return };
        Arc::make_mut(gates).remove(key);
        if gates.is_empty() {
            all.remove(&key.org);
        }
    }
}

impl SharedBacklog {
    pub(super) fn add(&self, app: AppId, deliveries: usize) {
        let (all, of_app) = &mut *self.0.lock();
        all.add(deliveries);
        of_app.entry(app).or_default().add(deliveries);
    }

    pub(super) fn subtract(&self, app: AppId, deliveries: usize) {
        let (all, of_apps) = &mut *self.0.lock();
        all.subtract(deliveries);
        if let Some(of_app) = of_apps.get_mut(&app) {
            of_app.subtract(deliveries);
            if of_app.lanes == 0 {
                of_apps.remove(&app);
            }
        }
    }

    /// How much is held, of all applications or of one.
    fn count(&self, app: Option<AppId>) -> GateBacklog {
        let (all, of_apps) = &*self.0.lock();
        match app {
            None => *all,
            Some(app) => of_apps.get(&app).copied().unwrap_or_default(),
        }
    }
}
