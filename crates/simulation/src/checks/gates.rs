//! Hosts that look down are left alone until their hold is over, and then get one probe first.

use super::Findings;
use super::pace::SLOW_READ;
use crate::log::{Fate, Hold, Log, RecordCommit, Request, Step};
use crate::scenario::{Scenario, door_number};
use aldaba_delivery::{AppId, EndpointId, FailureKind, GateKey, GateScope, OrgId, Policy, Timestamp};
use aldaba_engine::Policies;
use aldaba_store::Recorded;
use aldaba_store::operations::everything::Everything;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long after its end a hold is remembered at least.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// Everything that is known of one gate.
struct Gate<'a> {
    key: &'a GateKey,
    /// In the order of their commits.
    holds: Vec<(&'a RecordCommit, &'a Hold)>,
    /// The requests of lanes that take part, in the order in which they left, with their policies.
    requests: Vec<(&'a Request, Policy)>,
    /// When something was heard that opens it.
    openings: Vec<(Step, Timestamp)>,
}

pub(super) fn gates_hold(scenario: &Scenario, disk: &Everything, log: &Log, found: &mut Findings) {
    let policies = scenario.policies();
    for gate in gates(scenario, &policies, disk, log) {
        gate.holds_until_it_ends(found);
        gate.lets_one_probe_through(found);
    }
}

/// What happens to one organization's requests says nothing about another's.
pub(super) fn gates_keep_to_their_organization(disk: &Everything, log: &Log, found: &mut Findings) {
    let orgs: BTreeMap<EndpointId, OrgId> = disk.endpoints.values().map(|row| (row.id, row.org)).collect();
    for record in &log.records {
        for Hold { key, .. } in &record.gates {
            found.require(orgs.get(&record.endpoint).is_none_or(|org| *org == key.org), "tenancy", || {
                format!("an attempt for {} has set a hold of another organization: {key:?}", record.endpoint)
            });
        }
    }
}

fn gates<'a>(scenario: &Scenario, policies: &Policies, disk: &Everything, log: &'a Log) -> Vec<Gate<'a>> {
    let owners: BTreeMap<usize, (OrgId, AppId)> = disk
        .endpoints
        .values()
        .filter_map(|row| Some((door_number(&row.config.url)?, (row.org, row.app))))
        .collect();
    let mut holds: BTreeMap<&GateKey, Vec<_>> = BTreeMap::new();
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        for hold in &record.gates {
            holds.entry(&hold.key).or_default().push((record, hold));
        }
    }
    let policy = |door: usize| -> &Policy {
        policies.builtin(scenario.doors[door].policy).expect("a built-in policy")
    };
    let gate = |(key, holds): (&'a GateKey, _)| {
        let bound = |request: &&Request| {
            let reaches = owners.get(&request.door).is_some_and(|(org, app)| {
                *org == key.org
                    && match key.scope {
                        GateScope::Host => true,
                        GateScope::Application(only) => only == *app,
                    }
            });
            reaches
                && policy(request.door).uses_gate(key.scope)
                && scenario.origin(request.door) == key.origin
        };
        let requests: Vec<_> = log.requests.iter().filter(bound).collect();
        let ends = requests.iter().filter_map(|request| request.end);
        let answers = ends.filter(|end| opens(key.scope, end.fate)).map(|end| (end.step, end.at));
        let released = log.gate_releases.iter().filter(|opening| opening.gates.contains(key));
        let openings = answers.chain(released.map(|opening| (opening.step, opening.at))).collect();
        let requests = requests.into_iter().map(|request| (request, policy(request.door).clone())).collect();
        Gate { key, holds, requests, openings }
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
            let held = |(request, policy): &&(&Request, Policy)| {
                request.at > record.at + SLOW_READ
                    && request.at < end_for(hold, policy)
                    && !self.opened_between(record.decided_at, request.at)
            };
            for (early, policy) in self.requests.iter().filter(held) {
                found.add("gate", || {
                    let (key, until) = (self.key, end_for(hold, policy));
                    format!(
                        "{key:?} is held until {until:?}; door {} got a request at {:?}",
                        early.door, early.at
                    )
                });
            }
        }
    }

    /// A request that meets the end of a hold, or of what its own policy obeys of it, is a probe, and nothing goes out
    /// beside it.
    fn lets_one_probe_through(&self, found: &mut Findings) {
        for pair in self.requests.windows(2) {
            let [(probe, policy), (next, _)] = pair else { continue };
            let beside = next.life == probe.life && probe.end.is_none_or(|end| end.step > next.step);
            let Some((record, hold)) = self.holds.iter().rev().find(|(record, _)| record.step < probe.step)
            else {
                continue;
            };
            // Long after its end a hold is forgotten.
            let after_the_hold = probe.at >= end_for(hold, policy)
                && probe.at < hold.until + REMEMBERED
                && probe.at > record.at + SLOW_READ;
            if beside && after_the_hold && !self.opened_between(record.decided_at, next.at) {
                found.add("gate", || {
                    let key = self.key;
                    format!("{key:?}: a probe at {:?}, and beside it a request at {:?}", probe.at, next.at)
                });
            }
        }
    }
}

/// When a hold ends for lanes under a policy: no later than the policy's own longest one would.
fn end_for(hold: &Hold, policy: &Policy) -> Timestamp {
    hold.until.min(hold.failed_at + policy.longest_hold())
}
