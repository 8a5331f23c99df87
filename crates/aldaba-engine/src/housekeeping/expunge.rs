//! Deleting what a message says, or what came back, for good.
//!
//! The payload goes in one commit. What waits of the message has nothing left to send: it ends at once, in the dead
//! letter, with its reason. If the server stops in between, each of them ends at its turn, when its payload is looked
//! for. An attempt that is on the wire is let go its way.

use crate::scheduling::{Cancel, Cancelled};
use crate::{ChangeError, Engine};
use aldaba_delivery::{AppId, AttemptId, MessageId, Reason};
use aldaba_store::{Actor, DeliveryStatus, Error};
use std::sync::Arc;

/// How many deliveries are ended in one commit.
const SLICE: usize = 250;
/// How often deliveries are read again that keep changing.
const TRIES: usize = 8;

impl Engine {
    /// Deletes the payload of a message. When this returns, nothing of it leaves any more, but for requests that
    /// were on the wire already.
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

    /// Deletes what came back to an attempt.
    pub async fn expunge_attempt(
        &self,
        actor: &Arc<Actor>,
        app: AppId,
        (message, attempt): (MessageId, AttemptId),
    ) -> Result<(), ChangeError> {
        self.directory().by(actor).expunge_attempt(app, message, attempt).await
    }

    /// Ends what waits; `false`: some of it has changed meanwhile.
    async fn end(&self, waiting: &[Cancel]) -> Result<bool, Error> {
        let mut settled = true;
        for slice in waiting.chunks(SLICE) {
            match self.cancel_as(None, slice.to_vec(), Reason::PayloadDeleted).await {
                Ok(fates) => settled &= !fates.contains(&Cancelled::Changed),
                Err(Error::Closed) => return Err(Error::Closed),
                // The payload is gone, and its lanes have let go of it: what is left ends at its turn.
                Err(error) => {
                    tracing::warn!(%error, "deliveries without a payload will end at their turns");
                }
            }
        }
        Ok(settled)
    }
}

fn cancel(app: AppId, delivery: &DeliveryStatus) -> Option<Cancel> {
    Some(Cancel { app, endpoint: delivery.endpoint, waiting: delivery.waiting()? })
}
