//! Policies and wire profiles: the built-in ones, and those of the organization.

use super::{Error, Missing, Questions};
use aldaba_delivery::Policy;
use aldaba_engine::Profile;
use aldaba_store::Endpoint;
use std::sync::Arc;

impl Questions<'_> {
    pub(crate) fn policies(&self) -> Vec<Policy> {
        self.engine.policies().of_organization(self.caller.org())
    }

    pub(crate) fn policy(&self, name: &str) -> Result<Policy, Error> {
        self.engine.policies().get(self.caller.org(), name).ok_or_else(|| Missing::Policy.into())
    }

    /// The policy that an endpoint's deliveries follow.
    pub(crate) fn policy_of(&self, endpoint: &Endpoint) -> Policy {
        self.engine.policies().of(endpoint.org, &endpoint.config.policy)
    }

    pub(crate) fn profiles(&self) -> Vec<Arc<Profile>> {
        self.engine.profiles().of_organization(self.caller.org())
    }

    pub(crate) fn profile(&self, name: &str) -> Result<Arc<Profile>, Error> {
        self.engine.profiles().get(self.caller.org(), name).ok_or_else(|| Missing::Profile.into())
    }
}
