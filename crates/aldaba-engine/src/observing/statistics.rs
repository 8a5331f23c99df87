//! Statistics of the server and of organizations.

use super::store_watch::{SchedulerLoad, StoreView};
use super::window::WindowCounts;
use crate::Clock;
use aldaba_delivery::{OrgId, Reason, Timestamp};
use aldaba_store::{CommitCounts, CommitWatcher, DiskState, LiveCounts, OrganizationCounts};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whose statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Server,
    Organization(OrgId),
}

impl Scope {
    fn organization(self) -> Option<OrgId> {
        match self {
            Self::Server => None,
            Self::Organization(org) => Some(org),
        }
    }
}

/// Statistics, all from memory. Windows survive restarts. Clones share them.
#[derive(Clone)]
pub struct Statistics {
    pub(crate) live: LiveCounts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) view: Arc<Mutex<StoreView>>,
}

impl Statistics {
    /// The longest window.
    pub const MAX_WINDOW: Duration = Duration::from_secs(24 * 3600);

    pub(crate) fn new(live: LiveCounts, clock: Arc<dyn Clock>) -> Self {
        Self { live, clock, view: Arc::default() }
    }

    /// What happened in the minute that is under way and in the span before it. Beyond an hour: in the hour that is under way and
    /// in the hours before it that have a part of the span.
    pub fn window(&self, scope: Scope, span: Duration) -> WindowCounts {
        let span = span.min(Self::MAX_WINDOW);
        WindowCounts(self.live.window(scope.organization(), self.clock.now(), span))
    }

    /// How many deliveries wait, by the last commit.
    pub fn waiting(&self, scope: Scope) -> u64 {
        self.live.waiting(scope.organization())
    }

    /// How many of them are deferred: for a later time that their sender has named, or for an endpoint that is given up, blocked or
    /// off; some seconds old. `None`: nobody has looked yet.
    pub fn deferred(&self, scope: Scope) -> Option<u64> {
        let view = self.view.lock();
        view.seen_at?;
        Some(match scope.organization() {
            None => view.deferred.values().sum(),
            Some(org) => view.deferred.get(&org).copied().unwrap_or(0),
        })
    }

    /// Hears of commits that concern an organization.
    pub fn watch(&self, org: OrgId) -> CommitWatcher {
        self.live.watch(org)
    }

    /// The organizations in which something happened within a day, whose deliveries wait, or whose endpoints have failed or show a
    /// certificate.
    pub fn organizations(&self) -> Vec<OrgId> {
        let mut organizations = self.live.organizations();
        let view = self.view.lock();
        organizations.extend(view.failed_endpoints.keys().chain(view.certificates.keys()));
        drop(view);
        organizations.sort_unstable();
        organizations.dedup();
        organizations
    }

    /// How many endpoints are given up, as failed or gone; some seconds old. `None`: nobody has looked yet.
    pub fn failed_endpoints(&self, scope: Scope) -> Option<u64> {
        let view = self.view.lock();
        view.seen_at?;
        Some(match scope.organization() {
            None => view.failed_endpoints.values().sum(),
            Some(org) => view.failed_endpoints.get(&org).copied().unwrap_or(0),
        })
    }

    /// When the first client certificate of an organization expires; some seconds old. `None`: nobody has looked yet.
    pub(crate) fn first_certificate(&self, org: OrgId) -> Option<Option<Timestamp>> {
        let view = self.view.lock();
        view.seen_at?;
        Some(view.certificates.get(&org).copied())
    }

    /// For how long the oldest delivery could have been sent; zero: none waits. Some seconds old. `None`: nobody has looked yet.
    pub fn oldest_wait(&self) -> Option<Duration> {
        let view = self.view.lock();
        view.seen_at?;
        Some(self.waited(view.oldest_waiting.values().min()))
    }

    /// The same of one organization.
    pub fn oldest_wait_of(&self, org: OrgId) -> Option<Duration> {
        let view = self.view.lock();
        view.seen_at?;
        Some(self.waited(view.oldest_waiting.get(&org)))
    }

    fn waited(&self, oldest: Option<&Timestamp>) -> Duration {
        oldest.map_or(Duration::ZERO, |oldest| self.clock.now().since(*oldest))
    }

    /// How many deliveries are in the dead letter, by reason; some seconds old. Empty: nobody has looked yet.
    pub fn dead_letter(&self) -> Vec<(Reason, u64)> {
        self.view.lock().dead_letter.clone()
    }

    /// How many deliveries are in the dead letter; some seconds old. `None`: nobody has looked yet.
    pub fn dead_letter_size(&self) -> Option<u64> {
        let view = self.view.lock();
        view.seen_at?;
        Some(view.dead_letter.iter().map(|(_, count)| *count).sum())
    }

    /// What the scheduler has in memory; some seconds old.
    pub fn scheduler(&self) -> SchedulerLoad {
        self.view.lock().scheduler
    }

    /// Whether messages are accepted: there is room for them, and something can be written. `None`: nobody has tried yet.
    pub fn is_accepting(&self, disk: DiskState) -> Option<bool> {
        if disk.is_low { Some(false) } else { self.view.lock().is_writable }
    }

    /// What happened on the whole server since it was started.
    pub fn since_start(&self) -> OrganizationCounts {
        self.live.since_start()
    }

    /// What commits cost since the start.
    pub fn commits(&self) -> CommitCounts {
        self.live.commits()
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Statistics")
    }
}
