//! The gates of all origins, and the lanes that wait at them for a probe's end.

use crate::attempt::Start;
use crate::lane::{FixedMap, Ramp};
use crate::outlook::HostHold;
use crate::target::Target;
use aldaba_delivery::{
    AppId, Class, EndpointId, Gate, GateScope, Origin, Passage, Policy, Timestamp, Transition,
};
use aldaba_store::{GateRecord, Seq};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long after the end of its hold a gate is remembered though nobody has come by: longer than any
/// delay between two attempts, so that whoever waits for its end still finds it and probes first.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

pub(crate) type Key = (Origin, GateScope);

#[derive(Default)]
pub(crate) struct Gates {
    gates: FixedMap<Key, Post>,
}

/// A gate and who waits at it.
#[derive(Default)]
struct Post {
    gate: Gate,
    /// The failure that the present hold comes from.
    why: String,
    /// While those are let go that had to wait.
    ramp: Option<Ramp>,
    /// It was opened by a hand. A record from before may have been written after that: the next one puts it
    /// right.
    opened_by_hand: bool,
    /// The delivery whose attempt is the probe. An older one may still be on its way, from before the
    /// gate was last opened: it is a probe no longer.
    prober: Option<Seq>,
    waiters: BTreeSet<EndpointId>,
    /// Something happened at it since the last look for gates to forget.
    touched: bool,
}

