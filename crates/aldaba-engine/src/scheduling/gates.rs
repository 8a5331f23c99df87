//! The gates of all origins, and the lanes that they hold.

mod gate_table;
mod held_list;
#[cfg(test)]
mod tests;
mod tracked_gate;

pub(crate) use gate_table::GateLimits;
pub(crate) use held_list::HeldList;
pub use tracked_gate::GateBacklog;

use crate::delivering::AttemptRequest;
use crate::delivering::Target;
use crate::scheduling::lane::{FixedMap, Ramp};
use crate::scheduling::wait_reasons::{HostHold, WaitQuestion};
use aldaba_delivery::{
    AppId, Class, EndpointId, Gate, GateAdmission, GateKey, OrgId, Origin, Policy, Timestamp, Transition,
};
use aldaba_store::{GateRecord, Seq};
use gate_table::GateTable;
use std::sync::Arc;
use std::time::Duration;
use tracked_gate::TrackedGate;

/// How long an unused gate is kept after the end of its hold, in memory and on disk. It is longer than any delay between two
/// attempts, so that the next attempt still finds the gate, and probes.
pub(crate) const GATE_RETENTION: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Gates {
    table: GateTable,
    /// The gates that hold each lane.
    held_by: FixedMap<EndpointId, [Option<Arc<GateKey>>; 2]>,
}

/// Whether the gates let a lane pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Yes, as their probe if they need one.
    Open,
    At(Timestamp),
    /// The lane is woken when the probe has ended.
    Waits,
}

/// A selected lane that asks to pass.
pub(crate) struct GateRequest<'a> {
    pub(crate) endpoint: EndpointId,
    pub(crate) target: &'a Target,
    /// The delivery that would be sent.
    pub(crate) head: Seq,
    /// How many deliveries the lane has buffered.
    pub(crate) deliveries: usize,
}

/// What has changed at the gates.
#[derive(Default)]
pub(crate) struct GateChanges {
    pub(crate) changed: Vec<GateRecord>,
    pub(crate) woken: Vec<EndpointId>,
}

impl Gates {
    pub(crate) fn new(limits: GateLimits) -> Self {
        Self { table: GateTable::new(limits), held_by: FixedMap::default() }
    }

    /// The gates that were stored, and those of them that are over the limits.
    pub(crate) fn restore(limits: GateLimits, records: Vec<GateRecord>) -> (Self, Vec<GateRecord>) {
        let (mut gates, mut surplus) = (Self::new(limits), Vec::new());
        for GateRecord { key, gate, why } in records {
            let tracked = gates.table.put(&key, gate.held_until.unwrap_or(Timestamp::MIN));
            // A probe ended with the process that sent it.
            tracked.gate = gate.without_probe();
            tracked.why = why;
            gates.table.publish(&key);
            while let Some(key) = gates.table.surplus(key.org)
                && let Some(tracked) = gates.table.remove(&key)
            {
                surplus.push(tracked.record(&key));
            }
        }
        (gates, surplus)
    }

    /// A gate as it is now; a clear one if it is unknown.
    pub(crate) fn record(&self, key: &GateKey) -> GateRecord {
        match self.table.get(key) {
            Some(tracked) => tracked.record(key),
            None => GateRecord { key: key.clone(), gate: Gate::default(), why: String::new() },
        }
    }

    /// The closed and probing gates, for readers.
    pub(crate) fn held(&self) -> HeldList {
        self.table.held.clone()
    }

    /// How many gates are closed or probing.
    pub(crate) fn held_number(&self) -> usize {
        self.table.all().filter(|tracked| tracked.gate.held_until.is_some()).count()
    }

    /// An operator has opened a gate. Returns the lanes that it held.
    pub(crate) fn release(&mut self, key: &GateKey, now: Timestamp) -> Vec<EndpointId> {
        let mut changes = GateChanges::default();
        if let Some(tracked) = self.table.get_mut(key) {
            tracked.opened_by_operator = true;
            self.set(key, Gate::default(), "", now, &mut changes);
        }
        changes.woken
    }

