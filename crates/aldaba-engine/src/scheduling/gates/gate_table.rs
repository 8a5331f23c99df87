//! The gates in memory, within limits for each organization and overall.

use super::held_list::HeldList;
use super::tracked_gate::TrackedGate;
use crate::scheduling::lane::FixedMap;
use aldaba_delivery::{GateKey, OrgId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many gates are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateLimits {
    pub(crate) per_organization: usize,
    pub(crate) overall: usize,
}

pub(super) struct GateTable {
    limits: GateLimits,
    /// Each with the moment until which it matters.
    gates: FixedMap<Arc<GateKey>, (Timestamp, TrackedGate)>,
    /// The gates of each organization; the first is dropped first.
    ranked: FixedMap<OrgId, BTreeSet<(Timestamp, Arc<GateKey>)>>,
    /// How many gates each organization has.
    sizes: BTreeSet<(usize, OrgId)>,
    /// The closed gates, as readers see them.
    pub(super) held: HeldList,
}

impl GateTable {
    pub(super) fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            gates: FixedMap::default(),
            ranked: FixedMap::default(),
            sizes: BTreeSet::new(),
            held: HeldList::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.gates.len()
    }

    pub(super) fn get(&self, key: &GateKey) -> Option<&TrackedGate> {
        self.gates.get(key).map(|(_, tracked)| tracked)
    }

    pub(super) fn get_mut(&mut self, key: &GateKey) -> Option<&mut TrackedGate> {
        self.gates.get_mut(key).map(|(_, tracked)| tracked)
    }

    /// The table's copy of a key.
    pub(super) fn shared_key(&self, key: &GateKey) -> Option<Arc<GateKey>> {
        self.gates.get_key_value(key).map(|(key, _)| key.clone())
    }

    /// Shows readers a gate that has changed.
    pub(super) fn publish(&self, key: &GateKey) {
        match self.gates.get_key_value(key) {
            Some((key, (_, tracked))) if tracked.gate.held_until.is_some() => {
                self.held.put(key, &tracked.gate, &tracked.why, &tracked.held.backlog);
            }
            _ => self.held.remove(key),
        }
    }

    /// All gates, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = &TrackedGate> {
        self.gates.values().map(|(_, tracked)| tracked)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<GateKey>, &mut TrackedGate)> {
        self.gates.iter_mut().map(|(key, (_, tracked))| (key, tracked))
    }

    /// A gate, created if it is unknown. It matters until this moment: the end of its hold, or its last use. Of two gates the one
    /// with the earlier moment is dropped first.
    pub(super) fn put(&mut self, key: &GateKey, until: Timestamp) -> &mut TrackedGate {
        let shared = self.shared_key(key).unwrap_or_else(|| Arc::new(key.clone()));
        let before = self.gates.get(key).map(|(until, _)| *until);
        if before != Some(until) {
            let ranked = self.ranked.entry(key.org).or_default();
            let size = ranked.len();
            if let Some(before) = before {
                ranked.remove(&(before, shared.clone()));
            }
            ranked.insert((until, shared.clone()));
            let grown = ranked.len();
            self.resize(key.org, size, grown);
        }
        let (matters_until, tracked) =
            self.gates.entry(shared).or_insert_with(|| (until, TrackedGate::default()));
        *matters_until = until;
        tracked
    }

    pub(super) fn remove(&mut self, key: &GateKey) -> Option<TrackedGate> {
        let (shared, (until, tracked)) = self.gates.remove_entry(key)?;
        self.held.remove(key);
        if let Some(ranked) = self.ranked.get_mut(&key.org) {
            let size = ranked.len();
            ranked.remove(&(until, shared));
            let shrunk = ranked.len();
            if shrunk == 0 {
                self.ranked.remove(&key.org);
            }
            self.resize(key.org, size, shrunk);
        }
        Some(tracked)
    }

    /// The gate to drop while a limit is exceeded: one of this organization, or, if only the overall limit is exceeded, one of
    /// the organization with the most gates. So nobody's failures cost others their gates.
    pub(super) fn surplus(&self, org: OrgId) -> Option<Arc<GateKey>> {
        let over = |org: &OrgId| {
            self.ranked.get(org).is_some_and(|ranked| ranked.len() > self.limits.per_organization)
        };
        let org = if over(&org) {
            org
        } else if self.gates.len() > self.limits.overall {
            self.sizes.last()?.1
        } else {
            return None;
        };
        self.ranked.get(&org)?.first().map(|(_, key)| key.clone())
    }

    fn resize(&mut self, org: OrgId, before: usize, after: usize) {
        if before != after {
            self.sizes.remove(&(before, org));
            if after > 0 {
                self.sizes.insert((after, org));
            }
        }
    }
}
