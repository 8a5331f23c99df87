use super::{ChangeError, Directory};
use crate::scheduling::{Inbox, SchedulingEvent};
use crate::{Profile, Profiles};
use aldaba_delivery::OrgId;
use aldaba_store::{Change, OwnProfile};
use std::sync::Arc;

impl Directory {
    /// Creates a profile that endpoints can name.
    pub async fn create_profile(&self, org: OrgId, profile: &Profile) -> Result<(), ChangeError> {
        self.change(Change::CreateProfile { profile: self.own_profile(org, profile) }).await.map(drop)
    }

    /// Replaces a profile. It applies from the next attempt of every delivery on.
    pub async fn replace_profile(&self, org: OrgId, profile: &Profile) -> Result<(), ChangeError> {
        let existing = self.profiles.get(org, profile.name());
        if existing.is_some_and(|existing| existing.to_json() == profile.to_json()) {
            return Ok(());
        }
        self.change(Change::ReplaceProfile { profile: self.own_profile(org, profile) }).await.map(drop)
    }

    pub async fn delete_profile(&self, org: OrgId, name: String) -> Result<(), ChangeError> {
        self.change(Change::DeleteProfile { org, name }).await.map(drop)
    }

    fn own_profile(&self, org: OrgId, profile: &Profile) -> OwnProfile {
        let now = self.clock.now();
        OwnProfile {
            org,
            name: profile.name().to_owned(),
            body: profile.to_json().to_string(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// Updates the cache after a change of profiles was committed.
pub(super) struct ProfileInvalidation {
    profiles: Profiles,
    org: OrgId,
    name: String,
    /// `None`: it was deleted.
    now: Option<Arc<Profile>>,
}

impl ProfileInvalidation {
    pub(super) fn of(change: &Change, profiles: &Profiles) -> Option<Self> {
        let (org, name, now) = match change {
            Change::CreateProfile { profile } | Change::ReplaceProfile { profile } => {
                let now = Profiles::read(profile).expect("a profile can be read from what it wrote");
                (profile.org, &profile.name, Some(now))
            }
            Change::DeleteProfile { org, name } => (*org, name, None),
            _ => return None,
        };
        Some(Self { profiles: profiles.clone(), org, name: name.clone(), now })
    }

    /// Updates the cache first: notified lanes read it.
    pub(super) fn apply(self, inbox: &Inbox) {
        match self.now {
            Some(profile) => self.profiles.put(self.org, profile),
            None => self.profiles.remove(self.org, &self.name),
        }
        inbox.send(SchedulingEvent::ProfileChanged(self.org, self.name));
    }
}
