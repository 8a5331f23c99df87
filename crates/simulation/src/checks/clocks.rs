//! What a wrong clock must not do.

use super::Findings;
use super::story::Stories;
use crate::log::Log;
use aldaba_delivery::{MessageId, Reason, Timestamp};
use aldaba_store::{DeliveryState, RemovedCounts};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that may be removed is kept for at least so long, by the true time.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a delivery to a healthy endpoint may wait: a restart, and a look of the dispatcher.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Of what is kept for a day and more.
pub(super) fn nothing_is_removed(log: &Log, found: &mut Findings) {
    let Some(first) = log.lives.first() else { return };
    for (at, counts) in &log.removed {
        // A gate is no promise, and is made again by the next failure.
        let matters = RemovedCounts { gates: 0, ..*counts } != RemovedCounts::default();
        found.require(!matters || at.since(first.began) >= KEPT, "clock", || {
            format!("{counts:?} were removed after {:?}", at.since(first.began))
        });
    }
}

/// Stop dates and holds are a week and a month; no run is that long.
pub(super) fn nothing_ends_by_time(stories: &Stories<'_>, found: &mut Findings) {
    for story in stories.iter() {
        let by_time = matches!(
            story.delivery.state,
            DeliveryState::Dead { reason: Reason::StopDate | Reason::Expired, .. }
        );
        found.require(!by_time, "clock", || format!("{story} ended as {:?}", story.delivery.state));
    }
}

/// What goes to an endpoint that is always well arrives soon after it was accepted, whatever the clock has shown. What was
/// on the wire at a crash is sent again after the start.
pub(super) fn nothing_waits_for_a_clock(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let accepted: BTreeMap<MessageId, Timestamp> =
        log.accepts.iter().map(|accept| (accept.message, accept.at)).collect();
    let healthy = |url: &str| url.starts_with("https://host-0.example/");
    for story in stories.iter().filter(|story| healthy(&story.endpoint.config.url)) {
        let Some(accepted) = accepted.get(&story.delivery.message) else { continue };
        let last = story.requests.iter().map(|request| request.at).max();
        let delivered = matches!(story.delivery.state, DeliveryState::Delivered { .. });
        let waited = last.filter(|_| delivered).map(|last| last.since(*accepted));
        found.require(waited.is_some_and(|waited| waited <= LONGEST_WAIT), "waits", || {
            format!("{story} was accepted at {accepted:?} and waited for {waited:?}")
        });
    }
}
