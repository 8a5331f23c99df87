//! What the engine does when the store, an endpoint or a host is in trouble.

use super::Findings;
use super::pace::SLOW_READ;
use crate::log::{Fate, Hold, Log, Request};
use crate::scenario::{Scenario, door_number};
use crate::store::Disk;
use aldaba_delivery::{AppId, EndpointId, FailureKind, GateScope, Origin};
use aldaba_store::Recorded;
use std::collections::BTreeMap;

/// I6. The engine learns of it by a result that is refused, and that sending is safe again by one
/// that is written. Attempts that had their turn before may still be reading their payload.
pub(super) fn nothing_is_sent_while_nothing_can_be_written(log: &Log, found: &mut Findings) {
    let applied = |record: &&crate::log::RecordCommit| record.result == Recorded::Applied;
    let mut written = log.records.iter().filter(applied).peekable();
    let mut requests = log.requests.iter().peekable();
    let mut over = 0;
    for refusal in &log.refusals {
        if refusal.step < over {
            continue;
        }
        while written.peek().is_some_and(|record| record.step < refusal.step) {
            written.next();
        }
        let life = &log.lives[refusal.life];
        over = written.peek().map_or(u64::MAX, |record| record.step).min(life.last_step);
        while requests.peek().is_some_and(|request| request.step < refusal.step) {
            requests.next();
        }
        while let Some(request) = requests.next_if(|request| request.step < over) {
            found.require(request.at <= refusal.at + SLOW_READ, "I6", || {
                format!(
                    "results were refused at {:?}, and before any could be written {} left for door {} at {:?}",
                    refusal.at, request.message, request.door, request.at
                )
            });
        }
    }
}

pub(super) fn deleted_endpoints_are_left_alone(disk: &Disk, log: &Log, found: &mut Findings) {
    let doors: BTreeMap<EndpointId, usize> =
        disk.endpoints().filter_map(|row| Some((row.id, door_number(&row.url)?))).collect();
    for deletion in &log.deletions {
        let door = doors.get(&deletion.endpoint);
        let late = |request: &&Request| Some(&request.door) == door && request.at > deletion.at + SLOW_READ;
        for request in log.requests.iter().filter(late) {
            found.add("deleted", || {
                format!(
                    "door {} was deleted at {:?} and got a request at {:?}",
                    request.door, deletion.at, request.at
                )
            });
        }
    }
}

/// From a hold that is on disk until it ends, no lane that takes part sends there, unless something
/// has opened the gate meanwhile.
pub(super) fn gates_hold(scenario: &Scenario, disk: &Disk, log: &Log, found: &mut Findings) {
    let policies = scenario.policies();
    let mut by_origin: BTreeMap<Origin, Vec<&Request>> = BTreeMap::new();
    for request in &log.requests {
        by_origin.entry(scenario.origin(request.door)).or_default().push(request);
    }
    let apps: BTreeMap<usize, AppId> =
        disk.endpoints().filter_map(|row| Some((door_number(&row.url)?, row.app))).collect();
    let binds = |hold: &Hold, request: &Request| {
        let policy = policies.get(scenario.doors[request.door].policy).expect("a built-in policy");
        let reaches = match hold.scope {
            GateScope::Host => true,
            GateScope::Application(app) => apps.get(&request.door) == Some(&app),
        };
        reaches && policy.takes_part_in(hold.scope)
    };
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        for hold in &record.gates {
            let requests = by_origin.get(&hold.origin).into_iter().flatten();
            let bound: Vec<_> = requests.filter(|request| binds(hold, request)).collect();
            let opening = bound.iter().filter_map(|request| request.end).filter(|end| {
                (record.decided_at..=hold.until).contains(&end.at) && opens(hold.scope, end.fate)
            });
            let until = opening.map(|end| end.at).min().unwrap_or(hold.until);
            for early in
                bound.iter().filter(|request| request.at > record.at + SLOW_READ && request.at < until)
            {
                found.add("gate", || {
                    let Hold { origin, until, .. } = hold;
                    format!(
                        "{origin:?} is held until {until:?}, and door {} got a request at {:?}",
                        early.door, early.at
                    )
                });
            }
        }
    }
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
