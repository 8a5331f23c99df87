//! The gates of all origins, and the lanes that wait behind them.

mod gate_table;
#[cfg(test)]
mod tests;
mod tracked_gate;

pub(crate) use gate_table::GateLimits;
pub use tracked_gate::GateBacklog;

use crate::delivering::AttemptRequest;
use crate::delivering::Target;
use crate::scheduling::held_hosts::HeldHost;
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

/// How long after the end of its hold a gate is remembered though nobody has come by, in memory and on disk: longer
/// than any delay between two attempts, so that whoever waits for its end still finds it and probes first.
pub(crate) const GATE_RETENTION: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Gates {
    table: GateTable,
    /// The gates that each lane waits behind.
    waiting: FixedMap<EndpointId, [Option<Arc<GateKey>>; 2]>,
}

/// What the gates say to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Go, as their probe where there is one to send.
    Open,
    At(Timestamp),
    /// The lane is woken when the probe has ended.
    Waits,
}

/// A lane whose turn has come.
pub(crate) struct GateRequest<'a> {
    pub(crate) endpoint: EndpointId,
    pub(crate) target: &'a Target,
    /// The delivery that is to go.
    pub(crate) head: Seq,
    /// How many wait in memory, with that one.
    pub(crate) deliveries: usize,
}

/// What an attempt did to the gates.
#[derive(Default)]
pub(crate) struct GateChanges {
    pub(crate) changed: Vec<GateRecord>,
    pub(crate) woken: Vec<EndpointId>,
}

impl Gates {
    pub(crate) fn new(limits: GateLimits) -> Self {
        Self { table: GateTable::new(limits), waiting: FixedMap::default() }
    }

    /// The gates that were kept, and beside them those that are over the limits.
    pub(crate) fn restore(limits: GateLimits, records: Vec<GateRecord>) -> (Self, Vec<GateRecord>) {
        let (mut gates, mut surplus) = (Self::new(limits), Vec::new());
        for GateRecord { key, gate, why } in records {
            let post = gates.table.put(&key, gate.held_until.unwrap_or(Timestamp::MIN));
            // A probe that was on its way ended with the process that had sent it.
            post.gate = gate.without_probe();
            post.why = why;
            while let Some(key) = gates.table.surplus(key.org)
                && let Some(post) = gates.table.remove(&key)
            {
                surplus.push(post.record(&key));
            }
        }
        (gates, surplus)
    }

    /// A gate as it is now; a clear one where nothing is remembered.
    pub(crate) fn record(&self, key: &GateKey) -> GateRecord {
        match self.table.get(key) {
            Some(post) => post.record(key),
            None => GateRecord { key: key.clone(), gate: Gate::default(), why: String::new() },
        }
    }

    /// Those of an organization that hold something back or wait for a probe, by origin and scope, with how much
    /// waits behind each of them: of the whole organization, or of one application.
    pub(crate) fn held(&self, org: OrgId, app: Option<AppId>) -> Vec<HeldHost> {
        let held = self.table.of(org).filter(|(_, post)| post.gate.held_until.is_some());
        let mut hosts: Vec<_> = held
            .map(|(key, post)| HeldHost {
                key: key.clone(),
                gate: post.gate.clone(),
                why: post.why.clone(),
                backlog: post.behind.count(app),
            })
            .collect();
        hosts.sort_by(|a, b| a.key.cmp(&b.key));
        hosts
    }

    /// A gate was opened by a hand. Returns the lanes that waited behind it.
    pub(crate) fn release(&mut self, key: &GateKey, now: Timestamp) -> Vec<EndpointId> {
        let mut news = GateChanges::default();
        if let Some(post) = self.table.get_mut(key) {
            post.opened_by_operator = true;
            self.set(key, Gate::default(), "", now, &mut news);
        }
        news.woken
    }

