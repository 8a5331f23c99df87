//! What an export reads of an application.

use super::{ApplicationQuestions, Error};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_store::{Endpoint, ExportPage, ExportQuery, Source};

impl ApplicationQuestions<'_> {
    pub(crate) async fn newest_message(&self) -> Result<Option<MessageId>, Error> {
        Ok(self.store().newest_message(self.id).await?)
    }

    /// The source that owns the application.
    pub(crate) async fn own_source(&self) -> Result<Option<Source>, Error> {
        let Some(id) = self.store().source_of_application(self.id).await? else { return Ok(None) };
        Ok(self.store().source(self.org, id.to_string()).await?)
    }

    pub(crate) async fn export(&self, query: ExportQuery) -> Result<ExportPage, Error> {
        Ok(self.store().export(ExportQuery { app: self.id, ..query }).await?)
    }

    /// Endpoints and addresses of the application, deleted ones too.
    pub(crate) async fn endpoints_by_id(&self, ids: Vec<EndpointId>) -> Result<Vec<Endpoint>, Error> {
        let found = self.store().lane_endpoints(ids).await?;
        Ok(found.into_iter().filter(|endpoint| endpoint.app == self.id).collect())
    }
}
