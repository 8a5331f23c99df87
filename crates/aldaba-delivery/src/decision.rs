//! Decides what an attempt means for its delivery and its endpoint.

use crate::{
    Chance, Class, Delivery, Ending, Health, Ordering, Outcome, Policy, Timestamp, Transition, Verdict,
};

/// The decision on an attempt: outcome → class → transition.
#[derive(Clone, Debug)]
pub struct Decision {
    pub class: Class,
    pub transition: Transition,
    /// The policy that updates the endpoint's health.
    health_policy: Policy,
}

impl Decision {
    /// Decides on a scheduled attempt. `delivery.attempts` already counts it. While the clock is not trusted,
    /// no delivery expires and no endpoint fails because of elapsed time.
    pub fn of(
        policy: &Policy,
        delivery: &Delivery,
        outcome: &Outcome,
        may_end_by_time: bool,
        now: Timestamp,
        chance: Chance,
    ) -> Self {
        let (delivery, health_policy) = match may_end_by_time {
            true => (*delivery, policy.clone()),
            false => (Delivery { clock_start: Timestamp::MAX, ..*delivery }, policy.on_untrusted_clock()),
        };
        let class = Class::of(policy, outcome);
        let transition = Transition::after_attempt(policy, &delivery, &class, now, chance);
        Self { class, transition, health_policy }
    }

    pub fn delivered(&self) -> bool {
        self.transition == Transition::Settle(Ending::Delivered)
    }

    /// The endpoint's health after the attempt.
    pub fn health(&self, known: &Health, ordering: Ordering, now: Timestamp) -> Health {
        let Self { class, transition, health_policy } = self;
        let health = known.after_attempt(health_policy, class, transition, now);
        health.after_ending(ordering, transition.ending(), now).unwrap_or(health)
    }
}

impl Transition {
    /// The transition after a manual attempt of a delivery that is due at `due_at`: a success settles it, and a
    /// failure leaves it unchanged.
    pub fn after_manual_attempt(verdict: Verdict, due_at: Timestamp) -> Self {
        match verdict {
            Verdict::Delivered => Self::Settle(Ending::Delivered),
            Verdict::Retriable | Verdict::Final(_) => Self::Retry { due_at },
        }
    }
}

impl Health {
    /// The health after this ending, if the ordering asks for a block. `None`: unchanged.
    pub fn after_ending(&self, ordering: Ordering, ending: Option<Ending>, now: Timestamp) -> Option<Self> {
        ordering.blocks_after(ending?).then(|| self.blocked(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Overrides, builtin};
    use crate::{FailureKind, HealthStatus, OnExhausted, Reason};
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    fn decision(policy: &str, attempts: u32, may_end_by_time: bool) -> Decision {
        let policy = builtin(policy, &Overrides::default()).expect("it is built in").expect("it is valid");
        let delivery = Delivery { attempts, clock_start: NOW.before(YEAR) };
        let outcome = Outcome::failed(FailureKind::Timeout, "reading the head");
        Decision::of(&policy, &delivery, &outcome, may_end_by_time, NOW, Chance(0))
    }

    #[test]
    fn an_untrusted_clock_ends_no_delivery_and_fails_no_endpoint() {
        let stopped = decision("persistent", 1, true).transition.ending();
        assert_eq!(stopped, Some(Ending::Dead(Reason::StopDate)));
        assert_eq!(decision("persistent", 1, false).transition.ending(), None);
        let failing = Health { failing_since: Some(NOW.before(YEAR)), ..Health::default() };
        let status = |trusted| decision("standard", 1, trusted).health(&failing, Ordering::None, NOW).status;
        assert_eq!((status(true), status(false)), (HealthStatus::Failed, HealthStatus::Active));
    }

    #[test]
    fn a_dead_delivery_blocks_an_endpoint_with_blocking_ordering() {
        let health = |attempts, ordering| {
            decision("quick", attempts, true).health(&Health::default(), ordering, NOW).status
        };
        let (skip, block) = (Ordering::Fifo(OnExhausted::Skip), Ordering::Fifo(OnExhausted::Block));
        assert_eq!(health(1, block), HealthStatus::Active, "it is retried");
        assert_eq!(health(1000, skip), HealthStatus::Active);
        assert_eq!(health(1000, block), HealthStatus::Blocked);
    }

    #[test]
    fn a_manual_attempt_settles_its_delivery_or_leaves_it_unchanged() {
        let waits = Transition::Retry { due_at: NOW };
        assert_eq!(Transition::after_manual_attempt(Verdict::Retriable, NOW), waits);
        assert_eq!(Transition::after_manual_attempt(Verdict::Final(Reason::Rejected), NOW), waits);
        let settled = Transition::Settle(Ending::Delivered);
        assert_eq!(Transition::after_manual_attempt(Verdict::Delivered, NOW), settled);
    }
}
