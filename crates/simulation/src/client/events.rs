//! Events are sent, to an application or to an address.

use super::{Client, OrderOutcome, once};
use crate::scenario::{EventPlan, url};
use aldaba_engine::{
    DispatchError, EndpointHeaders, EventTrace, NewDispatch, NewEvent, SendError, SendReceipt,
};
use aldaba_store::Error;

impl Client {
    pub(super) async fn send(&self, event: &EventPlan) -> OrderOutcome {
        let name = event.number;
        let padding = ".".repeat(event.padding);
        let new = NewEvent {
            event_type: event.event_type.into(),
            payload: format!(r#"{{"event":{name},"padding":"{padding}"}}"#).into(),
            version: None,
            channels: event.channels.clone(),
            tags: Vec::new(),
            headers: Vec::new(),
            event_id: event.has_event_id.then(|| format!("event-{name}").into()),
            deliver_at: event.deliver_at,
            payload_kept: event.payload_kept,
            direct: None,
            source: None,
            only_for: None,
            trace: EventTrace::default(),
            once: if event.has_key { once("send", name) } else { None },
        };
        let which = self.which(event.tenant);
        let sent = match event.address {
            None => self.engine.send(&which, new).await,
            Some(door) => match self.engine.dispatch(&which, self.dispatch(door, new)).await {
                Ok((sent, _)) => Ok(sent),
                Err(DispatchError::Send(error)) => Err(error),
                Err(error) => {
                    self.world
                        .notes
                        .lock()
                        .surprises
                        .push(format!("event {name} was answered with `{error}`"));
                    return OrderOutcome::Done;
                }
            },
        };
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        let now = self.process.now();
        self.world.log.lock().note(now, || format!("event {name}: {sent:?}"));
        let mut notes = self.world.notes.lock();
        match sent {
            Ok(SendReceipt::New { message, .. } | SendReceipt::Repeated { message }) => {
                notes.accepted.entry(name).or_default().push(message);
                OrderOutcome::Done
            }
            Err(SendError::EventIdTaken(message)) if event.has_event_id => {
                notes.accepted.entry(name).or_default().push(message);
                OrderOutcome::Done
            }
            Err(SendError::Store(Error::Busy | Error::Full | Error::Timeout) | SendError::Unsettled) => {
                OrderOutcome::Refused
            }
            Err(SendError::Late | SendError::Store(Error::Closed)) => OrderOutcome::Unknown,
            Err(SendError::NotFound) if self.world.scenario.departs(event.tenant) => OrderOutcome::Done,
            Err(error) => {
                notes.surprises.push(format!("event {name} was answered with `{error}`"));
                OrderOutcome::Done
            }
        }
    }

    fn dispatch(&self, number: usize, event: NewEvent) -> NewDispatch {
        let door = &self.world.scenario.doors[number];
        NewDispatch {
            url: url(number, door),
            credentials: None,
            policy: door.policy.into(),
            profile: None,
            key: Some(door.key.clone()),
            headers: EndpointHeaders::default(),
            job: (number.is_multiple_of(2)).then(|| format!("job-{number}")),
            event,
        }
    }
}