    /// Asks for passage and claims the probe where there is one to claim. A lane that has to wait for a hold or a
    /// probe is behind the gate until [`Gates::left`].
    pub(crate) fn enter(&mut self, visitor: &GateRequest<'_>, now: Timestamp) -> Passage {
        let (target, policy) = (visitor.target, &visitor.target.policy);
        if !policy.uses_gates() || self.table.is_empty() {
            return Passage::Open;
        }
        let keys = keys(target);
        let passages = keys.each_ref().map(|key| match self.table.get(key) {
            Some(post) if policy.uses_gate(key.scope) => post.gate.admission(policy, now),
            _ => GateAdmission::Open,
        });
        // Of two probes it waits for the wider gate's first.
        if let Some((key, binding)) = GateAdmission::strictest(keys.iter().zip(passages).rev()) {
            self.wait(visitor, &keys, &passages);
            if let GateAdmission::Held(until) = binding {
                return Passage::At(until);
            }
            if let Some(post) = self.table.get_mut(key) {
                post.waiters.insert(visitor.endpoint);
            }
            return Passage::Waits;
        }
        let ramps = keys.iter().filter(|key| policy.uses_gate(key.scope));
        let ramps = ramps.filter_map(|key| self.table.get(key)?.ramp);
        if let Some(later) = ramps.filter_map(|ramp| ramp.ready(now).err()).max() {
            return Passage::At(later);
        }
        for (key, passage) in keys.iter().zip(passages) {
            let Some(post) = self.table.get_mut(key).filter(|_| policy.uses_gate(key.scope)) else {
                continue;
            };
            if let Some(ramp) = &mut post.ramp {
                ramp.take();
            }
            if passage == GateAdmission::Probe {
                post.gate.probing = true;
                post.prober = Some(visitor.head);
            }
        }
        Passage::Open
    }

    fn wait(&mut self, visitor: &GateRequest<'_>, keys: &[GateKey; 2], passages: &[GateAdmission; 2]) {
        let GateRequest { endpoint, target, deliveries, .. } = *visitor;
        let behind = [0, 1].map(|one| {
            let post = self.table.get_mut(&keys[one]).filter(|_| passages[one] != GateAdmission::Open)?;
            post.behind.insert(endpoint, target.app, deliveries);
            self.table.shared_key(&keys[one])
        });
        self.waiting.insert(endpoint, behind);
    }

    /// A lane has its turn, or is gone: it no longer waits behind any gate.
    pub(crate) fn left(&mut self, endpoint: EndpointId) {
        if self.waiting.is_empty() {
            return;
        }
        for key in self.waiting.remove(&endpoint).into_iter().flatten().flatten() {
            if let Some(post) = self.table.get_mut(&key) {
                post.behind.remove(endpoint);
                post.waiters.remove(&endpoint);
            }
        }
    }

    /// Whether an attempt that has passed may still start: nothing was held since, but for its own
    /// probe.
    pub(crate) fn still_open(&self, start: &AttemptRequest, now: Timestamp) -> bool {
        let policy = &start.target.policy;
        keys(&start.target).iter().all(|key| match self.table.get(key) {
            Some(post) if policy.uses_gate(key.scope) => {
                let is_probe = post.prober == Some(start.waiting.seq);
                post.gate.admission(policy, now).admits_start(is_probe)
            }
            _ => true,
        })
    }

    /// The longest hold that binds the lane that is asked about.
    pub(crate) fn hold(&self, question: &WaitQuestion, now: Timestamp) -> Option<HostHold> {
        let WaitQuestion { org, app, origin, policy, .. } = question;
        self.binding_hold(&keys_of(*org, *app, origin), policy, now)
    }

    /// Until when gates let nothing of a lane go.
    pub(crate) fn held_until(&self, target: &Target, now: Timestamp) -> Option<Timestamp> {
        self.binding_hold(&keys(target), &target.policy, now)?.until
    }

    fn binding_hold(&self, keys: &[GateKey], policy: &Policy, now: Timestamp) -> Option<HostHold> {
        let keys = keys.iter().filter(|key| policy.uses_gate(key.scope));
        let passages = keys.filter_map(|key| Some((key, self.table.get(key)?.gate.admission(policy, now))));
        let (key, passage) = GateAdmission::strictest(passages)?;
        let until = if let GateAdmission::Held(until) = passage { Some(until) } else { None };
        Some(HostHold { scope: key.scope, until })
    }

