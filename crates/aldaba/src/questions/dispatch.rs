//! What was sent to URLs that are no endpoints, and the notices of jobs.

use super::{ApplicationQuestions, Error, Missing};
use aldaba_delivery::MessageId;
use aldaba_store::{Dispatch, DispatchKind, DispatchesQuery, ListPage, ListRange, Order, Page};

impl ApplicationQuestions<'_> {
    pub(crate) async fn dispatches(
        &self,
        query: DispatchesQuery,
    ) -> Result<ListPage<Dispatch, MessageId>, Error> {
        Ok(self.store().dispatches(DispatchesQuery { app: self.id, ..query }).await?)
    }

    /// By the id or event id of its message.
    pub(crate) async fn dispatch(&self, key: &str) -> Result<Dispatch, Error> {
        let message = self.find_message(key).await?.ok_or(Missing::Dispatch)?;
        self.find_dispatch(message.id).await?.ok_or_else(|| Missing::Dispatch.into())
    }

    pub(crate) async fn find_dispatch(&self, message: MessageId) -> Result<Option<Dispatch>, Error> {
        Ok(self.store().dispatch(self.id, message).await?)
    }

    /// The newest notice of a job.
    pub(crate) async fn job(&self, job: String) -> Result<Dispatch, Error> {
        let newest = ListRange::page(Page { after: None, limit: 1 }, Order::Descending);
        let query = DispatchesQuery {
            app: self.id,
            how: DispatchKind::AsJob,
            job: Some(job),
            state: None,
            part: newest,
            bytes: usize::MAX,
        };
        self.dispatches(query).await?.items.pop().ok_or_else(|| Missing::Job.into())
    }
}
