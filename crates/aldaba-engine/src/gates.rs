//! The gates of all origins, and the lanes that wait at them for a probe's end.

use crate::lane::FixedMap;
use crate::target::Target;
use aldaba_delivery::{Class, EndpointId, Gate, GateScope, Origin, Passage, Timestamp, Transition};
use aldaba_store::GateRecord;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long after the end of its hold a gate is remembered though nobody has come by: longer than any
/// delay between two attempts, so that whoever waits for its end still finds it and probes first.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

type Key = (Origin, GateScope);

#[derive(Default)]
pub(crate) struct Gates {
    gates: FixedMap<Key, Post>,
}

/// A gate and who waits at it.
#[derive(Default)]
struct Post {
    gate: Gate,
    waiters: BTreeSet<EndpointId>,
    /// Something happened at it since the last look for gates to forget.
    touched: bool,
}

/// The gates that an attempt probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probes {
    host: bool,
    application: bool,
}

/// What the gates say to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// Go, and report back on the gates that this attempt probes.
    Open(Probes),
    At(Timestamp),
    /// The lane is woken when the probe has ended.
    Waits,
}

/// What an attempt did to the gates.
#[derive(Default)]
pub(crate) struct GateNews {
    pub(crate) changed: Vec<GateRecord>,
    pub(crate) woken: Vec<EndpointId>,
}

impl Gates {
    pub(crate) fn restore(records: Vec<GateRecord>) -> Self {
        let mut gates = Self::default();
        for GateRecord { origin, scope, gate } in records {
            // A probe that was on its way ended with the process that had sent it.
            let gate = Gate { probing: false, ..gate };
            gates.gates.insert((origin, scope), Post { gate, ..Post::default() });
        }
        gates
    }

    /// A gate as it is now; a clear one where nothing is remembered.
    pub(crate) fn get(&self, origin: &Origin, scope: GateScope) -> Gate {
        self.gates.get(&(origin.clone(), scope)).map(|post| post.gate.clone()).unwrap_or_default()
    }

    /// Asks for passage and claims the probe where there is one to claim.
    pub(crate) fn enter(&mut self, endpoint: EndpointId, target: &Target, now: Timestamp) -> Entrance {
        if !target.policy.takes_part_in_gates() || self.gates.is_empty() {
            return Entrance::Open(Probes::default());
        }
        let keys = keys(target);
        let passages = keys.each_ref().map(|key| match self.gates.get(key) {
            Some(post) if target.policy.takes_part_in(key.1) => post.gate.passage(now),
            _ => Passage::Open,
        });
        let held = passages.iter().filter_map(|passage| match passage {
            Passage::Held(until) => Some(*until),
            _ => None,
        });
        if let Some(until) = held.max() {
            return Entrance::At(until);
        }
        if let Some(probed) = passages.iter().position(|passage| *passage == Passage::Probing) {
            self.gates.entry(keys[probed].clone()).or_default().waiters.insert(endpoint);
            return Entrance::Waits;
        }
        for (key, passage) in keys.into_iter().zip(passages) {
            if passage == Passage::Probe {
                self.gates.entry(key).or_default().gate.probing = true;
            }
        }
        let [host, application] = passages.map(|passage| passage == Passage::Probe);
        Entrance::Open(Probes { host, application })
    }

    /// Whether an attempt that has passed may still start: nothing was held since, but by its own
    /// probe.
    pub(crate) fn still_open(&self, target: &Target, probes: Probes, now: Timestamp) -> bool {
        keys(target).iter().zip([probes.host, probes.application]).all(|(key, probe)| {
            match self.gates.get(key) {
                Some(post) if target.policy.takes_part_in(key.1) => {
                    probe || post.gate.passage(now) == Passage::Open
                }
                _ => true,
            }
        })
    }

    /// Lets every gate that the attempt has a say in know how it went.
    pub(crate) fn after_attempt(
        &mut self,
        target: &Target,
        class: &Class,
        transition: &Transition,
        probes: Probes,
        now: Timestamp,
    ) -> GateNews {
        let mut news = GateNews::default();
        if !target.policy.takes_part_in_gates() {
            return news;
        }
        for (key, probe) in keys(target).into_iter().zip([probes.host, probes.application]) {
            let before = self.gates.get(&key).map(|post| post.gate.clone()).unwrap_or_default();
            let after = before.after_attempt(key.1, &target.policy, class, transition, probe, now);
            if after != before {
                self.set(&key, after, &mut news);
            }
        }
        news
    }

    /// A probe ended without having been sent: the next lane may claim it.
    pub(crate) fn called_off(&mut self, target: &Target, probes: Probes) -> Vec<EndpointId> {
        let mut news = GateNews::default();
        for (key, probe) in keys(target).into_iter().zip([probes.host, probes.application]) {
            if probe && let Some(post) = self.gates.get(&key) {
                let gate = Gate { probing: false, ..post.gate.clone() };
                self.set(&key, gate, &mut news);
            }
        }
        news.woken
    }

    /// Forgets gates at which nothing has happened for a while: hosts that failed now and then, or
    /// that nobody sends to any more. One with a hold is forgotten only long after its end.
    pub(crate) fn forget_idle(&mut self, now: Timestamp) {
        self.gates.retain(|_, post| {
            let held = post.gate.held_until.is_some_and(|until| until + FORGOTTEN_AFTER > now);
            std::mem::take(&mut post.touched) || held || post.gate.probing || !post.waiters.is_empty()
        });
    }

    fn set(&mut self, key: &Key, gate: Gate, news: &mut GateNews) {
        let post = self.gates.entry(key.clone()).or_default();
        // Only holds have to survive a restart; a count of failures that led to none is not kept.
        if gate.held_until.is_some() || post.gate.held_until.is_some() {
            let (origin, scope) = key.clone();
            let kept = if gate.held_until.is_some() { gate.clone() } else { Gate::default() };
            news.changed.push(GateRecord { origin, scope, gate: kept });
        }
        post.touched = true;
        if !gate.probing {
            news.woken.extend(std::mem::take(&mut post.waiters));
        }
        post.gate = gate;
        if post.gate.is_clear() {
            self.gates.remove(key);
        }
    }
}

fn keys(target: &Target) -> [Key; 2] {
    [GateScope::Host, GateScope::Application(target.app)].map(|scope| (target.origin.clone(), scope))
}
