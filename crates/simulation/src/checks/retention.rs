//! What is kept stays for its time, and goes after it.

use super::Findings;
use super::story::Stories;
use crate::log::{Life, Log};
use crate::scenario::Scenario;
use aldaba_delivery::Timestamp;
use aldaba_delivery::policy::Cutoffs;
use aldaba_store::DeliveryState;
use aldaba_store::operations::everything::Everything;
use std::time::Duration;

/// How long a round may take that meets slow reads and a slow disk.
const A_ROUND: Duration = Duration::from_secs(2 * 3600);

/// Nothing that waits is removed, and nothing that has ended before its policy says so. A delivery that is
/// not removed can be read, with its message.
pub(super) fn nothing_goes_before_its_time(
    scenario: &Scenario,
    stories: &Stories<'_>,
    log: &Log,
    found: &mut Findings,
) {
    let policies = scenario.policies();
    for removal in &log.removals {
        let Some(story) = stories.0.get(&removal.delivery.seq) else { continue };
        let rule = story.policy.retention;
        let cutoffs =
            rule.cutoffs(&scenario.options.retention.defaults, story.endpoint.deleted, removal.decided_at);
        let counts =
            |policy: &str| policies.builtin(policy).is_some_and(|policy| policy.retention.newest.is_some());
        let newer: usize =
            removal.newer.iter().filter(|(policy, _)| counts(policy)).map(|(_, newer)| newer).sum();
        let over = match removal.delivery.state {
            DeliveryState::Waiting { .. } => false,
            DeliveryState::Delivered { at } => {
                is_over(at, cutoffs.delivered) || rule.newest.is_some_and(|count| newer >= count as usize)
            }
            DeliveryState::Dead { at, .. } | DeliveryState::Skipped { at, .. } => is_over(at, cutoffs.dead),
        };
        found.require(over, "retention", || {
            format!("{story} was removed at {:?}, as {:?}", removal.at, removal.delivery.state)
        });
    }
}

fn is_over(ended: Timestamp, cutoff: Option<Timestamp>) -> bool {
    cutoff.is_some_and(|cutoff| ended < cutoff)
}

/// At the end of a last life that was long enough for a round nothing is left that should have gone; and
/// what is left can be read.
pub(super) fn what_is_over_is_gone(
    scenario: &Scenario,
    disk: &Everything,
    stories: &Stories<'_>,
    log: &Log,
    found: &mut Findings,
) {
    let options = &scenario.options.retention;
    let Some(Life { began, ended, .. }) = log.lives.last() else { return };
    let worked_from = (*began).max(scenario.faults_end);
    let looked = ended.since(worked_from) > options.interval * 2 + A_ROUND;
    // By then a round has begun that came to its end.
    let by = ended.before(options.interval * 2 + A_ROUND);
    for story in stories.iter().filter(|story| disk.has_delivery(story.delivery.seq)) {
        found.require(disk.has_message(story.endpoint.app, story.delivery.message), "retention", || {
            format!("{story} is kept, and its message is not")
        });
        let Cutoffs { delivered, dead, .. } =
            story.policy.retention.cutoffs(&options.defaults, story.endpoint.deleted, by);
        let over = match story.delivery.state {
            DeliveryState::Waiting { .. } => false,
            DeliveryState::Delivered { at } => is_over(at, delivered),
            DeliveryState::Dead { at, .. } | DeliveryState::Skipped { at, .. } => is_over(at, dead),
        };
        found.require(!(looked && over), "retention", || {
            format!("{story} is still there at {ended:?}, as {:?}", story.delivery.state)
        });
    }
}
