//! What operators do to endpoints holds: nothing is sent to one that is off, or that waits for its owner, and
//! nothing is skipped for one that is on.

use super::Findings;
use super::pace::SLOW_READ;
use super::story::Stories;
use crate::log::{Log, OperatorChange, Request};
use crate::scenario::door_number;
use aldaba_delivery::{EndpointId, Health, HealthStatus, Timestamp};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{DeliveryState, Recorded};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn of(log: &Log, endpoint: EndpointId) -> impl Iterator<Item = &OperatorChange> {
    log.operator_changes.iter().filter(move |change| change.endpoint == endpoint)
}

pub(super) fn nothing_is_sent_while_it_must_not_be(disk: &Everything, log: &Log, found: &mut Findings) {
    let doors: BTreeMap<EndpointId, usize> =
        disk.endpoints.values().filter_map(|row| Some((row.id, door_number(&row.config.url)?))).collect();
    let mut left_alone = |endpoint: EndpointId, from: Timestamp, to: Option<Timestamp>, why: &str| {
        let door = doors.get(&endpoint);
        let within = |request: &&Request| {
            Some(&request.door) == door
                && request.at > from + SLOW_READ
                && !is_cut_off(log, request)
                && to.is_none_or(|to| request.at < to)
        };
        for request in log.requests.iter().filter(within) {
            found.add("held", || {
                format!("door {} {why} at {from:?} and got a request at {:?}", request.door, request.at)
            });
        }
    };
    for change in &log.operator_changes {
        if change.off {
            let on = of(log, change.endpoint).find(|later| later.step > change.step && !later.off);
            left_alone(change.endpoint, change.at, on.map(|on| on.at), "was turned off");
        }
    }
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        // What a block stops is a matter of order.
        let given_up = |health: &&Health| matches!(health.status, HealthStatus::Failed | HealthStatus::Gone);
        let Some(health) = record.health.as_ref().filter(given_up) else {
            continue;
        };
        let before = of(log, record.endpoint).filter(|change| change.step < record.step).count();
        if health.epoch as usize != before {
            continue;
        }
        // Until a probe may go, an operator releases it, or the answer to an earlier request shows that it is well.
        let resumed = of(log, record.endpoint)
            .find(|change| change.step > record.step && change.health.status == HealthStatus::Active);
        let recovered = log.records.iter().find(|later| {
            let active =
                |health: &Health| matches!(health.status, HealthStatus::Active | HealthStatus::Blocked);
            later.step > record.step
                && later.endpoint == record.endpoint
                && later.health.as_ref().is_some_and(active)
        });
        let ends =
            [health.next_probe_at, resumed.map(|change| change.at), recovered.map(|later| later.decided_at)];
        left_alone(record.endpoint, record.at, ends.into_iter().flatten().min(), "was given up");
    }
}

/// What the engine knew when it sent this may have gone with its process before it was written.
fn is_cut_off(log: &Log, request: &Request) -> bool {
    let life = &log.lives[request.life];
    life.end.cuts() && request.at + SLOW_READ > life.ended
}

/// At the moment of the commit, and nothing leaves for it.
pub(super) fn only_what_is_off_is_skipped(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let skipped: BTreeSet<_> = log
        .accepts
        .iter()
        .flat_map(|accept| accept.skipped.iter().map(|endpoint| (accept.message, *endpoint)))
        .collect();
    for story in stories.iter() {
        let is_skipped = matches!(story.delivery.state, DeliveryState::Skipped { .. });
        // A repeat or a replay may open a round later, in the place of the skipped one.
        let was_off =
            skipped.contains(&(story.delivery.message, story.delivery.endpoint)) && !story.delivery.replayed;
        found.require(is_skipped == was_off, "skipped", || {
            format!("{story}: off when it was accepted: {was_off}, skipped: {is_skipped}")
        });
        found.require(!is_skipped || story.requests.is_empty(), "skipped", || {
            format!("{story} was skipped, and a request left for it")
        });
    }
}

/// When what was held for an endpoint was released by an operator: also by another ordering, which ends a block.
pub(super) fn releases(log: &Log, endpoint: EndpointId) -> impl Iterator<Item = Timestamp> {
    let orderings = log.orderings.iter().filter(move |change| change.endpoint == endpoint && !change.first);
    let released =
        of(log, endpoint).filter_map(|change| change.health.released_at.filter(|at| *at <= change.at));
    released.chain(orderings.map(|change| change.at))
}