    /// Lets a lane pass, as the probe if one is needed, or holds it until [`Gates::left`].
    pub(crate) fn enter(&mut self, request: &GateRequest<'_>, now: Timestamp) -> Passage {
        let (target, policy) = (request.target, &request.target.policy);
        if !policy.uses_gates() || self.table.is_empty() {
            return Passage::Open;
        }
        let keys = keys(target);
        let admissions = keys.each_ref().map(|key| match self.table.get(key) {
            Some(tracked) if policy.uses_gate(key.scope) => tracked.gate.admission(policy, now),
            _ => GateAdmission::Open,
        });
        // Of two probes, the one of the wider gate comes first.
        if let Some((key, binding)) = GateAdmission::strictest(keys.iter().zip(admissions).rev()) {
            self.wait(request, &keys, &admissions);
            if let GateAdmission::Held(until) = binding {
                return Passage::At(until);
            }
            if let Some(tracked) = self.table.get_mut(key) {
                tracked.waiters.insert(request.endpoint);
            }
            return Passage::Waits;
        }
        let ramps = keys.iter().filter(|key| policy.uses_gate(key.scope));
        let ramps = ramps.filter_map(|key| self.table.get(key)?.ramp);
        if let Some(later) = ramps.filter_map(|ramp| ramp.ready(now).err()).max() {
            return Passage::At(later);
        }
        for (key, admission) in keys.iter().zip(admissions) {
            let Some(tracked) = self.table.get_mut(key).filter(|_| policy.uses_gate(key.scope)) else {
                continue;
            };
            if let Some(ramp) = &mut tracked.ramp {
                ramp.take();
            }
            if admission == GateAdmission::Probe {
                tracked.gate.probing = true;
                tracked.prober = Some(request.head);
                self.table.publish(key);
            }
        }
        Passage::Open
    }

    fn wait(&mut self, request: &GateRequest<'_>, keys: &[GateKey; 2], admissions: &[GateAdmission; 2]) {
        let GateRequest { endpoint, target, deliveries, .. } = *request;
        let behind = [0, 1].map(|one| {
            let tracked =
                self.table.get_mut(&keys[one]).filter(|_| admissions[one] != GateAdmission::Open)?;
            tracked.held.insert(endpoint, target.app, deliveries);
            self.table.shared_key(&keys[one])
        });
        self.held_by.insert(endpoint, behind);
    }

    /// A lane was selected or dropped: no gate holds it any more.
    pub(crate) fn left(&mut self, endpoint: EndpointId) {
        if self.held_by.is_empty() {
            return;
        }
        for key in self.held_by.remove(&endpoint).into_iter().flatten().flatten() {
            if let Some(tracked) = self.table.get_mut(&key) {
                tracked.held.remove(endpoint);
                tracked.waiters.remove(&endpoint);
            }
        }
    }

    /// Whether an attempt that has passed may still start: no gate was closed since, except for the attempt's own probe.
    pub(crate) fn still_open(&self, request: &AttemptRequest, now: Timestamp) -> bool {
        let policy = &request.target.policy;
        keys(&request.target).iter().all(|key| match self.table.get(key) {
            Some(tracked) if policy.uses_gate(key.scope) => {
                let is_probe = tracked.prober == Some(request.pending.seq);
                tracked.gate.admission(policy, now).admits_start(is_probe)
            }
            _ => true,
        })
    }

    /// The longest hold of a lane.
    pub(crate) fn hold(&self, question: &WaitQuestion, now: Timestamp) -> Option<HostHold> {
        let WaitQuestion { org, app, origin, policy, .. } = question;
        self.binding_hold(&keys_of(*org, *app, origin), policy, now)
    }

    /// Until when the gates hold everything of a lane.
    pub(crate) fn held_until(&self, target: &Target, now: Timestamp) -> Option<Timestamp> {
        self.binding_hold(&keys(target), &target.policy, now)?.until
    }

    fn binding_hold(&self, keys: &[GateKey], policy: &Policy, now: Timestamp) -> Option<HostHold> {
        let keys = keys.iter().filter(|key| policy.uses_gate(key.scope));
        let admissions = keys.filter_map(|key| Some((key, self.table.get(key)?.gate.admission(policy, now))));
        let (key, admission) = GateAdmission::strictest(admissions)?;
        let until = if let GateAdmission::Held(until) = admission { Some(until) } else { None };
        Some(HostHold { scope: key.scope, until })
    }

