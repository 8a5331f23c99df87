//! Deletes the payload of a message or the response of an attempt for good.
//!
//! The payload is deleted in one commit. Pending deliveries of the message have nothing left to send: they end at once in the
//! dead letter, with that reason. If the server stops in between, each of them ends when it is selected. A request in flight is
//! not stopped.

use crate::scheduling::{Cancel, Cancelled};
use crate::{ChangeError, Engine};
use aldaba_delivery::{AppId, AttemptId, MessageId, Reason};
use aldaba_store::{Actor, DeliveryStatus, Error};
use std::sync::Arc;

/// Deliveries that end in one commit.
const SLICE: usize = 250;
/// How often deliveries are read again that keep changing.
const TRIES: usize = 8;

impl Engine {
    /// Deletes the payload of a message. When this returns, no further request sends it.
    pub async fn expunge_message(
        &self,
        actor: &Arc<Actor>,
        app: AppId,
        message: MessageId,
    ) -> Result<(), ChangeError> {
        self.directory().by(actor).expunge_message(app, message).await?;
        self.contents().forget(message);
        for _ in 0..TRIES {
            let deliveries = self.store().deliveries(message).await?;
            let waiting: Vec<_> = deliveries.iter().filter_map(|delivery| cancel(app, delivery)).collect();
            if self.end(&waiting).await? {
                break;
            }
        }
        Ok(())
    }

    /// Deletes the response of an attempt.
    pub async fn expunge_attempt(
        &self,
        actor: &Arc<Actor>,
        app: AppId,
        (message, attempt): (MessageId, AttemptId),
    ) -> Result<(), ChangeError> {
        self.directory().by(actor).expunge_attempt(app, message, attempt).await
    }

    /// Ends the pending deliveries. `false`: some of them have changed meanwhile.
    async fn end(&self, waiting: &[Cancel]) -> Result<bool, Error> {
        let mut settled = true;
        for slice in waiting.chunks(SLICE) {
            match self.cancel_as(None, slice.to_vec(), Reason::PayloadDeleted).await {
                Ok(fates) => settled &= !fates.contains(&Cancelled::Changed),
                Err(Error::Closed) => return Err(Error::Closed),
                // The payload is deleted: the rest ends when it is selected.
                Err(error) => {
                    tracing::warn!(%error, "deliveries without a payload will end at their turns");
                }
            }
        }
        Ok(settled)
    }
}

fn cancel(app: AppId, delivery: &DeliveryStatus) -> Option<Cancel> {
    Some(Cancel { app, endpoint: delivery.endpoint, pending: delivery.waiting()? })
}
