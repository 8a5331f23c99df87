use crate::configuration::profile::{Brand, Profile, ProfileError, builtin};
use aldaba_delivery::{BUILTIN_PROFILES, OrgId};
use aldaba_store::OwnProfile;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

type OwnProfiles = BTreeMap<(OrgId, String), Arc<Profile>>;

/// The wire profiles that endpoints can name: built-in ones, and each organization's own. Clones share the
/// latter.
#[derive(Clone, Debug)]
pub struct Profiles {
    builtin: Arc<BTreeMap<&'static str, Arc<Profile>>>,
    /// The profile of endpoints that name none.
    default: Arc<Profile>,
    own: Arc<RwLock<OwnProfiles>>,
}

/// Why the profiles cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfilesError {
    #[error("`{name}` is not a built-in wire profile; known ones: {}", BUILTIN_PROFILES.join(", "))]
    Default { name: String },
    #[error("the stored wire profile `{name}` of {org} cannot be read: {why}")]
    Stored { org: OrgId, name: String, why: String },
}

impl Profiles {
    /// `default`: the name of the profile for endpoints that name none.
    pub(crate) fn new(default: &str, brand: &Brand) -> Result<Self, ProfilesError> {
        let named = |name: &&'static str| builtin(name, brand).map(|profile| (*name, Arc::new(profile)));
        let builtin: BTreeMap<_, _> = BUILTIN_PROFILES.iter().filter_map(named).collect();
        let default =
            builtin.get(default).ok_or_else(|| ProfilesError::Default { name: default.to_owned() })?.clone();
        Ok(Self { builtin: Arc::new(builtin), default, own: Arc::default() })
    }

    pub fn get(&self, org: OrgId, name: &str) -> Option<Arc<Profile>> {
        let own = || self.own.read().get(&(org, name.to_owned())).cloned();
        self.builtin.get(name).cloned().or_else(own)
    }

    /// All profiles that endpoints of an organization can name, by name.
    pub fn of_organization(&self, org: OrgId) -> Vec<Arc<Profile>> {
        let own = self.own.read();
        let own = own.iter().filter(|((owner, _), _)| *owner == org).map(|(_, profile)| profile.clone());
        let mut all: Vec<_> = self.builtin.values().cloned().chain(own).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// The profile of a stored endpoint. An unknown name falls back to the default: a delivery must not be
    /// stuck because of it.
    pub(crate) fn of(&self, org: OrgId, name: Option<&str>) -> Arc<Profile> {
        name.and_then(|name| self.get(org, name)).unwrap_or_else(|| self.default.clone())
    }

    pub(crate) fn read(own: &OwnProfile) -> Result<Arc<Profile>, ProfilesError> {
        let unreadable = |why| ProfilesError::Stored { org: own.org, name: own.name.clone(), why };
        let json = serde_json::from_str(&own.body).map_err(|error| unreadable(error.to_string()))?;
        let all = |errors: Vec<ProfileError>| {
            unreadable(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        };
        Ok(Arc::new(Profile::from_json(&json).map_err(all)?))
    }

    pub(crate) fn put(&self, org: OrgId, profile: Arc<Profile>) {
        self.own.write().insert((org, profile.name().to_owned()), profile);
    }

    pub(crate) fn remove(&self, org: OrgId, name: &str) {
        self.own.write().remove(&(org, name.to_owned()));
    }
}

#[cfg(test)]
impl Profiles {
    pub(crate) fn standard() -> Arc<Profile> {
        Self::new("standard", &Brand::default()).expect("`standard` is built in").default
    }
}
