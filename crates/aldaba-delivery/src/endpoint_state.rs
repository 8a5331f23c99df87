//! Decides whether an endpoint takes a delivery now, and what happens to one that it does not take.

use crate::{Availability, Condition, Health, Ordering, Policy, Reason, StopRule, Timestamp};
use std::borrow::Cow;
use std::time::Duration;

/// The operator's settings that decide whether deliveries go to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controls {
    /// The endpoint is turned off.
    pub disabled: bool,
    pub ordering: Ordering,
}

/// The endpoint state that decides on deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointState<'a> {
    health: Cow<'a, Health>,
    disabled: bool,
}

/// The decision on a delivery that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may be sent.
    Open,
    /// It may be sent, as the endpoint's probe.
    Probe,
    /// It waits until this moment; `None`: until the endpoint changes.
    Held(Option<Timestamp>),
    /// It ends unsent.
    Ends(Reason),
}

/// How soon an overlong hold is checked again while the clock is not trusted.
const UNTRUSTED_RECHECK: Duration = Duration::from_secs(60);

impl<'a> EndpointState<'a> {
    /// A block counts only while the ordering asks for it: an attempt that began under another ordering may
    /// have set one. Such a block counts as released when it was set, so that the moment stays the same.
    pub fn of(health: &'a Health, controls: Controls) -> Self {
        let Controls { disabled, ordering } = controls;
        let released_at = health.changed_at.unwrap_or(Timestamp::MIN);
        let health = health
            .after_ordering_change(ordering, ordering, released_at)
            .map_or(Cow::Borrowed(health), Cow::Owned);
        Self { health, disabled }
    }

    pub fn health(&self) -> &Health {
        &self.health
    }

    pub fn is_blocked(&self) -> bool {
        self.health.status == crate::HealthStatus::Blocked
    }

    /// Whether deliveries are held: only probes are sent.
    pub fn holds(&self) -> bool {
        self.health.holds(self.disabled)
    }

    pub fn condition(&self) -> Condition {
        self.health.condition(self.disabled)
    }

