//! What the owner of an endpoint is told when its health changes.

use crate::{Ending, Health, HealthStatus, Reason};

/// A change of an endpoint's health that concerns its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAlert {
    /// Failures in a row, as many as [`OwnerAlert::WARNING_FAILURES`]. Deliveries are still retried.
    Warning,
    /// A delivery has used up its retries or its time at an endpoint that fails. Others are still tried.
    GivenUp,
    /// Nothing is sent any more, but probes where the policy has them.
    Failed,
    /// Deliveries go out again.
    Recovered,
}

impl OwnerAlert {
    /// Failures in a row after which the owner is warned. It is said once: the count begins anew only after a success.
    pub const WARNING_FAILURES: u32 = 3;

    /// What there is to tell of an attempt that has changed the health or ended its delivery.
    pub fn of(before: &Health, after: &Health, ending: Option<Ending>) -> Option<Self> {
        let warned = |health: &Health| health.failure_count >= Self::WARNING_FAILURES;
        let gave_up = matches!(ending, Some(Ending::Dead(Reason::Exhausted | Reason::StopDate)));
        match (before.status, after.status) {
            (HealthStatus::Active, HealthStatus::Active) => match (warned(before), warned(after)) {
                (_, true) if gave_up => Some(Self::GivenUp),
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
        OwnerAlert::of(&health(before), &health(after), None)
    }

    #[test]
    fn an_owner_is_told_of_a_delivery_that_was_given_up_only_at_an_endpoint_that_fails() {
        let failing = |failure_count| Health { failure_count, ..Health::default() };
        let ended = |before, after, reason| {
            OwnerAlert::of(&failing(before), &failing(after), Some(Ending::Dead(reason)))
        };
        assert_eq!(ended(5, 5, Reason::Exhausted), Some(OwnerAlert::GivenUp));
        assert_eq!(ended(2, 3, Reason::Exhausted), Some(OwnerAlert::GivenUp), "it says more than a warning");
        assert_eq!(ended(9, 9, Reason::StopDate), Some(OwnerAlert::GivenUp), "it ends between two attempts");
        assert_eq!(ended(1, 1, Reason::StopDate), None, "what waited too long is not the receiver's fault");
        assert_eq!(ended(5, 5, Reason::Cancelled), None);
        let blocked = Health { status: Blocked, ..failing(0) };
        let stopped = Some(Ending::Dead(Reason::StopDate));
        assert_eq!(OwnerAlert::of(&failing(0), &blocked, stopped), Some(OwnerAlert::Failed));
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
