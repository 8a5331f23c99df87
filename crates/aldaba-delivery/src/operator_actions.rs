//! Operator actions on an endpoint's health: turn off, turn on, resume, change the ordering.

use crate::{ConditionCause, Controls, Health, HealthStatus, Ordering, Timestamp};

/// Why an endpoint cannot be resumed: its operator turned it off. Turning it on resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedOff;

impl Health {
    /// The health after the endpoint's controls changed, with the cause for its history. `None`: unchanged.
    /// `resume`: the operator asked for an active endpoint. A block that ends with its ordering has no cause of
    /// its own. Its end is an operator action: what a lane made of the block before no longer applies.
    pub fn after_controls_change(
        &self,
        before: Controls,
        after: Controls,
        resume: bool,
        at: Timestamp,
    ) -> Option<(Self, Option<ConditionCause>)> {
        let toggled = self.after_toggle(before.disabled, after.disabled, resume, at);
        let cause = toggled.as_ref().map(|(_, cause)| *cause);
        let toggled = toggled.map(|(health, _)| health);
        let health = toggled.as_ref().unwrap_or(self);
        match health.after_ordering_change(before.ordering, after.ordering, at) {
            Some(unblocked) => Some((Self { epoch: health.epoch.wrapping_add(1), ..unblocked }, cause)),
            None => toggled.map(|health| (health, cause)),
        }
    }

    /// The health after the endpoint was turned off, turned on, or resumed.
    pub fn after_toggle(
        &self,
        was_off: bool,
        is_off: bool,
        resume: bool,
        at: Timestamp,
    ) -> Option<(Self, ConditionCause)> {
        match (was_off, is_off) {
            (false, true) => Some((self.turned_off(at), ConditionCause::TurnedOff)),
            (true, false) => Some((self.resumed(at), ConditionCause::TurnedOn)),
            (false, false) if resume => {
                let resumed = self.resume(is_off, at).ok().flatten();
                resumed.map(|health| (health, ConditionCause::Resumed))
            }
            _ => None,
        }
    }

    /// Resumes the endpoint. `None`: it is active. `off`: the endpoint is turned off.
    pub fn resume(&self, off: bool, at: Timestamp) -> Result<Option<Self>, TurnedOff> {
        if off {
            return Err(TurnedOff);
        }
        Ok((self.status != HealthStatus::Active).then(|| self.resumed(at)))
    }

    /// Ends a block unless the orderings before and after both ask for it. `None`: no block ends.
    pub fn after_ordering_change(&self, before: Ordering, after: Ordering, at: Timestamp) -> Option<Self> {
        let ends = self.status == HealthStatus::Blocked && !(before.blocks() && after.blocks());
        ends.then(|| self.unblocked(at))
    }

    /// Merges this health, made by attempts, with the stored one. An operator action since then wins, except
    /// for the receiver's `Retry-After`.
    #[must_use]
    pub fn reconciled(&self, stored: &Self) -> Self {
        if self.epoch == stored.epoch {
            return self.clone();
        }
        Self { quiet_until: self.quiet_until.max(stored.quiet_until), ..stored.clone() }
    }

    /// An operator resumed the endpoint or turned it on. The receiver's `Retry-After` still counts.
    #[must_use]
    pub fn resumed(&self, now: Timestamp) -> Self {
        Self {
            changed_at: Some(now),
            released_at: Some(now),
            released_by_person: true,
            epoch: self.epoch.wrapping_add(1),
            quiet_until: self.quiet_until,
            ..Self::default()
        }
    }

    /// An operator turned the endpoint off. Results of its attempts stay.
    #[must_use]
    pub fn turned_off(&self, now: Timestamp) -> Self {
        Self { changed_at: Some(now), epoch: self.epoch.wrapping_add(1), ..self.clone() }
    }

