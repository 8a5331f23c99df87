use aldaba_delivery::{AppId, OrgId};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// How many are remembered. When more are in use, all are forgotten and looked up again.
const REMEMBERED: usize = 16_384;

/// Applications that are there, as far as somebody has asked: what speaks for one counts as long as it is there.
/// Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applications(Arc<RwLock<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    there: HashMap<AppId, OrgId>,
    /// How many have been deleted. What was read before the last one may be old.
    deleted: u64,
}

/// A read that has begun.
pub(crate) struct Begun(u64);

impl Applications {
    pub(crate) fn is_there(&self, org: OrgId, app: AppId) -> bool {
        self.0.read().there.get(&app) == Some(&org)
    }

    /// To be called before it is read whether one is there.
    pub(crate) fn begin(&self) -> Begun {
        Begun(self.0.read().deleted)
    }

    /// It was found there.
    pub(crate) fn found(&self, Begun(deleted): Begun, org: OrgId, app: AppId) {
        let mut memory = self.0.write();
        if memory.deleted != deleted {
            return;
        }
        if memory.there.len() >= REMEMBERED {
            memory.there.clear();
        }
        memory.there.insert(app, org);
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.read().there.len()
    }

    pub(super) fn remove(&self, app: AppId) {
        let mut memory = self.0.write();
        memory.there.remove(&app);
        memory.deleted += 1;
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
        let applications = Applications::default();
        let early = applications.begin();
        applications.found(applications.begin(), org, app);
        assert!(applications.is_there(org, app));
        assert!(!applications.is_there(OrgId::last_at(moment), app), "another organization's");
        applications.remove(app);
        applications.found(early, org, app);
        assert!(!applications.is_there(org, app));
    }
}
