//! Forwards an event of a source again when its sender repeats it after a failed forwarding.

use super::{Intake, NewEvent, SendError};
use crate::scheduling::{QueuedDelivery, SchedulingEvent};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_store::{ApplicationRef, Done, Error, EventState, PendingDelivery, ReopenEvent};
use tokio::sync::oneshot;

impl Intake {
    /// Opens new rounds of an event. `true`: rounds were opened, are on disk, and will be sent. A crash before the commit
    /// leaves the event as it was, and the sender without an answer.
    pub(crate) async fn reopen(
        &self,
        which: &ApplicationRef,
        message: MessageId,
        event: &NewEvent,
    ) -> Result<bool, SendError> {
        let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
        let app = tenant.application.id;
        // Most repeated events have not failed. They cost no write.
        let found = self.store.source_event(app, message.to_string()).await?;
        if found.is_none_or(|event| event.state() != EventState::Failed) {
            return Ok(false);
        }
        let now = self.clock.now();
        let wanting = self.match_one(&tenant, event, now).await;
        let wanting = wanting.iter().filter(|new| new.skipped.is_none()).map(|new| new.endpoint).collect();
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let done = Done::new(move |result: Result<Vec<(EndpointId, PendingDelivery)>, Error>| {
            // Lanes are told in the order of the commits.
            if let Ok(opened) = &result
                && !opened.is_empty()
            {
                let offer =
                    |&(endpoint, waiting)| QueuedDelivery { endpoint, pending: waiting, content: None };
                inbox.send(SchedulingEvent::Accepted(app, opened.iter().map(offer).collect()));
            }
            let _ = answer.send(result);
        });
        self.store
            .reopen_event(ReopenEvent { org: tenant.application.org, app, message, wanting, now }, done);
        let opened = answered.await.map_err(|_| Error::Closed)??;
        Ok(!opened.is_empty())
    }
}
