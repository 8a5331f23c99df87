//! Organizations whose notices could not be sent, for a while that grows.

use aldaba_delivery::OrgId;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::task::JoinSet;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Resting {
    asleep: HashSet<OrgId>,
    /// They end when one is to be woken.
    naps: JoinSet<OrgId>,
    /// How long each has rested last, as long as it has not gone on.
    last: HashMap<OrgId, Duration>,
}

impl Resting {
    pub(super) fn rests(&self, org: OrgId) -> bool {
        self.asleep.contains(&org)
    }

    /// How long it rests: twice as long as the last time.
    pub(super) fn lie_down(&mut self, org: OrgId) -> Duration {
        let pause = self.last.get(&org).map_or(FIRST, |last| (*last * 2).min(LONGEST));
        self.last.insert(org, pause);
        self.asleep.insert(org);
        self.naps.spawn(async move {
            tokio::time::sleep(pause).await;
            org
        });
        pause
    }

    pub(super) fn goes_on(&mut self, org: OrgId) {
        self.last.remove(&org);
    }

    /// Wakes all whose time has come.
    pub(super) fn wake(&mut self) {
        while let Some(nap) = self.naps.try_join_next() {
            self.end(nap.ok());
        }
    }

    /// Until one wakes; for ever where none rests.
    pub(super) async fn one_wakes(&mut self) {
        match self.naps.join_next().await {
            Some(nap) => self.end(nap.ok()),
            None => std::future::pending().await,
        }
    }

    fn end(&mut self, nap: Option<OrgId>) {
        if let Some(org) = nap {
            self.asleep.remove(&org);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[tokio::test(start_paused = true)]
    async fn a_pause_grows_until_it_has_gone_on_and_concerns_nobody_else() {
        let (org, other) =
            (OrgId::first_at(Timestamp::from_millis(1)), OrgId::last_at(Timestamp::from_millis(1)));
        let mut resting = Resting::default();
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            let pause = resting.lie_down(org);
            assert!(pause > last || pause == LONGEST, "{pause:?} after {last:?}");
            assert!(resting.rests(org) && !resting.rests(other));
            tokio::time::sleep(pause - Duration::from_millis(1)).await;
            resting.wake();
            assert!(resting.rests(org));
            resting.one_wakes().await;
            assert!(!resting.rests(org));
            last = pause;
        }
        assert_eq!(last, LONGEST);
        resting.goes_on(org);
        assert_eq!(resting.lie_down(org), FIRST);
    }
}
