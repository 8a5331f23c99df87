//! Nothing waits past its stop date, whatever it waits for, and nothing ends for it long before.

use super::Findings;
use super::operators;
use super::story::{Stories, Story};
use crate::log::{Life, Log};
use crate::scenario::Scenario;
use aldaba_delivery::{Ending, Reason, Timestamp};
use aldaba_store::Recorded;
use std::time::Duration;

/// An attempt may be under way, the store may be slow, and reads may fail a few times.
const SLACK: Duration = Duration::from_secs(120);
/// What a hold would move past its stop date ends when that is known.
const LONGEST_HOLD: Duration = Duration::from_secs(4096);

pub(super) fn nothing_waits_past_its_stop_date(
    scenario: &Scenario,
    stories: &Stories<'_>,
    log: &Log,
    found: &mut Findings,
) {
    for story in stories.iter().filter(|story| counts(story, log)) {
        let Some(span) = story.policy.limit.stop_after else { continue };
        let stop = story.delivery.clock_start + span;
        ends_in_time(scenario, story, stop, log, found);
        for record in story.records.iter().filter(|record| record.result == Recorded::Applied) {
            let for_it = record.transition.ending() == Some(Ending::Dead(Reason::StopDate));
            let early = record.attempt.is_none() && record.decided_at + LONGEST_HOLD <= stop;
            found.require(!(for_it && early), "stop date", || {
                format!(
                    "{story} has ended for its stop date at {:?}, long before {stop:?}",
                    record.decided_at
                )
            });
        }
    }
}

/// Whether its stop date is that of its acceptance, and counts at all times. What a person or an ordering lets go, or
/// holds, has another one.
fn counts(story: &Story<'_>, log: &Log) -> bool {
    let endpoint = story.delivery.endpoint;
    let blocks = log.orderings.iter().any(|change| change.endpoint == endpoint && change.ordering.blocks());
    !story.delivery.replayed
        && story.manual.is_empty()
        && !story.endpoint.deleted
        && !blocks
        && operators::of(log, endpoint).next().is_none()
}

fn ends_in_time(scenario: &Scenario, story: &Story<'_>, stop: Timestamp, log: &Log, found: &mut Findings) {
    let settled_at = story.delivery.state.settled_at();
    let last = log.lives.last().map_or(stop, |life| life.ended);
    let waited_until = settled_at.unwrap_or(last);
    let could_not_be_written =
        scenario.faults.full.iter().any(|full| full.to + SLACK > stop && full.from < waited_until);
    let late = |life: &Life| {
        let from = life.began.max(stop);
        life.ended > from + SLACK && waited_until > from + SLACK
    };
    found.require(could_not_be_written || !log.lives.iter().any(late), "stop date", || {
        format!(
            "{story} waited until {waited_until:?}, and its stop date was {stop:?}; settled: {settled_at:?}"
        )
    });
}
