//! I1 and I2: what was accepted ends, with its whole history, and exists once.

use super::Findings;
use super::story::{Stories, Story};
use crate::client::Notes;
use crate::log::Log;
use crate::run::is_held;
use crate::scenario::Scenario;
use aldaba_delivery::{EndpointId, MessageId, Reason};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{DeliveryState, NewAttempt, Recorded};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn accepted_is_kept(disk: &Everything, notes: &Notes, found: &mut Findings) {
    let kept: BTreeSet<MessageId> = disk.messages.iter().map(|message| message.id).collect();
    for (event, messages) in &notes.accepted {
        for message in messages {
            found.require(kept.contains(message), "I1", || {
                format!("event {event} was accepted as {message}, which is not on disk")
            });
        }
    }
}

pub(super) fn fan_out_is_exact(disk: &Everything, log: &Log, found: &mut Findings) {
    let mut deliveries: BTreeMap<MessageId, Vec<EndpointId>> = BTreeMap::new();
    for delivery in disk.deliveries.iter() {
        deliveries.entry(delivery.message).or_default().push(delivery.endpoint);
    }
    let on_disk: BTreeSet<MessageId> = disk.messages.iter().map(|message| message.id).collect();
    for accept in log.accepts.iter().filter(|accept| on_disk.contains(&accept.message)) {
        let mut got = deliveries.get(&accept.message).cloned().unwrap_or_default();
        got.sort();
        // Each round of a delivery is one.
        got.dedup();
        let mut wanted = accept.wanted.clone();
        for ((_, endpoint), all_gone) in
            log.passed_on.iter().filter(|((message, _), _)| *message == accept.message)
        {
            found.require(*all_gone, "I1", || {
                format!("{} was passed on to {endpoint}, and one that it was for is there", accept.message)
            });
            wanted.push(*endpoint);
        }
        wanted.sort();
        wanted.dedup();
        found.require(got == wanted, "I1", || {
            format!("{} should go to {wanted:?}, and goes to {got:?}", accept.message)
        });
    }
}

/// Delivered, or dead for a reason that fits, or held where only the endpoint's owner can help.
pub(super) fn everything_ends(
    scenario: &Scenario,
    stories: &Stories<'_>,
    notes: &Notes,
    found: &mut Findings,
) {
    for story in stories.iter() {
        match story.delivery.state {
            DeliveryState::Delivered { .. } | DeliveryState::Skipped { .. } => {}
            DeliveryState::Dead { reason, .. } => {
                found.require(fits(scenario, story, reason, notes), "I1", || {
                    let delivery = story.delivery;
                    format!("{story} died of {reason:?} after {} attempts", delivery.attempts)
                });
            }
            DeliveryState::Waiting { due_at } => found.require(is_held(story.endpoint), "I1", || {
                format!("{story} still waits, due at {due_at:?}; {:?}", story.endpoint.health)
            }),
        }
    }
}

fn fits(scenario: &Scenario, story: &Story<'_>, reason: Reason, notes: &Notes) -> bool {
    let Story { delivery, endpoint, policy, .. } = story;
    // By the order of the commits: a clock that was set back gives a later attempt an earlier start.
    let applied = || story.records.iter().filter(|record| record.result == Recorded::Applied);
    let counted = |attempt: &&NewAttempt| attempt.trigger.counts();
    let last_attempt = applied().rev().find_map(|record| record.attempt.as_ref().filter(counted));
    let last_status = last_attempt.and_then(|attempt| attempt.status_code);
    match reason {
        Reason::Exhausted => Some(delivery.attempts) == policy.limit.attempts,
        Reason::Rejected => last_status.is_some_and(|status| policy.rejects.contains(status)),
        Reason::StopDate => policy.limit.stop_after.is_some(),
        Reason::EndpointGone => last_status == Some(410) && policy.gone_disables,
        Reason::Cancelled => endpoint.deleted || notes.to_cancel.contains(&delivery.seq),
        Reason::PayloadDeleted => notes.to_expunge.contains(&delivery.message),
        Reason::Expired => {
            let ended = applied().find(|record| record.transition.ending().is_some());
            ended.is_some_and(|record| record.at.since(delivery.clock_start) >= scenario.options.held)
        }
        // Nothing here is forbidden.
        Reason::TargetForbidden => false,
    }
}

/// What the client was told is cancelled has ended so.
pub(super) fn cancelled_means_ended(stories: &Stories<'_>, notes: &Notes, found: &mut Findings) {
    for story in notes.cancelled.iter().filter_map(|seq| stories.0.get(seq)) {
        let ended = match story.delivery.state {
            DeliveryState::Dead { reason, .. } => reason == Reason::Cancelled,
            // A manual attempt afterwards may deliver it.
            DeliveryState::Delivered { .. } => !story.manual.is_empty(),
            _ => false,
        };
        found.require(ended, "cancel", || {
            format!("{story} counts as cancelled, and is {:?}", story.delivery.state)
        });
    }
}

pub(super) fn history_is_whole(disk: &Everything, stories: &Stories<'_>, found: &mut Findings) {
    for story in stories.iter() {
        let (counted, kept) = (story.delivery.attempts as usize, story.attempts.len());
        found.require(counted == kept, "I1", || {
            format!("{story} has {counted} attempts, and {kept} of them are in its history")
        });
    }
    for attempt in disk.attempts.iter().filter(|attempt| attempt.trigger.counts()) {
        found.require(stories.0.contains_key(&attempt.seq), "I1", || {
            format!("{} is an attempt of {:?}, which is not on disk", attempt.id, attempt.seq)
        });
    }
}

/// Every event has a payload of its own, by which its messages are counted. Those of sources are another matter.
pub(super) fn nothing_is_accepted_twice(disk: &Everything, log: &Log, notes: &Notes, found: &mut Findings) {
    let mut by_payload: BTreeMap<&[u8], Vec<MessageId>> = BTreeMap::new();
    let of_sources: BTreeSet<_> = log.sources.iter().map(|commit| commit.app).collect();
    for message in disk.messages.iter().filter(|message| !of_sources.contains(&message.app)) {
        by_payload.entry(&message.content.payload).or_default().push(message.id);
    }
    for (payload, messages) in by_payload {
        found.require(messages.len() == 1, "I2", || {
            format!("{} was stored as {messages:?}", String::from_utf8_lossy(payload))
        });
    }
    for (event, messages) in &notes.accepted {
        let distinct: BTreeSet<_> = messages.iter().collect();
        found.require(distinct.len() == 1, "I2", || format!("event {event} was accepted as {distinct:?}"));
    }
}
