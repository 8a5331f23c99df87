use aldaba_delivery::policy::{BUILTIN_NAMES, Overrides, builtin};
use aldaba_delivery::{OrgId, Policy, PolicyError};
use aldaba_store::{OwnPolicy, RetentionPolicies};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The policies that endpoints can name: built-in ones, and each organization's own. Clones share the
/// latter.
#[derive(Clone, Debug)]
pub struct Policies {
    builtin: Arc<BTreeMap<String, Policy>>,
    own: Arc<RwLock<BTreeMap<(OrgId, String), OwnPolicy>>>,
}

impl Policies {
    /// The policy of endpoints that name none.
    pub const DEFAULT: &'static str = "standard";

    pub fn new(overrides: &Overrides) -> Result<Self, PolicyError> {
        let named = |name: &&str| builtin(name, overrides).map(|made| made.map(|p| ((*name).to_owned(), p)));
        let builtin = BUILTIN_NAMES.iter().filter_map(named).collect::<Result<_, _>>()?;
        Ok(Self { builtin: Arc::new(builtin), own: Arc::default() })
    }

    /// A built-in policy.
    pub fn builtin(&self, name: &str) -> Option<&Policy> {
        self.builtin.get(name)
    }

    pub fn builtin_names(&self) -> impl Iterator<Item = &str> {
        self.builtin.keys().map(String::as_str)
    }

    pub fn get(&self, org: OrgId, name: &str) -> Option<Policy> {
        let own = || self.own.read().get(&(org, name.to_owned())).map(|own| own.policy.clone());
        self.builtin(name).cloned().or_else(own)
    }

    /// All policies that endpoints of an organization can name, by name.
    pub fn of_organization(&self, org: OrgId) -> Vec<Policy> {
        let own = self.own.read();
        let own = own.values().filter(|own| own.org == org).map(|own| own.policy.clone());
        let mut all: Vec<_> = self.builtin.values().cloned().chain(own).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The policy of a stored endpoint. An unknown name falls back to the default: a delivery must not be
    /// stuck because of it.
    pub fn of(&self, org: OrgId, name: &str) -> Policy {
        let default = || self.builtin(Self::DEFAULT).cloned().expect("the default policy is built in");
        self.get(org, name).unwrap_or_else(default)
    }

    /// What all of them say about retention.
    pub(crate) fn retention(&self) -> RetentionPolicies {
        let builtin = self.builtin.iter().map(|(name, policy)| (name.clone(), policy.retention)).collect();
        let own = self.own.read().iter().map(|(key, own)| (key.clone(), own.policy.retention)).collect();
        let default = self.builtin(Self::DEFAULT).map(|policy| policy.retention).unwrap_or_default();
        RetentionPolicies { builtin, own, default }
    }

    pub(crate) fn put(&self, own: OwnPolicy) {
        let mut all = self.own.write();
        let key = (own.org, own.policy.name.clone());
        let created_at = all.get(&key).map_or(own.created_at, |before| before.created_at);
        all.insert(key, OwnPolicy { created_at, ..own });
    }

    pub(crate) fn remove(&self, org: OrgId, name: &str) {
        self.own.write().remove(&(org, name.to_owned()));
    }
}
