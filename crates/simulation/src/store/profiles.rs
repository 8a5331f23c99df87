//! Wire profiles reach the disk.

use super::disk::Disk;
use aldaba_delivery::{BUILTIN_PROFILES, OrgId};
use aldaba_store::{Changed, Endpoint, OwnProfile};

impl Disk {
    /// Whether the profile that an endpoint names is there. Naming none is fine.
    pub(super) fn knows_profile(&self, endpoint: &Endpoint) -> bool {
        endpoint.config.profile.as_ref().is_none_or(|name| {
            BUILTIN_PROFILES.contains(&name.as_str())
                || self.profiles.contains_key(&(endpoint.org, name.clone()))
        })
    }

    pub(super) fn create_profile(&mut self, own: &OwnProfile) -> Changed {
        let key = (own.org, own.name.clone());
        if self.profiles.contains_key(&key) {
            return Changed::UidTaken;
        }
        self.profiles.insert(key, own.clone());
        Changed::Done { removed: Vec::new() }
    }

    pub(super) fn replace_profile(&mut self, own: &OwnProfile) -> Changed {
        let Some(row) = self.profiles.get_mut(&(own.org, own.name.clone())) else {
            return Changed::NotFound;
        };
        row.body.clone_from(&own.body);
        row.updated_at = own.updated_at;
        Changed::Done { removed: Vec::new() }
    }

    pub(super) fn delete_profile(&mut self, org: OrgId, name: &str) -> Changed {
        let uses =
            |row: &&Endpoint| row.org == org && row.config.profile.as_deref() == Some(name) && !row.deleted;
        if let Some(row) = self.endpoints.values().find(uses) {
            return Changed::InUse { endpoint: Some(row.id) };
        }
        match self.profiles.remove(&(org, name.to_owned())) {
            Some(_) => Changed::Done { removed: Vec::new() },
            None => Changed::NotFound,
        }
    }
}
