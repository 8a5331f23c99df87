//! Creates, changes and deletes an organization's own policies.

use super::{ChangeError, Directory};
use crate::Policies;
use crate::scheduling::{Inbox, SchedulingEvent};
use aldaba_delivery::{OrgId, Policy};
use aldaba_store::{Change, OwnPolicy};

impl Directory {
    /// Creates a policy that endpoints can name.
    pub async fn create_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        self.change(Change::CreatePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    /// Replaces a policy. It applies from the next attempt of every delivery on.
    pub async fn replace_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        if self.policies.get(org, &policy.name).as_ref() == Some(&policy) {
            return Ok(());
        }
        self.change(Change::ReplacePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    pub async fn delete_policy(&self, org: OrgId, name: String) -> Result<(), ChangeError> {
        self.change(Change::DeletePolicy { org, name }).await.map(drop)
    }

    fn own(&self, org: OrgId, policy: Policy) -> OwnPolicy {
        let now = self.clock.now();
        OwnPolicy { org, policy, created_at: now, updated_at: now }
    }
}

/// Updates the cache after a change of policies was committed.
pub(super) struct PolicyInvalidation {
    policies: Policies,
    org: OrgId,
    name: String,
    /// `None`: it was deleted.
    now: Option<OwnPolicy>,
}

impl PolicyInvalidation {
    pub(super) fn of(change: &Change, policies: &Policies) -> Option<Self> {
        let (org, name, now) = match change {
            Change::CreatePolicy { policy } | Change::ReplacePolicy { policy } => {
                (policy.org, policy.policy.name.clone(), Some(policy.clone()))
            }
            Change::DeletePolicy { org, name } => (*org, name.clone(), None),
            _ => return None,
        };
        Some(Self { policies: policies.clone(), org, name, now })
    }

    /// Updates the cache first: notified lanes read it.
    pub(super) fn apply(self, inbox: &Inbox) {
        match self.now {
            Some(own) => self.policies.put(own),
            None => self.policies.remove(self.org, &self.name),
        }
        inbox.send(SchedulingEvent::PolicyChanged(self.org, self.name));
    }
}
