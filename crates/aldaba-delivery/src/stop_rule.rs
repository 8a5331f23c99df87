//! Which deliveries have waited past their stop date.

use crate::{Delivery, Health, Policy, Timestamp};

/// Decides which of an endpoint's waiting deliveries end unsent because of their stop date.
#[derive(Clone, Debug)]
pub struct StopRule {
    pub policy: Policy,
    pub health: Health,
    /// Its operator has turned the endpoint off.
    pub off: bool,
}

/// A delivery that waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub delivery: Delivery,
    pub due_at: Timestamp,
    /// Somebody has replayed it.
    pub replayed: bool,
}

impl StopRule {
    /// Only deliveries whose clock started before this moment can be past their stop date at `until`. `None`: none
    /// can, because the policy has no stop date, the endpoint holds what waits, or it was let go too recently.
    pub fn started_before(&self, until: Timestamp) -> Option<Timestamp> {
        let before = until.before(self.policy.limit.stop_after?);
        let released = self.health.released_at.is_some_and(|at| at >= before);
        (!self.health.holds(self.off) && !released).then_some(before)
    }

    /// What is due up to this moment, and was not tried since, is owed an attempt.
    pub fn owed_until(&self) -> Option<Timestamp> {
        self.health.released_at.filter(|_| self.health.released_by_person)
    }

    /// Whether a delivery that cannot go out before `until` ends instead. While the endpoint holds what waits, its
    /// stop date rests. What a person has released or replayed gets one attempt however late.
    pub fn ends(&self, wait: &Wait, until: Timestamp) -> bool {
        let Wait { delivery: Delivery { attempts, clock_start }, due_at, replayed } = *wait;
        let owed = self.health.owes_attempt(due_at) || replayed && attempts == 0;
        let delivery = Delivery { attempts, clock_start: self.health.clock_start(clock_start) };
        !self.health.holds(self.off) && !owed && delivery.overdue(&self.policy, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HealthStatus;
    use crate::policy::{Overrides, builtin};
    use std::time::Duration;

    const START: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn rule(policy: &str, health: Health) -> StopRule {
        let policy = builtin(policy, &Overrides::default()).expect("it is built in").expect("it is valid");
        StopRule { policy, health, off: false }
    }

    fn wait(attempts: u32) -> Wait {
        Wait { delivery: Delivery { attempts, clock_start: START }, due_at: START, replayed: false }
    }

    #[test]
    fn b4_tried_or_not_a_delivery_ends_when_its_next_attempt_falls_after_its_stop_date() {
        let rule = rule("persistent", Health::default());
        let stop = START + DAY * 7;
        for attempts in [0, 1, 150] {
            assert!(!rule.ends(&wait(attempts), stop));
            assert!(rule.ends(&wait(attempts), stop + Duration::from_millis(1)));
        }
        assert_eq!(rule.started_before(stop), Some(START));
    }

    #[test]
    fn nothing_ends_without_a_stop_date() {
        let rule = rule("quick", Health::default());
        assert!(!rule.ends(&wait(1), Timestamp::MAX));
        assert_eq!(rule.started_before(Timestamp::MAX), None);
    }

    #[test]
    fn the_stop_date_rests_while_the_endpoint_holds_what_waits() {
        let failed = Health { status: HealthStatus::Failed, ..Health::default() };
        for rule in
            [rule("persistent", failed), StopRule { off: true, ..rule("persistent", Health::default()) }]
        {
            assert!(!rule.ends(&wait(0), START + DAY * 100));
            assert_eq!(rule.started_before(START + DAY * 100), None);
        }
    }

    #[test]
    fn what_a_person_has_released_gets_one_attempt_however_late_and_then_a_stop_date_of_its_own() {
        let resumed = Health { status: HealthStatus::Failed, ..Health::default() }.resumed(START + DAY * 10);
        let rule = rule("persistent", resumed);
        assert_eq!(rule.started_before(START + DAY * 17), None, "it counts from the release");
        assert!(!rule.ends(&wait(3), START + DAY * 100));
        let tried = Wait { due_at: START + DAY * 10 + Duration::from_millis(1), ..wait(4) };
        assert!(!rule.ends(&tried, START + DAY * 17));
        assert!(rule.ends(&tried, START + DAY * 17 + Duration::from_millis(1)));
    }

    #[test]
    fn what_a_probe_has_released_counts_from_then_and_is_owed_nothing() {
        let recovered = Health { released_at: Some(START + DAY * 10), ..Health::default() };
        let rule = rule("persistent", recovered);
        assert!(!rule.ends(&wait(0), START + DAY * 17));
        assert!(rule.ends(&wait(0), START + DAY * 17 + Duration::from_millis(1)));
    }

    #[test]
    fn what_somebody_has_replayed_gets_one_attempt_however_late() {
        let rule = rule("persistent", Health::default());
        let replayed = |attempts| Wait { replayed: true, ..wait(attempts) };
        assert!(!rule.ends(&replayed(0), START + DAY * 100));
        assert!(rule.ends(&replayed(1), START + DAY * 100));
    }
}
