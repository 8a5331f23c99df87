//! The API keys of an organization.

use super::{Error, Missing, Questions};
use aldaba_store::ApiKey;

impl Questions<'_> {
    /// In ascending order of their ids.
    pub(crate) fn api_keys(&self) -> Vec<ApiKey> {
        self.engine.credentials().keys.of_organization(self.caller.org())
    }

    /// Finds a key by its id, or by the prefix that lists show.
    pub(crate) fn api_key(&self, wanted: &str) -> Result<ApiKey, Error> {
        let is_wanted = |key: &ApiKey| key.prefix == wanted || wanted.parse() == Ok(key.id);
        self.api_keys().into_iter().find(is_wanted).ok_or_else(|| Missing::ApiKey.into())
    }
}
