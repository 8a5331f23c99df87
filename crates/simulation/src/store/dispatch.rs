//! What was dispatched.

use super::SimStore;
use super::disk::Disk;
use super::lists::walk;
use aldaba_delivery::{AppId, MessageId};
use aldaba_store::{Dispatch, Dispatched, Dispatches, DispatchesQuery, Found, Message, Read};

impl Dispatches for SimStore {
    fn dispatches(&self, query: DispatchesQuery) -> Read<Found<Dispatch, MessageId>> {
        self.read(move |disk| disk.dispatches(&query))
    }

    fn dispatch(&self, app: AppId, message: MessageId) -> Read<Option<Dispatch>> {
        self.read(move |disk| disk.messages.get(&(app, message)).and_then(|found| disk.dispatch(found)))
    }
}

impl Disk {
    fn dispatch(&self, message: &Message) -> Option<Dispatch> {
        let rows = self.deliveries(message.id).into_iter();
        let only_for = message.only_for?;
        let endpoint = self.endpoints.get(&only_for).filter(|endpoint| endpoint.direct)?;
        let row = rows.rev().find(|row| row.endpoint == only_for)?;
        Some(Dispatch {
            delivery: self.view(message.app, &row),
            message: super::expunge::readable(message),
            url: endpoint.config.url.clone(),
            policy: endpoint.config.policy.clone(),
        })
    }

    fn dispatches(&self, query: &DispatchesQuery) -> Found<Dispatch, MessageId> {
        let wanted = |message: &Message| {
            let how = if message.job.is_some() { Dispatched::AsJob } else { Dispatched::ByAddress };
            let of_job = query.job.is_none() || query.job == message.job;
            let dispatch = self.dispatch(message).filter(|_| how == query.how && of_job)?;
            let size = message.content.bytes();
            query.wants(dispatch.delivery.status.state).then_some((dispatch, size))
        };
        let messages = self.messages.values().filter(|message| message.app == query.app);
        walk(messages, &query.part, |message| (message.id, message.created_at), query.bytes, wanted)
    }
}
