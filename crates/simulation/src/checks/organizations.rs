//! The minutes and hours of an organization have what was committed: rates and alerts come from nothing else.

use super::Findings;
use crate::log::{LifeEnd, Log};
use crate::scenario::Scenario;
use aldaba_delivery::{Ending, OrgId, Timestamp};
use aldaba_store::Recorded;
use aldaba_store::operations::everything::{CountedOrganization, Everything};
use std::collections::BTreeMap;
use std::time::Duration;

/// How old counts may be that a crash takes with it: they are written after a second, and the commit before may take five.
const UNWRITTEN: Duration = Duration::from_secs(7);

/// Accepted, delivered, retried, dead.
type Sums = [i64; 4];
type OfMinutes = BTreeMap<(OrgId, i64), Sums>;

/// Every message, retry and end is counted in its minute, but for those of the last moments before a crash.
pub(super) fn minutes_have_what_happened(
    scenario: &Scenario,
    disk: &Everything,
    log: &Log,
    found: &mut Findings,
) {
    let counted = sums(&disk.organization_minutes);
    let (mut all, mut certain) = (OfMinutes::new(), OfMinutes::new());
    let lost = crashes(scenario, log);
    let mut happened = |org: OrgId, at: Timestamp, committed: Timestamp, kind: usize| {
        let key = (org, at.millis().div_euclid(60_000));
        all.entry(key).or_default()[kind] += 1;
        let may_be_lost = lost.iter().any(|(from, to)| (*from..=*to).contains(&committed));
        certain.entry(key).or_default()[kind] += i64::from(!may_be_lost);
    };
    for accept in &log.accepts {
        happened(accept.org, accept.created_at, accept.at, 0);
    }
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        let Some(endpoint) = disk.endpoints.get(&record.endpoint) else { continue };
        let has_failed = record.attempt.as_ref().is_some_and(|attempt| !attempt.success);
        let kind = match record.transition.ending() {
            Some(Ending::Delivered) => 1,
            None if has_failed => 2,
            None => continue,
            Some(Ending::Dead(_)) => 3,
        };
        happened(endpoint.org, record.decided_at, record.at, kind);
    }
    for (key, all) in &all {
        let [counted, least] = [&counted, &certain].map(|of| of.get(key).copied().unwrap_or_default());
        let fits = (0..all.len()).all(|kind| (least[kind]..=all[kind]).contains(&counted[kind]));
        found.require(fits, "organizations", || {
            let (org, minute) = key;
            format!(
                "{org} has {all:?} in minute {minute}, {least:?} for certain, and {counted:?} are counted"
            )
        });
    }
    for key in counted.keys().filter(|key| !all.contains_key(*key)) {
        let is_empty = counted[key] == Sums::default();
        found.require(is_empty, "organizations", || format!("{:?} are counted for {key:?}", counted[key]));
    }
}

/// What was committed from the one moment to the other may not be counted.
fn crashes(scenario: &Scenario, log: &Log) -> Vec<(Timestamp, Timestamp)> {
    let is_crash = |end: LifeEnd| matches!(end, LifeEnd::Killed | LifeEnd::TimedOut);
    let killed = log.lives.iter().filter(|life| is_crash(life.end));
    let span = |ended: Timestamp| {
        let mut from = ended.before(UNWRITTEN);
        // While the disk is full, counts cannot be written either.
        for full in scenario.faults.full.iter().rev().filter(|full| full.from <= ended) {
            if full.to >= from {
                from = from.min(full.from.before(UNWRITTEN));
            }
        }
        (from, ended)
    };
    killed.map(|life| span(life.ended)).collect()
}

/// Both are written together.
pub(super) fn hours_are_their_minutes(disk: &Everything, found: &mut Findings) {
    let mut of_minutes = OfMinutes::new();
    for ((org, minute), sums) in sums(&disk.organization_minutes) {
        let hour = of_minutes.entry((org, minute.div_euclid(60))).or_default();
        hour.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
    }
    let hours = sums(&disk.organization_hours);
    found.require(hours == of_minutes, "organizations", || {
        let differs = |key: &&(OrgId, i64)| hours.get(*key) != of_minutes.get(*key);
        let first = hours.keys().chain(of_minutes.keys()).find(differs);
        format!("the hour {first:?} is not the sum of its minutes")
    });
}

fn sums(rows: &[CountedOrganization]) -> OfMinutes {
    let mut sums = OfMinutes::new();
    for row in rows {
        let sum = sums.entry((row.org, row.span)).or_default();
        let more = [row.accepted, row.delivered, row.retried, row.dead];
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sums
}
