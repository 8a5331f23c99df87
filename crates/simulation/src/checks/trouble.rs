//! What the engine does when the store or an endpoint is in trouble.

use super::Findings;
use super::pace::SLOW_READ;
use crate::log::{Log, Request};
use crate::scenario::door_number;
use aldaba_delivery::EndpointId;
use aldaba_store::Recorded;
use aldaba_store::operations::everything::Everything;
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

pub(super) fn deleted_endpoints_are_left_alone(disk: &Everything, log: &Log, found: &mut Findings) {
    let doors: BTreeMap<EndpointId, usize> =
        disk.endpoints.values().filter_map(|row| Some((row.id, door_number(&row.config.url)?))).collect();
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
