//! Manual attempts: each is one request and is kept, and nothing is sent by the schedule meanwhile.

use super::Findings;
use super::ordering::{Orderings, binds};
use super::pace::SLOW_READ;
use super::wire::agrees;
use crate::log::{Log, RecordCommit, Request, Step};
use aldaba_delivery::{EndpointId, MessageId, Timestamp, Transition};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{Attempt, Recorded, Trigger};
use std::collections::BTreeSet;

/// The requests that were made manually: those that are on disk as such, and those that died with the process
/// while somebody waited for one.
pub(super) fn requests<'a>(disk: &Everything, log: &'a Log) -> Vec<&'a Request> {
    let scheduled = disk.attempts.iter().filter(|attempt| attempt.trigger.counts());
    let scheduled: BTreeSet<(EndpointId, MessageId, Timestamp)> =
        scheduled.map(|attempt| (attempt.endpoint, attempt.message, attempt.started_at)).collect();
    let is_manual = |request: &&Request| {
        let asked = log.resends.iter().filter(|resend| resend.may_be(request));
        asked.into_iter().any(|resend| !scheduled.contains(&(resend.endpoint, resend.message, request.at)))
    };
    log.requests.iter().filter(is_manual).collect()
}

/// The log as if nobody had made any. What they have settled stays settled.
pub(super) fn without(log: &Log, manual: &[&Request]) -> Log {
    let steps: BTreeSet<Step> = manual.iter().map(|request| request.step).collect();
    let mut log = log.clone();
    log.requests.retain(|request| !steps.contains(&request.step));
    log.records
        .retain(|record| !(record.is_manual() && matches!(record.transition, Transition::Retry { .. })));
    for record in log.records.iter_mut().filter(|record| record.is_manual()) {
        record.attempt = None;
    }
    log
}

/// Each attempt that was answered as made is in the history, as it was.
pub(super) fn attempts_are_on_disk(disk: &Everything, log: &Log, found: &mut Findings) {
    let kept: Vec<&Attempt> =
        disk.attempts.iter().filter(|attempt| attempt.trigger == Trigger::Manual).collect();
    for resend in &log.resends {
        let requests: Vec<_> = log.requests.iter().filter(|request| resend.may_be(request)).collect();
        let made = |request: &&&Request| {
            kept.iter().any(|attempt| {
                (attempt.endpoint, attempt.message) == (resend.endpoint, resend.message)
                    && attempt.started_at == request.at
                    && agrees(attempt, request)
            })
        };
        if let Some((_, true)) = resend.answered {
            found.require(requests.iter().any(|request| made(&request)), "manual", || {
                format!("an attempt was made ({resend:?}), and the history has none like it")
            });
        }
    }
    for attempt in kept {
        let asked = log.resends.iter().filter(|resend| {
            (resend.endpoint, resend.message) == (attempt.endpoint, attempt.message)
                && log.requests.iter().any(|one| resend.may_be(one) && one.at == attempt.started_at)
        });
        found.require(asked.count() > 0, "manual", || format!("nobody has asked for {attempt:?}"));
    }
}

/// What waits is taken out of its lane: it is not sent by the schedule, and nobody else changes it.
pub(super) fn nothing_goes_out_beside_them(log: &Log, manual: &[&Request], found: &mut Findings) {
    let steps: BTreeSet<Step> = manual.iter().map(|request| request.step).collect();
    let orderings = Orderings::of(log);
    let records = log.records.iter().filter(|record| record.is_manual());
    let started = |record: &RecordCommit| record.attempt.as_ref().map(|attempt| attempt.started_at);
    let endpoint_of =
        |request: &Request| log.resends.iter().find(|resend| resend.may_be(request)).map(|one| one.endpoint);
    for record in records {
        found.require(record.result == Recorded::Applied, "manual", || {
            format!("what was to be sent manually has changed meanwhile: {record:?}")
        });
        let own = manual.iter().find(|request| {
            request.life == record.life
                && Some(request.at) == started(record)
                && request.step < record.step
                && endpoint_of(request) == Some(record.endpoint)
        });
        let Some(own) = own else { continue };
        let ordered = orderings.at(record.endpoint, own.step);
        let overtakes = ordered.is_some_and(|commit| commit.ordering.is_fifo() && binds(commit, own.at));
        found.require(!overtakes, "I8", || format!("{own:?} was sent manually out of its turn"));
        let beside = |other: &&Request| {
            (other.life, other.door, other.message) == (own.life, own.door, own.message)
                && !steps.contains(&other.step)
                && other.step < record.step
                && other.end.is_none_or(|end| end.step > own.step)
        };
        for other in log.requests.iter().filter(beside) {
            found.add("manual", || format!("{own:?} was on its way, and beside it {other:?}"));
        }
    }
}

/// Neither one that is deleted nor one that is turned off.
pub(super) fn only_endpoints_that_are_on_get_them(log: &Log, manual: &[&Request], found: &mut Findings) {
    for request in manual {
        let Some(endpoint) = log.resends.iter().find(|resend| resend.may_be(request)).map(|one| one.endpoint)
        else {
            continue;
        };
        let deleted = log
            .deletions
            .iter()
            .any(|deletion| deletion.endpoint == endpoint && request.at > deletion.at + SLOW_READ);
        let last = log.operator_changes.iter().rfind(|change| {
            change.endpoint == endpoint && change.step < request.step && request.at > change.at + SLOW_READ
        });
        let off = last.is_some_and(|change| change.off)
            && !log.operator_changes.iter().any(|change| {
                change.endpoint == endpoint && !change.off && last.is_some_and(|last| change.step > last.step)
            });
        found.require(!deleted && !off, "manual", || {
            format!("{request:?} went to an endpoint that was deleted ({deleted}) or off ({off})")
        });
    }
}
