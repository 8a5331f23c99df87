//! Decides which deliveries have waited past their stop date.

use crate::policy::Limit;
use crate::{Delivery, Health, Policy, Timestamp};
use std::time::Duration;

/// Decides which of an endpoint's pending deliveries end unsent because of their stop date.
#[derive(Clone, Debug)]
pub struct StopRule {
    pub policy: Policy,
    pub health: Health,
    /// The endpoint is turned off.
    pub off: bool,
}

/// A delivery that waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAttempt {
    pub delivery: Delivery,
    pub due_at: Timestamp,
    /// It was replayed.
    pub replayed: bool,
}

/// The first moment past the stop date of a delivery whose clock started at `clock_start`.
pub fn first_after_stop_date(clock_start: Timestamp, stop_after: Duration) -> Timestamp {
    clock_start + stop_after + Duration::from_millis(1)
}

impl Limit {
    /// Only deliveries whose clock started before this moment are past their stop date at `at`. `None`: there
    /// is no stop date.
    pub fn started_before(&self, at: Timestamp) -> Option<Timestamp> {
        self.stop_after.map(|after| at.before(after))
    }
}

impl StopRule {
    /// Only deliveries whose clock started before this moment can be past their stop date at `until`. `None`:
    /// none can, because the policy has no stop date, the endpoint holds deliveries, or they were released too
    /// recently.
    pub fn started_before(&self, until: Timestamp) -> Option<Timestamp> {
        let before = self.policy.limit.started_before(until)?;
        let released = self.health.released_at.is_some_and(|at| at >= before);
        (!self.holds() && !released).then_some(before)
    }

    /// Whether the endpoint holds its deliveries.
    pub fn holds(&self) -> bool {
        self.health.holds(self.off)
    }

    /// The effective start of a delivery's clock: released deliveries count from their release.
    pub fn clock_start(&self, clock_start: Timestamp) -> Timestamp {
        self.health.clock_start(clock_start)
    }

    /// When a delivery's attempts stop.
    pub fn stop_at(&self, delivery: &Delivery) -> Option<Timestamp> {
        Delivery { clock_start: self.clock_start(delivery.clock_start), ..*delivery }.stop_at(&self.policy)
    }

    /// The start of the delivery's clock, now that the scheduler selected it. `None`: it is past its stop date
    /// and ends unsent. `may_end_by_time`: whether the clock is trusted, called only when needed.
    pub fn clock_start_when_selected(
        &self,
        wait: &PendingAttempt,
        now: Timestamp,
        may_end_by_time: impl FnOnce() -> bool,
    ) -> Option<Timestamp> {
        let is_over = self.ends(wait, now) && may_end_by_time();
        (!is_over).then(|| self.clock_start(wait.delivery.clock_start))
    }

    /// Deliveries due up to this moment, and not attempted since, are owed an attempt.
    pub fn release_owed_until(&self) -> Option<Timestamp> {
        self.health.released_at.filter(|_| self.health.released_by_person)
    }

    /// Whether a delivery that cannot go out before `until` ends instead. While the endpoint holds deliveries,
    /// stop dates are suspended. A manual release or a replay owes one attempt however late.
    pub fn ends(&self, wait: &PendingAttempt, until: Timestamp) -> bool {
        let PendingAttempt { delivery: Delivery { attempts, clock_start }, due_at, replayed } = *wait;
        let owed = self.health.owes_attempt(due_at) || replayed && attempts == 0;
        let delivery = Delivery { attempts, clock_start: self.clock_start(clock_start) };
        !self.holds() && !owed && delivery.overdue(&self.policy, until)
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

    fn wait(attempts: u32) -> PendingAttempt {
        PendingAttempt { delivery: Delivery { attempts, clock_start: START }, due_at: START, replayed: false }
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
    fn a_delivery_at_its_turn_ends_past_its_stop_date_or_counts_from_its_release() {
        let fresh = rule("persistent", Health::default());
        let past = first_after_stop_date(START, DAY * 7);
        assert_eq!(fresh.clock_start_when_selected(&wait(1), past, || true), None);
        assert_eq!(
            fresh.clock_start_when_selected(&wait(1), past, || false),
            Some(START),
            "the clock is not trusted"
        );
        let before = past.before(Duration::from_millis(1));
        assert_eq!(
            fresh.clock_start_when_selected(&wait(1), before, || panic!("it is not late")),
            Some(START)
        );
        let released = rule("persistent", Health { released_at: Some(START + DAY), ..Health::default() });
        assert_eq!(released.clock_start_when_selected(&wait(1), past, || true), Some(START + DAY));
        assert_eq!(released.stop_at(&wait(1).delivery), Some(START + DAY * 8));
    }

    #[test]
    fn nothing_ends_without_a_stop_date() {
        let rule = rule("quick", Health::default());
        assert!(!rule.ends(&wait(1), Timestamp::MAX));
        assert_eq!(rule.started_before(Timestamp::MAX), None);
    }

    #[test]
    fn stop_dates_are_suspended_while_the_endpoint_holds_deliveries() {
        let failed = Health { status: HealthStatus::Failed, ..Health::default() };
        for rule in
            [rule("persistent", failed), StopRule { off: true, ..rule("persistent", Health::default()) }]
        {
            assert!(!rule.ends(&wait(0), START + DAY * 100));
            assert_eq!(rule.started_before(START + DAY * 100), None);
        }
    }

    #[test]
    fn a_manually_released_delivery_gets_one_attempt_however_late_and_a_new_stop_date() {
        let resumed = Health { status: HealthStatus::Failed, ..Health::default() }.resumed(START + DAY * 10);
        let rule = rule("persistent", resumed);
        assert_eq!(rule.started_before(START + DAY * 17), None, "it counts from the release");
        assert!(!rule.ends(&wait(3), START + DAY * 100));
        let tried = PendingAttempt { due_at: START + DAY * 10 + Duration::from_millis(1), ..wait(4) };
        assert!(!rule.ends(&tried, START + DAY * 17));
        assert!(rule.ends(&tried, START + DAY * 17 + Duration::from_millis(1)));
    }

    #[test]
    fn a_delivery_released_by_a_probe_counts_from_then_and_is_owed_nothing() {
        let recovered = Health { released_at: Some(START + DAY * 10), ..Health::default() };
        let rule = rule("persistent", recovered);
        assert!(!rule.ends(&wait(0), START + DAY * 17));
        assert!(rule.ends(&wait(0), START + DAY * 17 + Duration::from_millis(1)));
    }

    #[test]
    fn a_replayed_delivery_gets_one_attempt_however_late() {
        let rule = rule("persistent", Health::default());
        let replayed = |attempts| PendingAttempt { replayed: true, ..wait(attempts) };
        assert!(!rule.ends(&replayed(0), START + DAY * 100));
        assert!(rule.ends(&replayed(1), START + DAY * 100));
    }
}
