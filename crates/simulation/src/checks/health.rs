//! The health of endpoints on disk is what their attempts make of it.

use super::Findings;
use super::ordering::Orderings;
use super::pace::outcome;
use super::story::Stories;
use crate::log::{Life, Log, OperatorChange, RecordCommit};
use aldaba_delivery::{Class, Ending, EndpointId, Health, Timestamp};
use aldaba_store::Recorded;
use aldaba_store::operations::everything::Everything;
use std::collections::{BTreeMap, VecDeque};

/// Where a life ended with nothing in flight, its attempts are gone through again in the order in
/// which they came back. Old news that is written late must not replace newer news.
pub(super) fn health_is_what_the_attempts_made_it(
    disk: &Everything,
    stories: &Stories<'_>,
    log: &Log,
    found: &mut Findings,
) {
    let orderings = Orderings::of(log);
    let mut before: &BTreeMap<EndpointId, Health> = &BTreeMap::new();
    for (number, life) in log.lives.iter().enumerate() {
        if !life.end.cuts() {
            let expected = gone_through(stories, log, number, before);
            compare(
                number,
                life,
                &expected,
                |id| !orderings.ever_changed(id) && !disk.was_removed(id),
                found,
            );
        }
        before = &life.health;
    }
}

fn gone_through(
    stories: &Stories<'_>,
    log: &Log,
    life: usize,
    before: &BTreeMap<EndpointId, Health>,
) -> BTreeMap<EndpointId, Health> {
    let mut health = before.clone();
    let applied = |record: &&RecordCommit| record.life == life && record.result == Recorded::Applied;
    let mut judged: Vec<_> = log
        .records
        .iter()
        .filter(applied)
        .filter_map(|record| {
            let story = stories.0.get(&record.seq)?;
            let Some(attempt) = &record.attempt else {
                return Some((record.step, record, story, None));
            };
            let request = story.requests.iter().find(|request| request.at == attempt.started_at)?;
            Some((request.end?.step, record, story, Some((attempt, request))))
        })
        .collect();
    judged.sort_by_key(|(step, ..)| *step);
    let mut asked: BTreeMap<EndpointId, Timestamp> = BTreeMap::new();
    let mut changes: BTreeMap<EndpointId, VecDeque<&OperatorChange>> = BTreeMap::new();
    for change in log.operator_changes.iter().filter(|change| change.life == life) {
        changes.entry(change.endpoint).or_default().push_back(change);
    }
    for (_, record, story, made) in judged {
        let known = health.entry(record.endpoint).or_default();
        let ahead = changes.entry(record.endpoint).or_default();
        let epoch = record.health.as_ref().map_or(known.epoch, |made| made.epoch);
        while let Some(change) = ahead.front()
            && change.health.epoch <= epoch
        {
            *known = change.health.clone();
            known.quiet_until = known.quiet_until.max(asked.remove(&record.endpoint));
            ahead.pop_front();
        }
        let mut after = known.clone();
        if let Some((attempt, request)) = made {
            let class = Class::of(&story.policy, &outcome(attempt, request.retry_after()));
            after = after.after_attempt(&story.policy, &class, &record.transition, record.decided_at);
        }
        let died = match record.transition.ending() {
            Some(Ending::Dead(reason)) => !reason.is_manual(),
            Some(Ending::Delivered) | None => false,
        };
        if died && story.endpoint.config.ordering.blocks() {
            after = after.blocked(record.decided_at);
        }
        if ahead.front().is_none_or(|change| change.step > record.step) {
            *known = after;
        } else if let Some(until) = after.quiet_until {
            // It was judged before a change was heard of, and written after it: only what the receiver asked
            // for still counts.
            let latest = asked.entry(record.endpoint).or_insert(until);
            *latest = until.max(*latest);
        }
    }
    for change in changes.into_values().filter_map(|ahead| ahead.back().copied()) {
        let quiet_until = change.health.quiet_until.max(asked.remove(&change.endpoint));
        health.insert(change.endpoint, Health { quiet_until, ..change.health.clone() });
    }
    health
}

/// Where the ordering has changed on the way, nobody can say which one an attempt was made under; and an address
/// that was made anew has forgotten what was.
fn compare(
    number: usize,
    life: &Life,
    expected: &BTreeMap<EndpointId, Health>,
    can_be_told: impl Fn(EndpointId) -> bool,
    found: &mut Findings,
) {
    for (endpoint, health) in life.health.iter().filter(|(id, _)| can_be_told(**id)) {
        let expected = expected.get(endpoint).cloned().unwrap_or_default();
        found.require(*health == expected, "health", || {
            format!("after life {number} {endpoint} is {health:?}; its attempts make it {expected:?}")
        });
    }
}