/// What the gates say to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// Go, as their probe where there is one to send.
    Open,
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
        for GateRecord { origin, scope, gate, why } in records {
            // A probe that was on its way ended with the process that had sent it.
            let gate = Gate { probing: false, ..gate };
            gates.gates.insert((origin, scope), Post { gate, why, ..Post::default() });
        }
        gates
    }

    /// A gate as it is now; a clear one where nothing is remembered.
    pub(crate) fn record(&self, origin: &Origin, scope: GateScope) -> GateRecord {
        let origin = origin.clone();
        match self.gates.get(&(origin.clone(), scope)) {
            Some(post) => GateRecord { origin, scope, gate: post.gate.clone(), why: post.why.clone() },
            None => GateRecord { origin, scope, gate: Gate::default(), why: String::new() },
        }
    }

    /// Those that hold something back or wait for a probe, in no order.
    pub(crate) fn held(&self) -> impl Iterator<Item = GateRecord> {
        let held = self.gates.iter().filter(|(_, post)| post.gate.held_until.is_some());
        held.map(|((origin, scope), post)| GateRecord {
            origin: origin.clone(),
            scope: *scope,
            gate: post.gate.clone(),
            why: post.why.clone(),
        })
    }

    /// A gate was opened by a hand. Returns the lanes that waited for its probe.
    pub(crate) fn release(&mut self, key: &Key, now: Timestamp) -> Vec<EndpointId> {
        let mut news = GateNews::default();
        if let Some(post) = self.gates.get_mut(key) {
            post.opened_by_hand = true;
            self.set(key, Gate::default(), "", now, &mut news);
        }
        news.woken
    }

    /// Asks for passage and claims the probe where there is one to claim.
    pub(crate) fn enter(
        &mut self,
        endpoint: EndpointId,
        seq: Seq,
        target: &Target,
        now: Timestamp,
    ) -> Entrance {
        if !target.policy.takes_part_in_gates() || self.gates.is_empty() {
            return Entrance::Open;
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
        let ramps = keys.iter().filter(|key| target.policy.takes_part_in(key.1));
        let ramps = ramps.filter_map(|key| self.gates.get(key)?.ramp);
        if let Some(later) = ramps.filter_map(|ramp| ramp.ready(now).err()).max() {
            return Entrance::At(later);
        }
        for (key, passage) in keys.into_iter().zip(passages) {
            let Some(post) = self.gates.get_mut(&key).filter(|_| target.policy.takes_part_in(key.1)) else {
                continue;
            };
            if let Some(ramp) = &mut post.ramp {
                ramp.take();
            }
            if passage == Passage::Probe {
                post.gate.probing = true;
                post.prober = Some(seq);
            }
        }
        Entrance::Open
    }

    /// Whether an attempt that has passed may still start: nothing was held since, but for its own
    /// probe.
    pub(crate) fn still_open(&self, start: &Start, now: Timestamp) -> bool {
        keys(&start.target).iter().all(|key| match self.gates.get(key) {
            Some(post) if start.target.policy.takes_part_in(key.1) => match post.gate.passage(now) {
                Passage::Open => true,
                Passage::Probing => post.prober == Some(start.waiting.seq),
                Passage::Held(_) | Passage::Probe => false,
            },
            _ => true,
        })
    }

    /// The longest hold that binds lanes of an application at an origin.
    pub(crate) fn hold(
        &self,
        origin: &Origin,
        app: AppId,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<HostHold> {
        let scopes = Gate::scopes(app).into_iter().filter(|scope| policy.takes_part_in(*scope));
        let holds = scopes.filter_map(|scope| {
            let gate = &self.gates.get(&(origin.clone(), scope))?.gate;
            match gate.passage(now) {
                Passage::Held(until) => Some(HostHold { scope, until: Some(until) }),
                Passage::Probing => Some(HostHold { scope, until: None }),
                Passage::Open | Passage::Probe => None,
            }
        });
        holds.max_by_key(|hold| hold.until)
    }

    /// Lets every gate that the attempt has a say in know how it went.
    pub(crate) fn after_attempt(
        &mut self,
        start: &Start,
        class: &Class,
        transition: &Transition,
        error: &str,
        now: Timestamp,
    ) -> GateNews {
        let (mut news, target) = (GateNews::default(), &start.target);
        if !target.policy.takes_part_in_gates() {
            return news;
        }
        for key in keys(target) {
            let probe = self.is_prober(&key, start);
            let before = self.gates.get(&key).map(|post| post.gate.clone()).unwrap_or_default();
            let after = before.after_attempt(key.1, &target.policy, class, transition, probe, now);
            let untold = self.gates.get(&key).is_some_and(|post| post.opened_by_hand);
            if after != before || untold {
                self.set(&key, after, error, now, &mut news);
                if let Some(post) = self.gates.get_mut(&key) {
                    post.opened_by_hand = false;
                }
            }
        }
        news
    }

    /// A probe ended without having been sent: the next lane may claim it.
    pub(crate) fn called_off(&mut self, start: &Start, now: Timestamp) -> Vec<EndpointId> {
        let mut news = GateNews::default();
        for key in keys(&start.target) {
            if self.is_prober(&key, start)
                && let Some(post) = self.gates.get(&key)
            {
                let gate = Gate { probing: false, ..post.gate.clone() };
                let why = post.why.clone();
                self.set(&key, gate, &why, now, &mut news);
            }
        }
        news.woken
    }

    /// Forgets gates at which nothing has happened for a while: hosts that failed now and then, or
    /// that nobody sends to any more. One with a hold is forgotten only long after its end.
    pub(crate) fn forget_idle(&mut self, now: Timestamp) {
        self.gates.retain(|_, post| {
            let held = post.gate.held_until.is_some_and(|until| until + FORGOTTEN_AFTER > now);
            let ramp = post.ramp.is_some_and(|ramp| !ramp.is_over(now));
            std::mem::take(&mut post.touched) || held || ramp || post.gate.probing || !post.waiters.is_empty()
        });
    }

    fn is_prober(&self, key: &Key, start: &Start) -> bool {
        self.gates.get(key).is_some_and(|post| post.prober == Some(start.waiting.seq))
    }

    /// `error`: the failure that a new hold comes from.
    fn set(&mut self, key: &Key, gate: Gate, error: &str, now: Timestamp, news: &mut GateNews) {
        let post = self.gates.entry(key.clone()).or_default();
        if gate.held_until != post.gate.held_until {
            error.clone_into(&mut post.why);
        }
        match (post.gate.held_until, gate.held_until) {
            (Some(_), None) => post.ramp = Ramp::since(now, now),
            (_, Some(_)) => post.ramp = None,
            (None, None) => {}
        }
        // Only holds have to survive a restart; a count of failures that led to none is not kept.
        if gate.held_until.is_some() || post.gate.held_until.is_some() || post.opened_by_hand {
            let (origin, scope) = key.clone();
            let kept = if gate.held_until.is_some() { gate.clone() } else { Gate::default() };
            news.changed.push(GateRecord { origin, scope, gate: kept, why: post.why.clone() });
        }
        post.touched = true;
        if !gate.probing {
            post.prober = None;
            news.woken.extend(std::mem::take(&mut post.waiters));
        }
        post.gate = gate;
        if post.gate.is_clear() && post.ramp.is_none() && !post.opened_by_hand {
            self.gates.remove(key);
        }
    }
}

fn keys(target: &Target) -> [Key; 2] {
    [GateScope::Host, GateScope::Application(target.app)].map(|scope| (target.origin.clone(), scope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Standing;
    use aldaba_delivery::MessageId;
    use aldaba_store::Waiting;
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn start(seq: i64) -> Start {
        let message = MessageId::from_bytes([3; 20]);
        let waiting = Waiting { seq: Seq(seq), message, due_at: NOW, attempts: 0, clock_start: NOW };
        let endpoint = EndpointId::from_bytes([1; 20]);
        Start {
            endpoint,
            target: Arc::new(Target::sample("standard")),
            waiting,
            content: None,
            standing: Standing::Fresh,
        }
    }

    /// The host's hold has just ended.
    fn hold_ends(gates: &mut Gates) {
        let gate =
            Gate { failures: 5, held_until: Some(NOW), hold: Duration::from_secs(1), ..Gate::default() };
        let host = (start(0).target.origin.clone(), GateScope::Host);
        gates.gates.insert(host, Post { gate, ..Post::default() });
    }

    #[test]
    fn a_probe_from_before_the_gate_was_opened_does_not_end_a_newer_one() {
        let (mut gates, [old, new, next]) = (Gates::default(), [1, 2, 3].map(start));
        let enter = |gates: &mut Gates, start: &Start| {
            gates.enter(start.endpoint, start.waiting.seq, &start.target, NOW)
        };
        hold_ends(&mut gates);
        assert_eq!(enter(&mut gates, &old), Entrance::Open);
        assert!(gates.still_open(&old, NOW));
        // Something else opens the gate; the host fails again; its next hold ends.
        gates = Gates::default();
        hold_ends(&mut gates);
        assert_eq!(enter(&mut gates, &new), Entrance::Open);
        assert!(!gates.still_open(&old, NOW), "it had its turn at a gate that is no more");
        assert!(gates.called_off(&old, NOW).is_empty());
        assert_eq!(enter(&mut gates, &next), Entrance::Waits, "the newer probe is still on its way");
        assert_eq!(gates.called_off(&new, NOW), [next.endpoint]);
        assert_eq!(enter(&mut gates, &next), Entrance::Open);
    }

    fn key() -> Key {
        (start(0).target.origin.clone(), GateScope::Host)
    }

    fn class_of(status: u16) -> (Class, Transition) {
        let answer = aldaba_delivery::Answer { status, phrase: "".into(), retry_after: None };
        let outcome = aldaba_delivery::Outcome::Answered(answer);
        let class = Class::of(&start(0).target.policy, &outcome);
        (class, Transition::Settle(aldaba_delivery::Ending::Delivered))
    }

    #[test]
    fn what_waited_at_a_gate_passes_on_a_ramp_once_it_is_open() {
        let mut gates = Gates::default();
        hold_ends(&mut gates);
        let enter = |gates: &mut Gates, seq, now| {
            let start = start(seq);
            gates.enter(start.endpoint, start.waiting.seq, &start.target, now)
        };
        assert_eq!(enter(&mut gates, 1, NOW), Entrance::Open, "the probe");
        let (class, transition) = class_of(200);
        let news = gates.after_attempt(&start(1), &class, &transition, "", NOW);
        assert!(news.changed[0].gate.is_clear());
        assert_eq!(enter(&mut gates, 2, NOW), Entrance::Open);
        let Entrance::At(later) = enter(&mut gates, 3, NOW) else { panic!("all at once") };
        assert_eq!(later.since(NOW), Duration::from_millis(125));
        assert_eq!(enter(&mut gates, 3, later), Entrance::Open);
        assert_eq!(enter(&mut gates, 4, NOW + Duration::from_secs(10)), Entrance::Open);
        assert_eq!(enter(&mut gates, 5, NOW + Duration::from_secs(10)), Entrance::Open, "no limit any more");
        gates.forget_idle(NOW + Duration::from_secs(10));
        gates.forget_idle(NOW + Duration::from_secs(11));
        assert!(gates.gates.is_empty());
    }

    #[test]
    fn a_hold_that_was_written_after_a_hand_had_opened_the_gate_is_taken_back() {
        let mut gates = Gates::default();
        hold_ends(&mut gates);
        gates.release(&key(), NOW);
        assert_eq!(gates.held().count(), 0);
        // Nothing about the gate changes with this; the disk may still hold what was judged before.
        let (class, transition) = class_of(200);
        let news = gates.after_attempt(&start(1), &class, &transition, "", NOW);
        assert_eq!(news.changed.len(), 1);
        assert!(news.changed[0].gate.is_clear());
        assert!(gates.after_attempt(&start(2), &class, &transition, "", NOW).changed.is_empty(), "once");
    }
}
