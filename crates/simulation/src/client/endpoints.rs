//! Owners of endpoints make, change and delete them.

use super::{Client, OrderOutcome, once};
use crate::scenario::{Door, url};
use aldaba_delivery::{AppId, EndpointId, Filter, Ordering, WhenDisabled};
use aldaba_engine::{ChangeError, CreateOutcome, NewEndpoint};
use aldaba_store::{Endpoint, EndpointConfig};
use std::sync::Arc;

impl Client {
    pub(super) async fn create_endpoint(&self, number: usize, door: &Door) -> Result<(), ChangeError> {
        let new = self.new_endpoint(number, door, false, door.ordering);
        let which = self.which(door.tenant);
        let made = self.directory().create_endpoint(which, new, once("door", number)).await?;
        let (CreateOutcome::Created(endpoint) | CreateOutcome::Existing(endpoint)) = made;
        if !self.process.is_dead() {
            self.world.notes.lock().endpoints.insert(number, (endpoint.app, endpoint.id));
        }
        Ok(())
    }

    pub(super) async fn change_ordering(
        &self,
        door: usize,
        ordering: Ordering,
    ) -> Result<OrderOutcome, OrderOutcome> {
        let current = self.current_endpoint(door).await?;
        let new =
            self.new_endpoint(door, &self.world.scenario.doors[door], current.config.disabled, ordering);
        Ok(match self.directory().update_endpoint(&current, new, None, false).await {
            Err(ChangeError::NotFound | ChangeError::NotOrderable(_)) => OrderOutcome::Done,
            Err(ChangeError::Unsettled) => OrderOutcome::Refused,
            other => self.changed(other.map(drop)),
        })
    }

    pub(super) async fn set_disabled(
        &self,
        number: usize,
        disabled: bool,
    ) -> Result<OrderOutcome, OrderOutcome> {
        let current = self.current_endpoint(number).await?;
        let door = &self.world.scenario.doors[number];
        let new = self.new_endpoint(number, door, disabled, current.config.ordering);
        Ok(match self.directory().update_endpoint(&current, new, None, !disabled).await {
            Err(ChangeError::NotFound) => OrderOutcome::Done,
            Err(ChangeError::Unsettled) => OrderOutcome::Refused,
            other => self.changed(other.map(drop)),
        })
    }

    pub(super) async fn resume(&self, door: usize) -> Result<OrderOutcome, OrderOutcome> {
        let endpoint = self.current_endpoint(door).await?;
        Ok(match self.directory().resume_and_recover(&endpoint, 50, once("resume", door)).await {
            Err(ChangeError::NotFound | ChangeError::TurnedOff) => OrderOutcome::Done,
            other => self.changed(other.map(drop)),
        })
    }

    pub(super) async fn delete_endpoint(&self, door: usize) -> Result<OrderOutcome, OrderOutcome> {
        let endpoint = self.current_endpoint(door).await?;
        Ok(match self.directory().delete_endpoint(&endpoint).await {
            // An earlier request had done it, and its answer was lost.
            Err(ChangeError::NotFound) => OrderOutcome::Done,
            other => self.changed(other),
        })
    }

    /// `Err`: what to answer.
    async fn current_endpoint(&self, door: usize) -> Result<Endpoint, OrderOutcome> {
        let Some((app, id)) = self.known(door) else { return Err(self.not_known(door)) };
        match self.engine.store().endpoint(app, id.to_string()).await {
            Ok(Some(endpoint)) => Ok(endpoint),
            // It was deleted meanwhile, or by an earlier request whose answer was lost.
            Ok(None) => Err(OrderOutcome::Done),
            Err(error) => Err(self.changed(Err(error.into()))),
        }
    }

    fn new_endpoint(&self, number: usize, door: &Door, disabled: bool, ordering: Ordering) -> NewEndpoint {
        let config = EndpointConfig {
            disabled,
            when_disabled: if door.holds { WhenDisabled::Hold } else { WhenDisabled::Skip },
            event_types: door.event_types.clone(),
            channels: door.channels.clone(),
            filter: door
                .filter
                .map(|text| Arc::new(Filter::parse(text).expect("a scenario's filter is good"))),
            throttle_rate: door.throttle_rate,
            profile: door.profile.map(Into::into),
            ordering,
            ..EndpointConfig::new(url(number, door), door.policy)
        };
        NewEndpoint { key: Some(door.key.clone()), ..config.into() }
    }

    pub(super) fn known(&self, door: usize) -> Option<(AppId, EndpointId)> {
        self.world.notes.lock().endpoints.get(&door).copied()
    }

    /// It is still to be made, or its tenant has left before it could be.
    pub(super) fn not_known(&self, door: usize) -> OrderOutcome {
        let scenario = &self.world.scenario;
        if scenario.departs(scenario.doors[door].tenant) { OrderOutcome::Done } else { OrderOutcome::Refused }
    }
}
