//! The health of endpoints on disk is what their attempts make of it.

use super::Findings;
use super::pace::outcome;
use super::story::Stories;
use crate::log::{Life, Log, RecordCommit};
use aldaba_delivery::{Class, EndpointId, Health};
use aldaba_store::Recorded;
use std::collections::BTreeMap;

/// Where a life ended with nothing in flight, its attempts are gone through again in the order in
/// which they came back. Old news that is written late must not replace newer news.
pub(super) fn health_is_what_the_attempts_made_it(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let mut before: &BTreeMap<EndpointId, Health> = &BTreeMap::new();
    for (number, life) in log.lives.iter().enumerate() {
        if !life.end.cuts() {
            let expected = gone_through(stories, log, number, before);
            compare(number, life, &expected, found);
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
            let attempt = record.attempt.as_ref()?;
            let request = story.requests.iter().find(|request| request.at == attempt.started_at)?;
            Some((request.end?.step, record, attempt, story, request))
        })
        .collect();
    judged.sort_by_key(|(step, ..)| *step);
    for (_, record, attempt, story, request) in judged {
        let class = Class::of(&story.policy, &outcome(attempt, request.retry_after()));
        let known = health.entry(record.endpoint).or_default();
        *known = known.after_attempt(&story.policy, &class, &record.transition, record.decided_at);
    }
    health
}

fn compare(number: usize, life: &Life, expected: &BTreeMap<EndpointId, Health>, found: &mut Findings) {
    for (endpoint, health) in &life.health {
        let expected = expected.get(endpoint).cloned().unwrap_or_default();
        found.require(*health == expected, "health", || {
            format!("after life {number} {endpoint} is {health:?}; its attempts make it {expected:?}")
        });
    }
}
