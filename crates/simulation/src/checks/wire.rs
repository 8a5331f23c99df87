//! I3, I4, I5: what is on the wire is what is on disk, but for what a crash cut off.

use super::Findings;
use super::story::Stories;
use crate::log::{Fate, Log, RecordCommit, Request};
use aldaba_delivery::policy::{MAX_ATTEMPTS, Redirects};
use aldaba_delivery::{Ending, FailureKind, Reason};
use aldaba_store::{Attempt, DeliveryState, Recorded};
use std::collections::BTreeSet;

pub(super) fn nothing_leaves_after_the_end(stories: &Stories<'_>, found: &mut Findings) {
    for story in stories.iter() {
        let settles = |record: &&&RecordCommit| {
            record.transition.ending().is_some() && record.result == Recorded::Applied
        };
        let Some(settled) = story.records.iter().find(settles) else {
            continue;
        };
        for late in story.requests.iter().filter(|request| request.step > settled.step) {
            found.add("I3", || {
                format!("{story} was settled at {:?}, and a request left at {:?}", settled.at, late.at)
            });
        }
    }
}

/// As many as the policy allows, and one more for each life that ended while one was in flight.
pub(super) fn requests_are_limited(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    for story in stories.iter() {
        let limit = story.policy.limit.attempts.unwrap_or(MAX_ATTEMPTS) as usize;
        let (requests, attempts) = (story.requests.len(), story.attempts.len());
        let lives: BTreeSet<_> = story.unrecorded().map(|request| request.life).collect();
        let cut_off = lives.into_iter().filter(|life| log.lives[*life].end.cuts()).count();
        found.require(requests <= limit + cut_off && attempts <= limit, "I4", || {
            format!("{story}: {requests} requests and {attempts} attempts, {cut_off} cut off, limit {limit}")
        });
    }
}

pub(super) fn attempts_are_requests(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    for story in stories.iter() {
        for attempt in &story.attempts {
            let made = story.requests.iter().filter(|request| request.at == attempt.started_at).count();
            found.require(made == 1, "I5", || {
                format!("{story}: the attempt at {:?} was {made} requests", attempt.started_at)
            });
            if let Some(request) = story.request_of(attempt) {
                found.require(agrees(attempt, request), "I5", || {
                    format!("{story}: recorded as {attempt:?}, seen as {request:?}")
                });
            }
        }
        for request in story.unrecorded() {
            let life = &log.lives[request.life];
            let last =
                story.requests.iter().all(|other| other.life != request.life || other.step <= request.step);
            found.require(life.end.cuts() && last, "I5", || {
                format!(
                    "{story}: the request at {:?} was never recorded, though no crash cut it off (life {}: {:?})",
                    request.at, request.life, life.end
                )
            });
        }
        for pair in story.requests.windows(2) {
            let [first, second] = [pair[0], pair[1]];
            let over = first.end.is_some_and(|end| end.step < second.step);
            found.require(over || first.life != second.life, "I5", || {
                format!("{story}: two requests at once, from {:?} and {:?}", first.at, second.at)
            });
        }
        // The caller that ends it may have read the row a while ago.
        let own = |record: &&&RecordCommit| match record.transition.ending() {
            Some(Ending::Dead(Reason::StopDate)) => record.attempt.is_some(),
            Some(Ending::Dead(reason)) => !reason.is_manual(),
            Some(Ending::Delivered) | None => true,
        };
        for fenced in story.records.iter().filter(own).filter(|record| record.result == Recorded::Fenced) {
            found.add("I5", || {
                format!("{story}: the only node was fenced at {:?}: it did not know its own row", fenced.at)
            });
        }
    }
}

pub(super) fn agrees(attempt: &Attempt, request: &Request) -> bool {
    match request.end.map(|end| end.fate) {
        None => false,
        Some(Fate::Answered { status, .. }) => attempt.status_code == Some(status),
        Some(Fate::Failed(kind)) => attempt.failure == Some(kind),
        Some(Fate::Panicked) => attempt.failure == Some(FailureKind::Internal) && !attempt.success,
    }
}

pub(super) fn delivered_means_arrived(stories: &Stories<'_>, found: &mut Findings) {
    for story in stories.iter() {
        let success = |request: &&&Request| match request.end.map(|end| end.fate) {
            Some(Fate::Answered { status, .. }) => {
                let taken = story.policy.redirects == Redirects::TakeAsSuccess;
                story.policy.success.contains(status) || (taken && (300..400).contains(&status))
            }
            _ => false,
        };
        let arrived = story.requests.iter().chain(&story.manual).find(success);
        let delivered = matches!(story.delivery.state, DeliveryState::Delivered { .. });
        found.require(!delivered || arrived.is_some(), "I1", || {
            format!("{story} counts as delivered, and no receiver has answered so")
        });
        let recorded =
            story.requests.iter().find(success).filter(|request| story.attempt_of(request).is_some());
        found.require(delivered || recorded.is_none(), "I1", || {
            format!("{story} was answered with a success, and is {:?}", story.delivery.state)
        });
    }
}

pub(super) fn everything_is_signed(log: &Log, found: &mut Findings) {
    for request in log.requests.iter().filter(|request| !request.signed) {
        found.add("signature", || format!("{} to door {} does not verify", request.message, request.door));
    }
}
