use super::{ChangeError, Directory};
use aldaba_delivery::{AppId, AttemptId, MessageId};
use aldaba_store::Change;

impl Directory {
    pub(crate) async fn expunge_message(&self, app: AppId, message: MessageId) -> Result<(), ChangeError> {
        self.change(Change::ExpungeMessage { app, message }).await.map(drop)
    }

    pub(crate) async fn expunge_attempt(
        &self,
        app: AppId,
        message: MessageId,
        attempt: AttemptId,
    ) -> Result<(), ChangeError> {
        self.change(Change::ExpungeAttempt { app, message, attempt }).await.map(drop)
    }
}
