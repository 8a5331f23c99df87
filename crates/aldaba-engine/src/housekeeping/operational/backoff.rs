//! Backs off organizations whose notices could not be sent, exponentially.

use aldaba_delivery::OrgId;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::task::JoinSet;

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct OrganizationBackoff {
    waiting: HashSet<OrgId>,
    /// One timer per organization that is backing off.
    timers: JoinSet<OrgId>,
    /// The last backoff of each organization, until it succeeds.
    last: HashMap<OrgId, Duration>,
}

impl OrganizationBackoff {
    pub(super) fn is_waiting(&self, org: OrgId) -> bool {
        self.waiting.contains(&org)
    }

    /// Starts a backoff, twice as long as the last one, and returns it.
    pub(super) fn back_off(&mut self, org: OrgId) -> Duration {
        let pause = self.last.get(&org).map_or(MIN_BACKOFF, |last| (*last * 2).min(MAX_BACKOFF));
        self.last.insert(org, pause);
        self.waiting.insert(org);
        self.timers.spawn(async move {
            tokio::time::sleep(pause).await;
            org
        });
        pause
    }

    pub(super) fn reset(&mut self, org: OrgId) {
        self.last.remove(&org);
    }

    /// Ends the backoffs that are over.
    pub(super) fn expire(&mut self) {
        while let Some(timer) = self.timers.try_join_next() {
            self.expired(timer.ok());
        }
    }

    /// Waits until one backoff ends; forever if there is none.
    pub(super) async fn next_expiry(&mut self) {
        match self.timers.join_next().await {
            Some(timer) => self.expired(timer.ok()),
            None => std::future::pending().await,
        }
    }

    fn expired(&mut self, timer: Option<OrgId>) {
        if let Some(org) = timer {
            self.waiting.remove(&org);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[tokio::test(start_paused = true)]
    async fn a_backoff_grows_until_reset_and_affects_no_other_organization() {
        let (org, other) =
            (OrgId::first_at(Timestamp::from_millis(1)), OrgId::last_at(Timestamp::from_millis(1)));
        let mut backoff = OrganizationBackoff::default();
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            let pause = backoff.back_off(org);
            assert!(pause > last || pause == MAX_BACKOFF, "{pause:?} after {last:?}");
            assert!(backoff.is_waiting(org) && !backoff.is_waiting(other));
            tokio::time::sleep(pause - Duration::from_millis(1)).await;
            backoff.expire();
            assert!(backoff.is_waiting(org));
            backoff.next_expiry().await;
            assert!(!backoff.is_waiting(org));
            last = pause;
        }
        assert_eq!(last, MAX_BACKOFF);
        backoff.reset(org);
        assert_eq!(backoff.back_off(org), MIN_BACKOFF);
    }
}
