//! Manual attempts.

use super::operators::pending;
use super::{Client, OrderOutcome, once};
use crate::log::Resend;
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_engine::{ManualAttempt, NewResend, ResendError};
use aldaba_store::{DeliveriesQuery, DeliveryFilter, Error};

impl Client {
    /// One of those that wait for an endpoint, if there is one.
    pub(super) async fn resend(&self, door: usize) -> OrderOutcome {
        let Some((app, id)) = self.known(door) else {
            return self.not_known(door);
        };
        let store = self.engine.store();
        let filter = DeliveryFilter { endpoint: Some(id), ..DeliveryFilter::default() };
        let query = DeliveriesQuery { filter, ..pending(app) };
        let (found, endpoint) = match (store.delivery_list(query).await, store.lane_endpoints(vec![id]).await)
        {
            (Ok(page), Ok(mut endpoints)) => (page.found, endpoints.pop()),
            (Err(Error::Closed), _) | (_, Err(Error::Closed)) => return OrderOutcome::Unknown,
            _ => return OrderOutcome::Refused,
        };
        let (Some((_, view)), Some(endpoint)) = (found.first(), endpoint) else {
            return OrderOutcome::Done;
        };
        let Ok(Some(message)) = store.message(app, view.status.message.to_string()).await else {
            return OrderOutcome::Refused;
        };
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        let index = self.note_resend(door, id, message.id);
        let once = once("resend", index);
        let asked = NewResend { endpoint, message, audit: self.entry("message.resend"), once };
        let made = self.engine.resend(asked.clone()).await;
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        {
            let mut log = self.world.log.lock();
            log.note(self.process.now(), || format!("resend: {made:?}"));
            log.resends[index].answered = Some((log.step(), made.is_ok()));
        }
        if made.is_ok() {
            self.resend_again(asked).await;
        }
        match made {
            Err(ResendError::Store(Error::Closed)) => OrderOutcome::Unknown,
            Err(ResendError::Store(_)) => OrderOutcome::Refused,
            _ => OrderOutcome::Done,
        }
    }

    /// What was answered is on disk with its key: nothing is sent for the same key again.
    async fn resend_again(&self, asked: NewResend) {
        let again = self.engine.resend(asked).await;
        if !self.process.is_dead()
            && !matches!(again, Ok(ManualAttempt::Repeated(_)) | Err(ResendError::Store(_)))
        {
            let surprise = format!("a resend that was made before was answered with {again:?}");
            self.world.notes.lock().surprises.push(surprise);
        }
    }

    fn note_resend(&self, door: usize, endpoint: EndpointId, message: MessageId) -> usize {
        let mut log = self.world.log.lock();
        let (life, asked) = (self.process.number, log.step());
        log.note(self.process.now(), || format!("resend {message} to door {door}"));
        log.resends.push(Resend { life, door, endpoint, message, asked, answered: None });
        log.resends.len() - 1
    }
}
