//! What people make of an endpoint's health: they turn it off and on, resume it, and change its ordering.

use crate::{ConditionCause, Controls, Health, HealthStatus, Ordering, Timestamp};

impl Health {
    /// What becomes of the health when an endpoint's controls change, where anything does, with the cause for its
    /// history. `resume`: someone asked to have it active. A block that ends with its ordering has no cause of its own.
    pub fn after_controls_change(
        &self,
        before: Controls,
        after: Controls,
        resume: bool,
        at: Timestamp,
    ) -> Option<(Self, Option<ConditionCause>)> {
        if let Some((health, cause)) = self.after_toggle(before.disabled, after.disabled, resume, at) {
            return Some((health, Some(cause)));
        }
        self.after_ordering_change(before.ordering, after.ordering, at).map(|health| (health, None))
    }

    /// The same for the switch alone: whether the endpoint was turned off before, and is now.
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
            (false, false) if resume => self.resume(at).map(|health| (health, ConditionCause::Resumed)),
            _ => None,
        }
    }

    /// Someone asks to have the endpoint active. `None`: it is.
    pub fn resume(&self, at: Timestamp) -> Option<Self> {
        (self.status != HealthStatus::Active).then(|| self.resumed(at))
    }

    /// A block ends with the ordering that asked for it. `None`: there is none, or the orderings before and after both
    /// ask for it.
    pub fn after_ordering_change(&self, before: Ordering, after: Ordering, at: Timestamp) -> Option<Self> {
        let ends = self.status == HealthStatus::Blocked && !(before.blocks() && after.blocks());
        ends.then(|| self.unblocked(at))
    }

    /// The health to go by where attempts have made this one and another one is stored. What attempts make of a health
    /// that a person has changed since counts no longer, except for what the receiver asked for.
    #[must_use]
    pub fn reconciled(&self, stored: &Self) -> Self {
        if self.epoch == stored.epoch {
            return self.clone();
        }
        Self { quiet_until: self.quiet_until.max(stored.quiet_until), ..stored.clone() }
    }

    /// Someone resumed the endpoint by hand, or turned it on again. What its receiver asked for still counts.
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

    /// Its operator turned the endpoint off. What its attempts made of it stays.
    #[must_use]
    pub fn turned_off(&self, now: Timestamp) -> Self {
        Self { changed_at: Some(now), epoch: self.epoch.wrapping_add(1), ..self.clone() }
    }

    /// What was blocked goes on: its ordering no longer asks for it, as somebody has changed it. Failures that
    /// a success has followed count no longer.
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
    fn turning_off_keeps_what_attempts_made_and_turning_on_begins_anew() {
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
    fn only_an_endpoint_that_is_not_active_is_resumed_and_only_where_that_is_asked() {
        for status in [HealthStatus::Failed, HealthStatus::Gone, HealthStatus::Blocked] {
            assert_eq!(cause(&of(status), false, false, true), Some(ConditionCause::Resumed));
            assert_eq!(cause(&of(status), false, false, false), None);
            assert_eq!(cause(&of(status), true, true, true), None, "it stays turned off");
        }
        assert_eq!(cause(&of(HealthStatus::Active), false, false, true), None);
        assert_eq!(of(HealthStatus::Active).resume(NOW), None);
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
    fn a_switch_counts_before_a_change_of_the_ordering() {
        let blocked = of(HealthStatus::Blocked);
        let before = Controls { disabled: false, ordering: BLOCKING };
        let after = |disabled| Controls { disabled, ordering: Ordering::None };
        let became = |disabled, resume| {
            let (health, cause) = blocked.after_controls_change(before, after(disabled), resume, NOW)?;
            Some((health.status, cause))
        };
        assert_eq!(became(true, false), Some((HealthStatus::Blocked, Some(ConditionCause::TurnedOff))));
        assert_eq!(became(false, true), Some((HealthStatus::Active, Some(ConditionCause::Resumed))));
        assert_eq!(became(false, false), Some((HealthStatus::Active, None)));
        assert_eq!(blocked.after_controls_change(before, before, false, NOW), None);
    }

    #[test]
    fn what_a_person_changed_counts_more_than_attempts_but_for_a_quiet_time() {
        let later = Some(NOW + Duration::from_secs(60));
        let made = Health { quiet_until: later, ..of(HealthStatus::Failed) };
        assert_eq!(made.reconciled(&of(HealthStatus::Active)), made, "nobody has changed it since");
        let stored = of(HealthStatus::Failed).resumed(NOW);
        assert_eq!(made.reconciled(&stored), Health { quiet_until: later, ..stored.clone() });
        let quieter = Health { quiet_until: later.map(|at| at + Duration::from_secs(1)), ..stored };
        assert_eq!(made.reconciled(&quieter), quieter);
    }
}
