//! The limit on requests in flight to one origin, for each organization.
//!
//! It is divided by the rules of the overall limit ([`Shares`]), with every application in the role of an organization. A request
//! counts from its selection until its answer, not until its record. Nothing is kept for an origin without requests in flight
//! and waiting lanes.

use super::Scheduler;
use super::fair_queue::FairScope;
use super::shares::{CapacityCheck, LaneOwner, Shares};
use crate::scheduling::lane::{FixedMap, LaneClass, LaneEvent, LaneState};
use aldaba_delivery::{AppId, EndpointId, OrgId, Origin};
use aldaba_store::Seq;

/// The requests of one organization to one origin: organizations do not affect each other.
pub(super) type OriginKey = (OrgId, Origin);

pub(super) struct Origins {
    limit: usize,
    of: FixedMap<OriginKey, Box<Shares>>,
    /// Requests in flight.
    requests: FixedMap<Seq, OriginKey>,
    /// Slots that were granted to lanes and are not used yet.
    slots: FixedMap<EndpointId, OriginSlot>,
    /// The queue with an entry of a lane, and the class of the entry. Entries of lanes that no longer wait are skipped.
    queued: FixedMap<EndpointId, (OriginKey, LaneClass)>,
}

/// A slot that a lane has or wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OriginSlot {
    pub(super) key: OriginKey,
    pub(super) app: AppId,
    pub(super) lane_class: LaneClass,
}

impl Origins {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            of: FixedMap::default(),
            requests: FixedMap::default(),
            slots: FixedMap::default(),
            queued: FixedMap::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.requests.is_empty() && self.slots.is_empty() && self.queued.is_empty()
    }

    /// Whether a lane of an application may have one more request in flight to an origin.
    pub(super) fn may_have(&self, key: &OriginKey, app: AppId, lane_class: LaneClass) -> bool {
        self.of.get(key).is_none_or(|shares| shares.check(alone(app), lane_class) == CapacityCheck::Available)
    }

    /// A request is sent now.
    pub(super) fn take(&mut self, seq: Seq, OriginSlot { key, app, lane_class }: &OriginSlot) {
        self.shares(key).take(seq, alone(*app), *lane_class);
        self.requests.insert(seq, key.clone());
    }

    /// A request has left the wire. Returns its origin and its application.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<(OriginKey, AppId)> {
        let key = self.requests.remove(&seq)?;
        let app = self.of.get_mut(&key)?.give_back(seq)?;
        self.forget_idle(&key);
        Some((key, app))
    }

    pub(super) fn slot_of(&self, endpoint: EndpointId) -> Option<&OriginSlot> {
        if self.slots.is_empty() { None } else { self.slots.get(&endpoint) }
    }

    /// Reserves a slot for a lane until its selection.
    pub(super) fn grant_slot(&mut self, endpoint: EndpointId, slot: OriginSlot) {
        self.shares(&slot.key).grant_slot(alone(slot.app), slot.lane_class);
        self.slots.insert(endpoint, slot);
    }

    pub(super) fn release_slot(&mut self, endpoint: EndpointId) -> Option<OriginSlot> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = self.slots.remove(&endpoint)?;
        if let Some(shares) = self.of.get_mut(&slot.key) {
            shares.release_slot(slot.app, slot.lane_class);
        }
        self.forget_idle(&slot.key);
        Some(slot)
    }

    /// Adds a lane to the queue of an origin. A lane that still has an entry there keeps it.
    pub(super) fn enqueue_lane(
        &mut self,
        endpoint: EndpointId,
        OriginSlot { key, app, lane_class }: OriginSlot,
    ) {
        let has_entry =
            |(queue, queued_as): &(OriginKey, LaneClass)| *queue == key && *queued_as == lane_class;
        if !self.queued.get(&endpoint).is_some_and(has_entry) {
            self.shares(&key).enqueue_lane(alone(app), lane_class, endpoint);
            self.queued.insert(endpoint, (key, lane_class));
        }
    }

    /// Takes the next lane that may have a slot from the queue of an origin: of all lanes, or of one application.
    pub(super) fn next(&mut self, key: &OriginKey, app: Option<AppId>) -> Option<EndpointId> {
        let shares = self.of.get_mut(key)?;
        let scope = app.map_or(FairScope::All, FairScope::Application);
        while let Some(endpoint) = shares.next(scope) {
            // The lane may wait elsewhere by now.
            if self.queued.get(&endpoint).is_some_and(|(queue, _)| queue == key) {
                self.queued.remove(&endpoint);
                return Some(endpoint);
            }
        }
        self.forget_idle(key);
        None
    }

    fn shares(&mut self, key: &OriginKey) -> &mut Shares {
        if !self.of.contains_key(key) {
            self.of.insert(key.clone(), Box::new(Shares::new(self.limit)));
        }
        self.of.get_mut(key).expect("it was just inserted")
    }

    fn forget_idle(&mut self, key: &OriginKey) {
        if self.of.get(key).is_some_and(|shares| shares.is_idle()) {
            self.of.remove(key);
        }
    }
}

impl Scheduler {
    /// Takes back the origin slot that a lane was granted and has not used, if it has one. The next waiting lane may have it.
    pub(super) fn release_origin_slot(&mut self, endpoint: EndpointId) {
        if let Some(OriginSlot { key, app, .. }) = self.origins.release_slot(endpoint) {
            self.grant_freed_at_origin(&key, app);
        }
    }

    /// An application has returned an origin slot. It goes to the next of all lanes that wait there. If only the application's
    /// share was used up, its next lane may get one too.
    pub(super) fn grant_freed_at_origin(&mut self, key: &OriginKey, app: AppId) {
        for of_app in [None, Some(app)] {
            while let Some(endpoint) = self.origins.next(key, of_app)
                && !self.grant_origin_slot(endpoint, key)
            {}
        }
    }

    /// Grants a lane a slot at its origin and one of the overall limit. `false`: it no longer waits, or may not have them.
    fn grant_origin_slot(&mut self, endpoint: EndpointId, key: &OriginKey) -> bool {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        if !matches!(lane.state, LaneState::AwaitsOrigin(_)) {
            return false;
        }
        // An idle lane does not know its organization, but its queue does. Its class may have changed since it began to wait.
        let (owner, lane_class) = (LaneOwner { app: lane.app, org: Some(key.0) }, lane.pace.lane_class());
        let slot = OriginSlot { key: key.clone(), app: owner.app, lane_class };
        if !self.origins.may_have(key, owner.app, lane_class) {
            lane.transition(LaneEvent::LacksOrigin(lane_class));
            self.origins.enqueue_lane(endpoint, slot);
            return false;
        }
        match self.shares.check(owner, lane_class) {
            CapacityCheck::Available => lane.slot = Some(self.shares.grant_slot(owner, lane_class)),
            // All lanes wait: it keeps its origin slot until it is selected.
            CapacityCheck::Full => {}
            CapacityCheck::ShareUsed => {
                self.await_share(endpoint, owner, lane_class);
                return false;
            }
        }
        lane.transition(LaneEvent::Released);
        self.origins.grant_slot(endpoint, slot);
        self.wake(endpoint);
        true
    }
}

/// At an origin there is one organization only, and applications take the role of organizations.
fn alone(app: AppId) -> LaneOwner {
    LaneOwner { app, org: Some(OrgId::from_bytes(*app.as_bytes())) }
}
