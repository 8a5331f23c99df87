//! Hosts that look down are left alone until their hold is over, and then get one probe first.

use super::Findings;
use super::pace::SLOW_READ;
use crate::log::{Fate, Hold, Log, RecordCommit, Request, Step};
use crate::scenario::{Scenario, door_number};
use crate::store::Disk;
use aldaba_delivery::{AppId, FailureKind, GateScope, Origin, Policy, Timestamp};
use aldaba_engine::Policies;
use aldaba_store::Recorded;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long after its end a hold is remembered at least.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// Everything that is known of one gate.
struct Gate<'a> {
    origin: &'a Origin,
    /// In the order of their commits.
    holds: Vec<(&'a RecordCommit, &'a Hold)>,
    /// The requests of lanes that take part, in the order in which they left.
    requests: Vec<&'a Request>,
    /// When something was heard that opens it.
    openings: Vec<(Step, Timestamp)>,
}

pub(super) fn gates_hold(scenario: &Scenario, disk: &Disk, log: &Log, found: &mut Findings) {
    let policies = scenario.policies();
    for gate in gates(scenario, &policies, disk, log) {
        gate.holds_until_it_ends(found);
        gate.lets_one_probe_through(found);
    }
}

fn gates<'a>(scenario: &Scenario, policies: &Policies, disk: &Disk, log: &'a Log) -> Vec<Gate<'a>> {
    let apps: BTreeMap<usize, AppId> =
        disk.endpoints().filter_map(|row| Some((door_number(&row.config.url)?, row.app))).collect();
    let mut holds: BTreeMap<(&Origin, GateScope), Vec<_>> = BTreeMap::new();
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        for hold in &record.gates {
            holds.entry((&hold.origin, hold.scope)).or_default().push((record, hold));
        }
    }
    let policy = |door: usize| -> &Policy {
        policies.builtin(scenario.doors[door].policy).expect("a built-in policy")
    };
    let gate = |((origin, scope), holds): ((&'a Origin, GateScope), _)| {
        let bound = |request: &&Request| {
            let reaches = match scope {
                GateScope::Host => true,
                GateScope::Application(app) => apps.get(&request.door) == Some(&app),
            };
            reaches && policy(request.door).takes_part_in(scope) && scenario.origin(request.door) == *origin
        };
        let requests: Vec<_> = log.requests.iter().filter(bound).collect();
        let ends = requests.iter().filter_map(|request| request.end);
        let answers = ends.filter(|end| opens(scope, end.fate)).map(|end| (end.step, end.at));
        let key = (origin.clone(), scope);
        let hands = log.openings.iter().filter(|opening| opening.gates.contains(&key));
        let openings = answers.chain(hands.map(|opening| (opening.step, opening.at))).collect();
        Gate { origin, holds, requests, openings }
    };
    holds.into_iter().map(gate).collect()
}

fn opens(scope: GateScope, fate: Fate) -> bool {
    match (scope, fate) {
        (GateScope::Host, Fate::Answered { .. }) => true,
        (GateScope::Host, Fate::Failed(kind)) => {
            matches!(kind, FailureKind::Timeout | FailureKind::Broken | FailureKind::Malformed)
        }
        (GateScope::Application(_), Fate::Answered { status, .. }) => status == 200,
        _ => false,
    }
}

impl Gate<'_> {
    /// Whether something opened it between the decision to hold and a later moment.
    fn opened_between(&self, from: Timestamp, to: Timestamp) -> bool {
        self.openings.iter().any(|(_, at)| from <= *at && *at <= to)
    }

    fn holds_until_it_ends(&self, found: &mut Findings) {
        for (record, hold) in &self.holds {
            let held = |request: &&&Request| {
                request.at > record.at + SLOW_READ
                    && request.at < hold.until
                    && !self.opened_between(record.decided_at, request.at)
            };
            for early in self.requests.iter().filter(held) {
                found.add("gate", || {
                    let (origin, until) = (self.origin, hold.until);
                    format!(
                        "{origin:?} is held until {until:?}; door {} got a request at {:?}",
                        early.door, early.at
                    )
                });
            }
        }
    }

    /// A request that meets the end of a hold is a probe, and nothing goes out beside it.
    fn lets_one_probe_through(&self, found: &mut Findings) {
        for pair in self.requests.windows(2) {
            let [probe, next] = [pair[0], pair[1]];
            let beside = next.life == probe.life && probe.end.is_none_or(|end| end.step > next.step);
            let Some((record, hold)) = self.holds.iter().rev().find(|(record, _)| record.step < probe.step)
            else {
                continue;
            };
            // Long after its end a hold is forgotten.
            let after_the_hold = probe.at >= hold.until
                && probe.at < hold.until + REMEMBERED
                && probe.at > record.at + SLOW_READ;
            if beside && after_the_hold && !self.opened_between(record.decided_at, next.at) {
                found.add("gate", || {
                    let origin = self.origin;
                    format!("{origin:?}: a probe at {:?}, and beside it a request at {:?}", probe.at, next.at)
                });
            }
        }
    }
}
