use aldaba_delivery::{AppId, OrgId};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// Applications in the cache. Past it the cache is cleared.
const MAX_CACHED_APPLICATIONS: usize = 16_384;

/// Cache of existing applications: a credential for an application is valid while the application exists.
/// Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownApplications(Arc<RwLock<ApplicationTable>>);

#[derive(Debug, Default)]
struct ApplicationTable {
    organizations: HashMap<AppId, OrgId>,
    /// Deletions so far. A read that began before the last one may be stale.
    deleted: u64,
}

/// The start of a read, as the number of deletions until then.
pub(crate) struct ReadStart(u64);

impl KnownApplications {
    pub(crate) fn contains(&self, org: OrgId, app: AppId) -> bool {
        self.0.read().organizations.get(&app) == Some(&org)
    }

    /// Call before reading whether an application exists.
    pub(crate) fn begin_read(&self) -> ReadStart {
        ReadStart(self.0.read().deleted)
    }

    /// Caches an application that was found, unless one was deleted meanwhile.
    pub(crate) fn insert(&self, ReadStart(deleted): ReadStart, org: OrgId, app: AppId) {
        let mut table = self.0.write();
        if table.deleted != deleted {
            return;
        }
        if table.organizations.len() >= MAX_CACHED_APPLICATIONS {
            table.organizations.clear();
        }
        table.organizations.insert(app, org);
    }

    /// The size of the cache.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.read().organizations.len()
    }

    pub(super) fn remove(&self, app: AppId) {
        let mut table = self.0.write();
        table.organizations.remove(&app);
        table.deleted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[test]
    fn a_read_that_began_before_a_deletion_is_not_cached() {
        let moment = Timestamp::from_millis(1);
        let (org, app) = (OrgId::first_at(moment), AppId::first_at(moment));
        let applications = KnownApplications::default();
        let early = applications.begin_read();
        applications.insert(applications.begin_read(), org, app);
        assert!(applications.contains(org, app));
        assert!(!applications.contains(OrgId::last_at(moment), app), "another organization's");
        applications.remove(app);
        applications.insert(early, org, app);
        assert!(!applications.contains(org, app));
    }
}
