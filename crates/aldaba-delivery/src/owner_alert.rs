//! What the owner of an endpoint is told when its health changes.

use crate::{Health, HealthStatus};

/// A change of an endpoint's health that concerns its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAlert {
    /// Failures in a row, as many as [`OwnerAlert::WARNING_FAILURES`]. Deliveries are still retried.
    Warning,
    /// Nothing is sent any more, but probes where the policy has them.
    Failed,
    /// Deliveries go out again.
    Recovered,
}

impl OwnerAlert {
    /// Failures in a row after which the owner is warned. It is said once: the count begins anew only after a success.
    pub const WARNING_FAILURES: u32 = 3;

    /// What an attempt that has changed the health has to tell.
    pub fn of(before: &Health, after: &Health) -> Option<Self> {
        let warned = |health: &Health| health.failure_count >= Self::WARNING_FAILURES;
        match (before.status, after.status) {
            (HealthStatus::Active, HealthStatus::Active) => match (warned(before), warned(after)) {
                (false, true) => Some(Self::Warning),
                (true, false) => Some(Self::Recovered),
                _ => None,
            },
            (HealthStatus::Active, _) => Some(Self::Failed),
            (_, HealthStatus::Active) => Some(Self::Recovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HealthStatus::{Active, Blocked, Failed, Gone};

    fn of(before: (HealthStatus, u32), after: (HealthStatus, u32)) -> Option<OwnerAlert> {
        let health = |(status, failure_count)| Health { status, failure_count, ..Health::default() };
        OwnerAlert::of(&health(before), &health(after))
    }

    #[test]
    fn an_owner_is_warned_at_the_third_failure_in_a_row_and_not_again() {
        assert_eq!(of((Active, 0), (Active, 1)), None);
        assert_eq!(of((Active, 1), (Active, 2)), None);
        assert_eq!(of((Active, 2), (Active, 3)), Some(OwnerAlert::Warning));
        assert_eq!(of((Active, 3), (Active, 4)), None);
    }

    #[test]
    fn an_owner_is_told_of_a_failure_whatever_came_before_it() {
        for failures in [0, 2, 5] {
            for status in [Failed, Gone, Blocked] {
                assert_eq!(of((Active, failures), (status, failures)), Some(OwnerAlert::Failed));
            }
        }
        assert_eq!(of((Failed, 5), (Failed, 6)), None);
        assert_eq!(of((Failed, 5), (Gone, 5)), None);
    }

    #[test]
    fn an_owner_is_told_of_a_recovery_only_after_a_warning_or_a_failure() {
        assert_eq!(of((Active, 2), (Active, 0)), None);
        assert_eq!(of((Active, 3), (Active, 0)), Some(OwnerAlert::Recovered));
        assert_eq!(of((Failed, 5), (Active, 0)), Some(OwnerAlert::Recovered));
    }
}
