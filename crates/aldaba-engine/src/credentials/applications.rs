use aldaba_delivery::{AppId, OrgId};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// How many are remembered. When more are in use, all are forgotten and looked up again.
const MAX_CACHED_APPLICATIONS: usize = 16_384;

/// Applications that are there, as far as somebody has asked: what speaks for one counts as long as it is there.
/// Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownApplications(Arc<RwLock<ApplicationTable>>);

#[derive(Debug, Default)]
struct ApplicationTable {
    organizations: HashMap<AppId, OrgId>,
    /// How many have been deleted. What was read before the last one may be old.
    deleted: u64,
}

/// A read that has begun.
pub(crate) struct ReadStart(u64);

impl KnownApplications {
    pub(crate) fn contains(&self, org: OrgId, app: AppId) -> bool {
        self.0.read().organizations.get(&app) == Some(&org)
    }

    /// To be called before it is read whether one is there.
    pub(crate) fn begin_read(&self) -> ReadStart {
        ReadStart(self.0.read().deleted)
    }

    /// It was found there.
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

    /// How many are remembered.
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
    fn what_was_read_before_a_deletion_is_not_remembered() {
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
