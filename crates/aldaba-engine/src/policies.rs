use aldaba_delivery::policy::{BUILTIN_NAMES, Overrides, builtin};
use aldaba_delivery::{Policy, PolicyError};
use std::collections::BTreeMap;

/// The policies that endpoints can name.
#[derive(Clone, Debug)]
pub struct Policies(BTreeMap<String, Policy>);

impl Policies {
    /// The policy of endpoints that name none.
    pub const DEFAULT: &'static str = "standard";

    pub fn new(overrides: &Overrides) -> Result<Self, PolicyError> {
        let named = |name: &&str| builtin(name, overrides).map(|made| made.map(|p| ((*name).to_owned(), p)));
        BUILTIN_NAMES.iter().filter_map(named).collect::<Result<_, _>>().map(Self)
    }

    pub fn get(&self, name: &str) -> Option<&Policy> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The policy of a stored endpoint. A name that is gone falls back to the default: a delivery
    /// must not be stuck because of it.
    pub(crate) fn of(&self, name: &str) -> &Policy {
        self.get(name).or_else(|| self.get(Self::DEFAULT)).expect("the default policy is built in")
    }
}