    /// Lets every gate that the attempt has a say in know how it went.
    pub(crate) fn after_attempt(
        &mut self,
        start: &AttemptRequest,
        class: &Class,
        transition: &Transition,
        error: &str,
        now: Timestamp,
    ) -> GateChanges {
        let (mut news, target) = (GateChanges::default(), &start.target);
        if !target.policy.uses_gates() {
            return news;
        }
        for key in keys(target) {
            let probe = self.is_prober(&key, start);
            let before = self.table.get(&key).map(|post| post.gate.clone()).unwrap_or_default();
            let after = before.after_attempt(key.scope, &target.policy, class, transition, probe, now);
            let untold = self.table.get(&key).is_some_and(|post| post.opened_by_operator);
            if after != before || untold {
                self.set(&key, after, error, now, &mut news);
                if let Some(post) = self.table.get_mut(&key) {
                    post.opened_by_operator = false;
                }
            }
        }
        news
    }

    /// A probe ended without having been sent: the next lane may claim it.
    pub(crate) fn abandoned(&mut self, start: &AttemptRequest, now: Timestamp) -> Vec<EndpointId> {
        let mut news = GateChanges::default();
        for key in keys(&start.target) {
            if self.is_prober(&key, start)
                && let Some(post) = self.table.get(&key)
            {
                let gate = post.gate.clone().without_probe();
                let why = post.why.clone();
                self.set(&key, gate, &why, now, &mut news);
            }
        }
        news.woken
    }

    /// Forgets gates at which nothing has happened for a while: hosts that failed now and then, or
    /// that nobody sends to any more. One with a hold is forgotten only long after its end.
    pub(crate) fn forget_idle(&mut self, now: Timestamp) {
        let is_idle = |post: &mut TrackedGate| {
            let held = post.gate.held_until.is_some_and(|until| until + GATE_RETENTION > now);
            let ramp = post.ramp.is_some_and(|ramp| !ramp.is_over(now));
            let touched = std::mem::take(&mut post.touched);
            !(touched || held || ramp || post.gate.probing || !post.behind.is_empty())
        };
        let posts = self.table.iter_mut();
        let idle: Vec<_> = posts.filter_map(|(key, post)| is_idle(post).then(|| key.clone())).collect();
        for key in idle {
            self.table.remove(&key);
        }
    }

    fn is_prober(&self, key: &GateKey, start: &AttemptRequest) -> bool {
        self.table.get(key).is_some_and(|post| post.prober == Some(start.waiting.seq))
    }

    /// `error`: the failure that a new hold comes from.
    fn set(&mut self, key: &GateKey, gate: Gate, error: &str, now: Timestamp, news: &mut GateChanges) {
        let post = self.table.put(key, gate.held_until.unwrap_or(now));
        if gate.held_until != post.gate.held_until {
            error.clone_into(&mut post.why);
        }
        match (post.gate.held_until, gate.held_until) {
            (Some(_), None) => {
                post.ramp = Ramp::since(now, now);
                // It opens before the end that some of them were told.
                news.woken.extend(post.behind.endpoints());
            }
            (_, Some(_)) => post.ramp = None,
            (None, None) => {}
        }
        let kept = gate.persisted();
        if !kept.is_clear() || post.may_be_on_disk() {
            news.changed.push(GateRecord { key: key.clone(), gate: kept, why: post.why.clone() });
        }
        post.touched = true;
        if !gate.probing {
            post.prober = None;
            news.woken.extend(std::mem::take(&mut post.waiters));
        }
        post.gate = gate;
        if post.gate.is_clear() && post.ramp.is_none() && !post.opened_by_operator {
            self.table.remove(key);
        }
        while let Some(surplus) = self.table.surplus(key.org) {
            self.forget(&surplus, news);
        }
    }

    /// Forgets a gate, here and, with the record that is about to be written, on disk.
    fn forget(&mut self, key: &GateKey, news: &mut GateChanges) {
        let Some(post) = self.table.remove(key) else { return };
        news.woken.extend(post.behind.endpoints());
        if post.may_be_on_disk() {
            news.changed.retain(|record| record.key != *key);
            news.changed.push(self.record(key));
        }
    }
}

fn keys(target: &Target) -> [GateKey; 2] {
    keys_of(target.org, target.app, &target.origin)
}

fn keys_of(org: OrgId, app: AppId, origin: &Origin) -> [GateKey; 2] {
    Gate::scopes(app).map(|scope| GateKey { org, origin: origin.clone(), scope })
}