    /// The condition as text.
    pub fn text(&self) -> &'static str {
        self.health.text(self.disabled)
    }

    pub fn availability(&self, now: Timestamp) -> Availability {
        if self.disabled { Availability::Held(None) } else { self.health.availability(now) }
    }

    /// When a delivery that is due at `due_at` may be sent, as far as the endpoint decides. `None`: not before an operator
    /// resumes it or turns it on.
    pub fn next_attempt(&self, due_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self.availability(now) {
            Availability::Open | Availability::Probe => Some(due_at),
            Availability::Held(until) => until.map(|until| until.max(due_at)),
        }
    }

    /// Decides on a delivery that is due. `longest_held`: how long a delivery may be held. `probing`: a probe
    /// is in flight. `may_end_by_time`: whether the clock is trusted, called only when needed; without trust
    /// nothing expires.
    pub fn admission(
        &self,
        due_at: Timestamp,
        longest_held: Duration,
        probing: bool,
        now: Timestamp,
        may_end_by_time: impl FnOnce() -> bool,
    ) -> Admission {
        let mut expires_at = self.health.hold_expires_at(self.disabled, due_at, longest_held);
        if expires_at.is_some_and(|at| at <= now) {
            if may_end_by_time() {
                return Admission::Ends(Reason::Expired);
            }
            expires_at = Some(now + UNTRUSTED_RECHECK);
        }
        match self.availability(now) {
            Availability::Open => Admission::Open,
            Availability::Probe if !probing => Admission::Probe,
            Availability::Probe => Admission::Held(None),
            Availability::Held(until) => Admission::Held(until.into_iter().chain(expires_at).min()),
        }
    }

    /// The rule that ends deliveries that have waited too long.
    pub fn stop_rule(self, policy: Policy) -> StopRule {
        StopRule { policy, health: self.health.into_owned(), off: self.disabled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HealthStatus, OnExhausted};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);
    const BLOCKING: Ordering = Ordering::Fifo(OnExhausted::Block);

    fn of(status: HealthStatus) -> Health {
        Health { status, changed_at: Some(NOW), ..Health::default() }
    }

    fn admission(health: &Health, controls: Controls, waited: Duration, trusted: bool) -> Admission {
        let state = EndpointState::of(health, controls);
        state.admission(NOW, HOUR, false, NOW + waited, || trusted)
    }

    #[test]
    fn a_healthy_endpoint_takes_late_deliveries_without_a_clock_check() {
        let health = Health::default();
        let state = EndpointState::of(&health, Controls::default());
        let admission = state.admission(NOW, HOUR, false, NOW + HOUR * 9, || panic!("nothing is held"));
        assert_eq!(admission, Admission::Open);
    }

    #[test]
    fn deliveries_held_for_too_long_expire() {
        let off = Controls { disabled: true, ..Controls::default() };
        for (health, controls) in
            [(of(HealthStatus::Failed), Controls::default()), (of(HealthStatus::Active), off)]
        {
            let until = Admission::Held(Some(NOW + HOUR));
            assert_eq!(admission(&health, controls, HOUR - Duration::from_millis(1), true), until);
            assert_eq!(admission(&health, controls, HOUR, true), Admission::Ends(Reason::Expired));
        }
    }

    #[test]
    fn an_untrusted_clock_expires_nothing_and_is_checked_again_after_a_minute() {
        let again = Admission::Held(Some(NOW + HOUR * 9 + UNTRUSTED_RECHECK));
        assert_eq!(admission(&of(HealthStatus::Gone), Controls::default(), HOUR * 9, false), again);
    }

    #[test]
    fn a_failed_endpoint_takes_one_probe_at_a_time() {
        let health = Health { next_probe_at: Some(NOW), ..of(HealthStatus::Failed) };
        let state = EndpointState::of(&health, Controls::default());
        let admission = |probing| state.admission(NOW, HOUR, probing, NOW, || true);
        assert_eq!(admission(false), Admission::Probe);
        assert_eq!(admission(true), Admission::Held(None));
        let off = EndpointState::of(&health, Controls { disabled: true, ..Controls::default() });
        assert_eq!(off.availability(NOW), Availability::Held(None), "a disabled endpoint is not probed");
    }

    #[test]
    fn a_held_delivery_has_its_next_attempt_when_the_hold_ends() {
        let next = |health: &Health, disabled, due_at| {
            let controls = Controls { disabled, ..Controls::default() };
            EndpointState::of(health, controls).next_attempt(due_at, NOW)
        };
        assert_eq!(next(&Health::default(), false, NOW + HOUR), Some(NOW + HOUR));
        assert_eq!(next(&Health::default(), true, NOW), None, "it is turned off");
        assert_eq!(next(&of(HealthStatus::Gone), false, NOW), None);
        let quiet = Health { quiet_until: Some(NOW + HOUR), ..Health::default() };
        assert_eq!(next(&quiet, false, NOW), Some(NOW + HOUR));
        assert_eq!(next(&quiet, false, NOW + HOUR * 2), Some(NOW + HOUR * 2));
    }

    #[test]
    fn a_block_counts_only_while_the_ordering_asks_for_it() {
        let blocked = of(HealthStatus::Blocked);
        let under = |ordering| EndpointState::of(&blocked, Controls { disabled: false, ordering });
        assert!(under(BLOCKING).is_blocked() && under(BLOCKING).holds());
        for ordering in [Ordering::None, Ordering::Fifo(OnExhausted::Skip)] {
            let state = under(ordering);
            assert!(!state.is_blocked() && !state.holds());
            assert_eq!(state.condition(), Condition::Active);
            assert_eq!(state.health().released_at, Some(NOW), "when it was set");
        }
    }
}
