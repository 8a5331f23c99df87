//! Questions that anybody may ask, without a credential.

use super::{Error, Missing};
use aldaba_delivery::{AppId, EndpointId};
use aldaba_engine::Engine;
use aldaba_store::{Endpoint, Error as StoreError, Order, Page};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicQuestions<'a>(pub(crate) &'a Engine);

impl PublicQuestions<'_> {
    /// Whether the store can be read and written.
    pub(crate) async fn check_store(self) -> Result<(), StoreError> {
        self.0.store().check().await
    }

    /// A number that grows with each change of an application's configuration.
    pub(crate) async fn application_version(self, app: AppId) -> Result<u64, Error> {
        let version = self.0.store().application_version(app).await?;
        version.ok_or_else(|| Missing::PublicApplication.into())
    }

    /// The endpoints whose public keys are shown.
    pub(crate) async fn signing_endpoints(
        self,
        app: AppId,
        page: Page<EndpointId>,
    ) -> Result<Vec<Endpoint>, Error> {
        Ok(self.0.store().endpoints(app, page, Order::Ascending).await?)
    }
}
