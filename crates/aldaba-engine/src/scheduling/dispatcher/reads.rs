//! What lanes read from the store: their endpoints and their refills.

use super::{Dispatcher, RETRY_DELAY, SchedulingEvent};
use crate::delivering::Target;
use crate::housekeeping::background;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{DueQuery, Error, LaneTarget, Read};

/// Endpoints of one read, so that a read neither lasts long nor delays others.
const MAX_ENDPOINTS_PER_READ: usize = 100;

impl Dispatcher {
    pub(super) fn read_endpoints(&self, endpoints: &[EndpointId]) {
        for slice in endpoints.chunks(MAX_ENDPOINTS_PER_READ) {
            let (store, inbox, slice) = (self.store.clone(), self.inbox.clone(), slice.to_vec());
            let background = self.background.clone();
            tokio::spawn(async move {
                let read = || until_read(|| store.lane_targets(slice.clone()));
                if let Some(found) = background.supervised(background::LANE_READS, read).await {
                    inbox.send(SchedulingEvent::EndpointsRead(slice, found));
                }
            });
        }
    }

    pub(super) fn endpoints_read(&mut self, requested: &[EndpointId], found: &[LaneTarget], now: Timestamp) {
        for LaneTarget { endpoint, app_rate } in found {
            let (policies, profiles) = (&self.policies, &self.profiles);
            let target = Target::of_lane(endpoint, *app_rate, policies, profiles, &self.vault);
            self.scheduler.endpoint_read(endpoint.id, target, endpoint.health.clone(), now);
        }
        let exists = |id: &EndpointId| found.iter().any(|found| found.endpoint.id == *id);
        for id in requested.iter().filter(|id| !exists(id)) {
            tracing::error!(endpoint = %id, "deliveries wait for an endpoint that has no row");
            self.scheduler.endpoint_missing(*id, now);
        }
    }

    pub(super) fn refill(&self, query: DueQuery) {
        let (store, inbox, background) = (self.store.clone(), self.inbox.clone(), self.background.clone());
        tokio::spawn(async move {
            let read = || until_read(|| store.due(query));
            if let Some(rows) = background.supervised(background::LANE_READS, read).await {
                inbox.send(SchedulingEvent::LaneRefilled(query, rows));
            }
        });
    }
}

/// Repeats a read until it succeeds. `None`: the store has closed.
async fn until_read<T>(read: impl Fn() -> Read<T>) -> Option<T> {
    loop {
        match read().await {
            Ok(value) => return Some(value),
            Err(Error::Closed) => return None,
            Err(error) => {
                tracing::warn!(%error, "cannot read from the store; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}
