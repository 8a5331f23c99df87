//! I8 and delays: on an ordered endpoint nothing overtakes, and nothing goes out before its time.

use super::Findings;
use super::pace::SLOW_READ;
use super::story::{Stories, Story};
use crate::log::{Log, OrderingCommit, RecordCommit, Request, Step};
use aldaba_delivery::{Ending, EndpointId, HealthStatus, MessageId, Timestamp};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{DeliveryState, Recorded, Seq};
use std::collections::BTreeMap;

/// The orderings that endpoints have had, in the order of the commits.
pub(super) struct Orderings<'a>(BTreeMap<EndpointId, Vec<&'a OrderingCommit>>);

impl<'a> Orderings<'a> {
    pub(super) fn of(log: &'a Log) -> Self {
        let mut orderings: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for commit in &log.orderings {
            orderings.entry(commit.endpoint).or_default().push(commit);
        }
        Self(orderings)
    }

    /// The one that was on disk at a step.
    pub(super) fn at(&self, endpoint: EndpointId, step: Step) -> Option<&'a OrderingCommit> {
        self.0.get(&endpoint)?.iter().rev().find(|commit| commit.step < step).copied()
    }

    /// When it was last given one, before a step.
    pub(super) fn changed_before(&self, endpoint: EndpointId, step: Step) -> Option<Timestamp> {
        self.at(endpoint, step).map(|commit| commit.at)
    }

    pub(super) fn ever_fifo(&self, endpoint: EndpointId) -> bool {
        self.0.get(&endpoint).is_some_and(|commits| commits.iter().any(|commit| commit.ordering.is_fifo()))
    }

    pub(super) fn ever_changed(&self, endpoint: EndpointId) -> bool {
        self.0.get(&endpoint).is_some_and(|commits| commits.len() > 1)
    }
}

/// The deliveries of each endpoint, in the order of their numbers.
pub(super) fn by_endpoint<'s, 'a>(stories: &'s Stories<'a>) -> BTreeMap<EndpointId, Vec<&'s Story<'a>>> {
    let mut lanes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for story in stories.iter() {
        lanes.entry(story.endpoint.id).or_default().push(story);
    }
    lanes
}

/// Where a delivery's end is on disk.
fn settled<'a>(story: &Story<'a>) -> Option<&'a RecordCommit> {
    let settles =
        |record: &&&RecordCommit| record.transition.ending().is_some() && record.result == Recorded::Applied;
    story.records.iter().find(settles).copied()
}

/// A lane that has just been told of another ordering may have had its turn before.
pub(super) fn binds(commit: &OrderingCommit, at: Timestamp) -> bool {
    commit.first || at > commit.at + SLOW_READ
}

/// Where a delivery stands in the order: by its number, or behind all that were numbered before it took its place.
fn rank(story: &Story<'_>, log: &Log) -> (Seq, bool, Seq) {
    let seq = story.delivery.seq;
    match log.places.get(&seq) {
        Some(commit) => (commit.after, true, seq),
        None => (seq, false, seq),
    }
}

/// Every request of an ordered endpoint finds all earlier deliveries settled: those that took their places before.
pub(super) fn nothing_overtakes(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let orderings = Orderings::of(log);
    for (endpoint, mut lane) in by_endpoint(stories) {
        lane.sort_by_key(|story| rank(story, log));
        // The last end among all before, and whose it is; `None`: it is not settled at all.
        let mut earlier: Option<(Option<Step>, &Story<'_>)> = None;
        for story in lane {
            let ordered = |request: &&&Request| {
                let commit = orderings.at(endpoint, request.step);
                commit.is_some_and(|commit| commit.ordering.is_fifo() && binds(commit, request.at))
            };
            let placed = match (story.delivery.sequence, log.places.get(&story.delivery.seq)) {
                (Some(_), Some(commit)) => Some(commit.step),
                (Some(_), None) => Some(0),
                (None, _) => None,
            };
            for request in story.requests.iter().filter(ordered) {
                if placed.is_none_or(|step| request.step < step) {
                    found.add("I8", || {
                        format!("{story} got a request at {:?}, before it had taken its place", request.at)
                    });
                }
                let overtakes = earlier.filter(|(end, _)| end.is_none_or(|end| end > request.step));
                if let Some((_, first)) = overtakes {
                    found.add("I8", || {
                        format!("{story} got a request at {:?}, before {first} was settled", request.at)
                    });
                }
            }
            if placed.is_none() {
                continue;
            }
            let skipped = matches!(story.delivery.state, DeliveryState::Skipped { .. });
            let end = if skipped { Some(0) } else { settled(story).map(|record| record.step) };
            let later = earlier.is_none_or(|(known, _)| match (known, end) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(known), Some(end)) => end > known,
            });
            if later {
                earlier = Some((end, story));
            }
        }
    }
}

/// Where a delivery has ended without success and the endpoint blocks, nothing goes out until it is given
/// another ordering, or is resumed.
pub(super) fn what_blocks_stops(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let orderings = Orderings::of(log);
    for (endpoint, lane) in by_endpoint(stories) {
        for story in &lane {
            let Some(end) = settled(story) else { continue };
            let Some(Ending::Dead(reason)) = end.transition.ending() else { continue };
            let Some(before) = orderings.at(endpoint, end.step) else { continue };
            let decided = end.attempt.as_ref().map_or(end.decided_at, |attempt| attempt.started_at);
            if reason.is_manual() || !before.ordering.blocks() || !binds(before, decided) {
                continue;
            }
            let passes = |request: &&&Request| {
                let now = orderings.at(endpoint, request.step);
                let resumed = log.operator_changes.iter().any(|change| {
                    change.endpoint == endpoint
                        && (end.step..request.step).contains(&change.step)
                        && change.health.status == HealthStatus::Active
                });
                request.step > end.step && !resumed && now.is_some_and(|now| now.step == before.step)
            };
            for other in &lane {
                for request in other.requests.iter().filter(passes) {
                    found.add("I8", || {
                        format!("{story} has died and blocks; {other} got a request at {:?}", request.at)
                    });
                }
            }
        }
    }
}

pub(super) fn nothing_leaves_before_its_time(disk: &Everything, stories: &Stories<'_>, found: &mut Findings) {
    let moments: BTreeMap<MessageId, Timestamp> =
        disk.messages.iter().filter_map(|message| Some((message.id, message.deliver_at?))).collect();
    for story in stories.iter() {
        let Some(moment) = moments.get(&story.delivery.message) else { continue };
        for request in story.requests.iter().filter(|request| request.at < *moment) {
            found.add("deliverAt", || {
                format!("{story} was to wait until {moment:?}, and a request left at {:?}", request.at)
            });
        }
    }
}
