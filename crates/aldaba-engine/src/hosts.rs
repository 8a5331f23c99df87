//! What the gates hold back, for those who want to know, and what happens when a hand opens one.

use crate::gates::Key;
use crate::lane::Lane;
use crate::turns::Turns;
use aldaba_delivery::{AppId, Gate, GateScope, OrgId, Origin, Timestamp};
use std::collections::BTreeMap;

/// An origin that is held back, with what waits behind it as far as it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldHost {
    pub origin: Origin,
    pub scope: GateScope,
    pub gate: Gate,
    /// The failure that the present hold comes from.
    pub why: String,
    /// A gate may be shared by many, and none of them is told of the others.
    pub behind: BTreeMap<(OrgId, AppId), Behind>,
}

/// What waits behind a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    pub lanes: usize,
    pub deliveries: usize,
}

impl HeldHost {
    /// What waits behind it for those applications that are asked for.
    pub fn behind(&self, asked: impl Fn(OrgId, AppId) -> bool) -> Behind {
        let those = self.behind.iter().filter(|((org, app), _)| asked(*org, *app));
        those.fold(Behind::default(), |sum, (_, one)| Behind {
            lanes: sum.lanes + one.lanes,
            deliveries: sum.deliveries + one.deliveries,
        })
    }
}

impl Turns {
    /// By origin and scope.
    pub(crate) fn held_hosts(&self, now: Timestamp) -> Vec<HeldHost> {
        let mut hosts: Vec<_> = self
            .gates
            .held()
            .map(|record| HeldHost {
                origin: record.origin,
                scope: record.scope,
                gate: record.gate,
                why: record.why,
                behind: BTreeMap::new(),
            })
            .collect();
        hosts.sort_by(|a, b| (&a.origin, a.scope).cmp(&(&b.origin, b.scope)));
        if hosts.is_empty() {
            return hosts;
        }
        for lane in self.lanes.values().filter(|lane| is_due(lane, now)) {
            let Some(awake) = &lane.awake else { continue };
            let target = &awake.target;
            let first = hosts.partition_point(|host| host.origin < target.origin);
            for host in hosts[first..].iter_mut().take_while(|host| host.origin == target.origin) {
                let reaches = match host.scope {
                    GateScope::Host => true,
                    GateScope::Application(app) => app == target.app,
                };
                if reaches && target.policy.takes_part_in(host.scope) {
                    let behind = host.behind.entry((target.org, target.app)).or_default();
                    behind.lanes += 1;
                    behind.deliveries += lane.backlog.len();
                }
            }
        }
        hosts
    }

    /// Gates were opened by a hand: whoever waited behind them looks again. Lanes at rest do not know where
    /// they send to; those that have something due look too.
    pub(crate) fn released(&mut self, gates: &[Key], now: Timestamp) {
        let mut woken: Vec<_> = gates.iter().flat_map(|key| self.gates.release(key, now)).collect();
        let behind = |lane: &Lane| match &lane.awake {
            Some(awake) => gates.iter().any(|(origin, _)| *origin == awake.target.origin),
            None => true,
        };
        let waiting = self.lanes.iter().filter(|(_, lane)| is_due(lane, now) && behind(lane));
        woken.extend(waiting.map(|(endpoint, _)| *endpoint));
        woken.sort_unstable();
        woken.dedup();
        for endpoint in woken {
            self.wake(endpoint);
        }
    }
}

fn is_due(lane: &Lane, now: Timestamp) -> bool {
    lane.backlog.next_due().is_some_and(|due_at| due_at <= now)
}
