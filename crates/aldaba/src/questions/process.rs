//! Questions of the process itself, which belongs to no organization: the server's run, and the demo.

use aldaba_delivery::EndpointId;
use aldaba_delivery::MessageId;
use aldaba_engine::Engine;
use aldaba_store::{
    Attempt, AttemptsQuery, DeliveryStatus, DiskState, Endpoint, Error as StoreError, GateRecord, ListPage,
    Store,
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessQuestions<'a>(pub(crate) &'a Engine);

impl<'a> ProcessQuestions<'a> {
    fn store(self) -> &'a dyn Store {
        &**self.0.store()
    }

    /// What is known of the disk, without a look at it.
    pub(crate) fn disk(self) -> DiskState {
        self.store().disk()
    }

    /// Resolves with the cause when the store cannot be trusted any more.
    pub(crate) async fn store_failure(self) -> String {
        self.store().failed().await
    }

    pub(crate) async fn attempts(
        self,
        query: AttemptsQuery,
    ) -> Result<ListPage<Attempt, aldaba_delivery::AttemptId>, StoreError> {
        self.store().attempts(query).await
    }

    pub(crate) async fn deliveries(self, message: MessageId) -> Result<Vec<DeliveryStatus>, StoreError> {
        self.store().deliveries(message).await
    }

    pub(crate) async fn endpoints(self, ids: Vec<EndpointId>) -> Result<Vec<Endpoint>, StoreError> {
        self.store().lane_endpoints(ids).await
    }

    pub(crate) async fn gates(self) -> Result<Vec<GateRecord>, StoreError> {
        self.store().gates().await
    }
}