    /// Applies the result of an attempt to its gates.
    pub(crate) fn after_attempt(
        &mut self,
        request: &AttemptRequest,
        class: &Class,
        transition: &Transition,
        error: &str,
        now: Timestamp,
    ) -> GateChanges {
        let (mut changes, target) = (GateChanges::default(), &request.target);
        if !target.policy.uses_gates() {
            return changes;
        }
        for key in keys(target) {
            let probe = self.is_prober(&key, request);
            let before = self.table.get(&key).map(|tracked| tracked.gate.clone()).unwrap_or_default();
            let after = before.after_attempt(key.scope, &target.policy, class, transition, probe, now);
            let is_outdated = self.table.get(&key).is_some_and(|tracked| tracked.opened_by_operator);
            if after != before || is_outdated {
                self.set(&key, after, error, now, &mut changes);
                if let Some(tracked) = self.table.get_mut(&key) {
                    tracked.opened_by_operator = false;
                }
            }
        }
        changes
    }

    /// A probe ended without being sent: the next lane may send it. Returns the lanes to wake.
    pub(crate) fn probe_abandoned(&mut self, request: &AttemptRequest, now: Timestamp) -> Vec<EndpointId> {
        let mut changes = GateChanges::default();
        for key in keys(&request.target) {
            if self.is_prober(&key, request)
                && let Some(tracked) = self.table.get(&key)
            {
                let gate = tracked.gate.clone().without_probe();
                let why = tracked.why.clone();
                self.set(&key, gate, &why, now, &mut changes);
            }
        }
        changes.woken
    }

    /// Drops unused gates. A gate with a hold is kept until long after its end.
    pub(crate) fn forget_idle(&mut self, now: Timestamp) {
        let is_idle = |tracked: &mut TrackedGate| {
            let held = tracked.gate.held_until.is_some_and(|until| until + GATE_RETENTION > now);
            let ramp = tracked.ramp.is_some_and(|ramp| !ramp.is_over(now));
            let touched = std::mem::take(&mut tracked.touched);
            !(touched || held || ramp || tracked.gate.probing || !tracked.held.is_empty())
        };
        let all = self.table.iter_mut();
        let idle: Vec<_> = all.filter_map(|(key, tracked)| is_idle(tracked).then(|| key.clone())).collect();
        for key in idle {
            self.table.remove(&key);
        }
    }

    fn is_prober(&self, key: &GateKey, request: &AttemptRequest) -> bool {
        self.table.get(key).is_some_and(|tracked| tracked.prober == Some(request.pending.seq))
    }

    /// Changes a gate. `error`: the failure that causes a new hold.
    fn set(&mut self, key: &GateKey, gate: Gate, error: &str, now: Timestamp, changes: &mut GateChanges) {
        let tracked = self.table.put(key, gate.held_until.unwrap_or(now));
        if gate.held_until != tracked.gate.held_until {
            error.clone_into(&mut tracked.why);
        }
        match (tracked.gate.held_until, gate.held_until) {
            (Some(_), None) => {
                tracked.ramp = Ramp::since(now, now);
                // It opens earlier than the held lanes were told.
                changes.woken.extend(tracked.held.endpoints());
            }
            (_, Some(_)) => tracked.ramp = None,
            (None, None) => {}
        }
        let kept = gate.persisted();
        if !kept.is_clear() || tracked.may_be_on_disk() {
            changes.changed.push(GateRecord { key: key.clone(), gate: kept, why: tracked.why.clone() });
        }
        tracked.touched = true;
        if !gate.probing {
            tracked.prober = None;
            changes.woken.extend(std::mem::take(&mut tracked.waiters));
        }
        tracked.gate = gate;
        if tracked.gate.is_clear() && tracked.ramp.is_none() && !tracked.opened_by_operator {
            self.table.remove(key);
        } else {
            self.table.publish(key);
        }
        while let Some(surplus) = self.table.surplus(key.org) {
            self.forget(&surplus, changes);
        }
    }

    /// Drops a gate: here, and on disk with the next record.
    fn forget(&mut self, key: &GateKey, changes: &mut GateChanges) {
        let Some(tracked) = self.table.remove(key) else { return };
        changes.woken.extend(tracked.held.endpoints());
        if tracked.may_be_on_disk() {
            changes.changed.retain(|record| record.key != *key);
            changes.changed.push(self.record(key));
        }
    }
}

fn keys(target: &Target) -> [GateKey; 2] {
    keys_of(target.org, target.app, &target.origin)
}

fn keys_of(org: OrgId, app: AppId, origin: &Origin) -> [GateKey; 2] {
    Gate::scopes(app).map(|scope| GateKey { org, origin: origin.clone(), scope })
}