    /// The block ends because the ordering no longer asks for it. Failures before a later success no longer
    /// count.
    #[must_use]
    pub fn unblocked(&self, now: Timestamp) -> Self {
        match self.status {
            HealthStatus::Blocked => Self {
                status: HealthStatus::Active,
                failing_since: self.failing_since.filter(|_| self.failure_count > 0),
                changed_at: Some(now),
                released_at: Some(now),
                released_by_person: true,
                ..self.clone()
            },
            _ => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnExhausted;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const BLOCKING: Ordering = Ordering::Fifo(OnExhausted::Block);

    fn of(status: HealthStatus) -> Health {
        Health { status, failure_count: 3, ..Health::default() }
    }

    fn cause(health: &Health, was_off: bool, is_off: bool, resume: bool) -> Option<ConditionCause> {
        health.after_toggle(was_off, is_off, resume, NOW).map(|(_, cause)| cause)
    }

    #[test]
    fn turning_off_keeps_the_failures_and_turning_on_resets_them() {
        let failed = of(HealthStatus::Failed);
        let (off, cause) = failed.after_toggle(false, true, false, NOW).expect("it was on");
        assert_eq!((off.status, off.failure_count, off.epoch), (HealthStatus::Failed, 3, 1));
        assert_eq!(cause, ConditionCause::TurnedOff);
        let (on, cause) = off.after_toggle(true, false, false, NOW).expect("it was off");
        assert_eq!((on.status, on.failure_count, on.epoch), (HealthStatus::Active, 0, 2));
        assert_eq!((on.released_at, on.released_by_person), (Some(NOW), true));
        assert_eq!(cause, ConditionCause::TurnedOn);
    }

    #[test]
    fn only_an_inactive_endpoint_is_resumed_and_only_on_request() {
        for status in [HealthStatus::Failed, HealthStatus::Gone, HealthStatus::Blocked] {
            assert_eq!(cause(&of(status), false, false, true), Some(ConditionCause::Resumed));
            assert_eq!(cause(&of(status), false, false, false), None);
            assert_eq!(cause(&of(status), true, true, true), None, "it stays turned off");
        }
        assert_eq!(cause(&of(HealthStatus::Active), false, false, true), None);
        assert_eq!(of(HealthStatus::Active).resume(false, NOW), Ok(None));
    }

    #[test]
    fn an_endpoint_that_is_turned_off_is_not_resumed() {
        for status in [HealthStatus::Active, HealthStatus::Failed, HealthStatus::Gone, HealthStatus::Blocked]
        {
            assert_eq!(of(status).resume(true, NOW), Err(TurnedOff));
        }
    }

    #[test]
    fn a_lane_forgets_a_block_that_has_ended_though_the_ordering_asks_for_one_again() {
        let lane = of(HealthStatus::Blocked);
        let under = |ordering| Controls { disabled: false, ordering };
        let (stored, _) =
            lane.after_controls_change(under(BLOCKING), under(Ordering::None), false, NOW).expect("it ends");
        let again = stored.after_controls_change(under(Ordering::None), under(BLOCKING), false, NOW);
        assert_eq!(again, None, "there is no block to end");
        assert_eq!(lane.reconciled(&stored), stored, "the lane has missed both changes");
        assert_eq!((stored.status, stored.epoch), (HealthStatus::Active, lane.epoch + 1));
    }

    #[test]
    fn a_block_ends_unless_both_orderings_ask_for_it() {
        let blocked = of(HealthStatus::Blocked);
        assert_eq!(blocked.after_ordering_change(BLOCKING, BLOCKING, NOW), None);
        for (before, after) in
            [(BLOCKING, Ordering::None), (Ordering::None, BLOCKING), (Ordering::None, Ordering::None)]
        {
            let health = blocked.after_ordering_change(before, after, NOW).expect("it ends");
            assert_eq!((health.status, health.released_at), (HealthStatus::Active, Some(NOW)));
        }
        assert_eq!(of(HealthStatus::Failed).after_ordering_change(BLOCKING, Ordering::None, NOW), None);
    }

    #[test]
    fn a_toggle_has_the_cause_and_a_change_of_the_ordering_ends_the_block_all_the_same() {
        let blocked = of(HealthStatus::Blocked);
        let before = Controls { disabled: false, ordering: BLOCKING };
        let after = |disabled| Controls { disabled, ordering: Ordering::None };
        let became = |disabled, resume| {
            let (health, cause) = blocked.after_controls_change(before, after(disabled), resume, NOW)?;
            Some((health.status, cause))
        };
        assert_eq!(became(true, false), Some((HealthStatus::Active, Some(ConditionCause::TurnedOff))));
        assert_eq!(became(false, true), Some((HealthStatus::Active, Some(ConditionCause::Resumed))));
        assert_eq!(became(false, false), Some((HealthStatus::Active, None)));
        assert_eq!(blocked.after_controls_change(before, before, false, NOW), None);
    }

    #[test]
    fn an_operator_action_wins_over_attempts_except_for_retry_after() {
        let later = Some(NOW + Duration::from_secs(60));
        let made = Health { quiet_until: later, ..of(HealthStatus::Failed) };
        assert_eq!(made.reconciled(&of(HealthStatus::Active)), made, "nobody has changed it since");
        let stored = of(HealthStatus::Failed).resumed(NOW);
        assert_eq!(made.reconciled(&stored), Health { quiet_until: later, ..stored.clone() });
        let quieter = Health { quiet_until: later.map(|at| at + Duration::from_secs(1)), ..stored };
        assert_eq!(made.reconciled(&quieter), quieter);
    }
}
