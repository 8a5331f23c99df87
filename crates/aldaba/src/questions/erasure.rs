//! Erasures of an organization, and what can be erased.

use super::{Error, Missing, Questions};
use aldaba_delivery::ErasureId;
use aldaba_store::{Erasable, Erasure, ErasuresQuery, RequestDigest};

impl Questions<'_> {
    /// An application by its id or uid; a deleted one by its id.
    pub(crate) async fn erasable(&self, key: &str) -> Result<Erasable, Error> {
        let app = match self.find_application(key).await? {
            Some(application) => application.id,
            None => key.parse().map_err(|_| Missing::Application)?,
        };
        let found = self.store().erasable(self.caller.org(), app).await?;
        found.ok_or_else(|| Missing::Application.into())
    }

    /// The erasure that an earlier request with this key has started: its application may be gone.
    pub(crate) async fn erasure_of_request(
        &self,
        once: Option<&RequestDigest>,
    ) -> Result<Option<Erasure>, Error> {
        let Some(digest) = once else { return Ok(None) };
        Ok(self.store().erasure_of_request(self.caller.org(), *digest).await?)
    }

    /// `None`: the organization has no such erasure.
    pub(crate) async fn erasure(&self, id: &str) -> Result<Option<Erasure>, Error> {
        let Ok(id) = id.parse::<ErasureId>() else { return Ok(None) };
        Ok(self.store().erasure(self.caller.org(), id).await?)
    }

    pub(crate) async fn erasures(&self, query: ErasuresQuery) -> Result<Vec<Erasure>, Error> {
        Ok(self.store().erasures(ErasuresQuery { org: self.caller.org(), ..query }).await?)
    }
}
