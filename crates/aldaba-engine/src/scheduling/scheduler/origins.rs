//! The cap on requests in flight to one origin, for each organization: who may have how much of it, and who waits for it.
//!
//! It is shared by the rules of the overall cap ([`Shares`]), with every application in the place of an organization. A request
//! has its place from its turn until its answer; waiting for the record holds none. Nothing is kept for an origin where
//! nothing is in flight and nobody waits.

use super::Scheduler;
use super::fair_queue::FairScope;
use super::shares::{CapacityCheck, LaneOwner, Shares};
use crate::scheduling::lane::{FixedMap, LaneClass, LaneState};
use aldaba_delivery::{AppId, EndpointId, OrgId, Origin};
use aldaba_store::Seq;

/// One organization's requests to one origin: what an organization does binds no other.
pub(super) type OriginKey = (OrgId, Origin);

pub(super) struct Origins {
    cap: usize,
    of: FixedMap<OriginKey, Box<Shares>>,
    /// Requests that are on the wire, or about to be.
    requests: FixedMap<Seq, OriginKey>,
    /// Places that lanes were given and have not used yet.
    slot: FixedMap<EndpointId, OriginSlot>,
    /// In whose line a lane stands, and as what. One that has left it before its turn is passed over there.
    lined_up: FixedMap<EndpointId, (OriginKey, LaneClass)>,
}

/// A place that a lane has or wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OriginSlot {
    pub(super) key: OriginKey,
    pub(super) app: AppId,
    pub(super) lane_class: LaneClass,
}

impl Origins {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            cap,
            of: FixedMap::default(),
            requests: FixedMap::default(),
            slot: FixedMap::default(),
            lined_up: FixedMap::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.requests.is_empty() && self.slot.is_empty() && self.lined_up.is_empty()
    }

    /// Whether a lane of an application may have one more request in flight there.
    pub(super) fn may_have(&self, key: &OriginKey, app: AppId, lane_class: LaneClass) -> bool {
        self.of.get(key).is_none_or(|shares| shares.leave(alone(app), lane_class) == CapacityCheck::Available)
    }

    /// A request is about to leave.
    pub(super) fn take(&mut self, seq: Seq, OriginSlot { key, app, lane_class }: &OriginSlot) {
        self.shares(key).take(seq, alone(*app), *lane_class);
        self.requests.insert(seq, key.clone());
    }

    /// A request has left the wire. Returns where a place has come free, and whose it was.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<(OriginKey, AppId)> {
        let key = self.requests.remove(&seq)?;
        let app = self.of.get_mut(&key)?.give_back(seq)?;
        self.forget_idle(&key);
        Some((key, app))
    }

    pub(super) fn slot_of(&self, endpoint: EndpointId) -> Option<&OriginSlot> {
        if self.slot.is_empty() { None } else { self.slot.get(&endpoint) }
    }

    /// Holds a place for a lane until its turn.
    pub(super) fn grant_slot(&mut self, endpoint: EndpointId, slot: OriginSlot) {
        self.shares(&slot.key).grant_slot(alone(slot.app), slot.lane_class);
        self.slot.insert(endpoint, slot);
    }

    pub(super) fn release_slot(&mut self, endpoint: EndpointId) -> Option<OriginSlot> {
        if self.slot.is_empty() {
            return None;
        }
        let slot = self.slot.remove(&endpoint)?;
        if let Some(shares) = self.of.get_mut(&slot.key) {
            shares.release_slot(slot.app, slot.lane_class);
        }
        self.forget_idle(&slot.key);
        Some(slot)
    }

    /// A lane waits until a place has come free that it may have. One that still stands in the line keeps its turn there.
    pub(super) fn park(&mut self, endpoint: EndpointId, OriginSlot { key, app, lane_class }: OriginSlot) {
        let stands_there =
            |(in_line, lined_up_as): &(OriginKey, LaneClass)| *in_line == key && *lined_up_as == lane_class;
        if !self.lined_up.get(&endpoint).is_some_and(stands_there) {
            self.shares(&key).park(alone(app), lane_class, endpoint);
            self.lined_up.insert(endpoint, (key, lane_class));
        }
    }

    /// The next lane that may have a place now: of all that wait there, or of an application. It has left the line.
    pub(super) fn next(&mut self, key: &OriginKey, app: Option<AppId>) -> Option<EndpointId> {
        let shares = self.of.get_mut(key)?;
        let line = app.map_or(FairScope::All, FairScope::Application);
        while let Some(endpoint) = shares.next(line) {
            // It may stand in another line by now.
            if self.lined_up.get(&endpoint).is_some_and(|(in_line, _)| in_line == key) {
                self.lined_up.remove(&endpoint);
                return Some(endpoint);
            }
        }
        self.forget_idle(key);
        None
    }

    fn shares(&mut self, key: &OriginKey) -> &mut Shares {
        if !self.of.contains_key(key) {
            self.of.insert(key.clone(), Box::new(Shares::new(self.cap)));
        }
        self.of.get_mut(key).expect("it was just put there")
    }

    fn forget_idle(&mut self, key: &OriginKey) {
        if self.of.get(key).is_some_and(|shares| shares.is_idle()) {
            self.of.remove(key);
        }
    }
}

impl Scheduler {
    /// Gives the place at its origin back that a lane was given and has not used, if there is one. The next that waits there
    /// may have it.
    pub(super) fn release_origin_slot(&mut self, endpoint: EndpointId) {
        if let Some(OriginSlot { key, app, .. }) = self.origins.release_slot(endpoint) {
            self.unpark_origin(&key, app);
        }
    }

    /// A place at an origin has come free, which an application had. It goes to the next of all that wait there; and where it
    /// was the application's own share that was too small, its next lane may have one beside.
    pub(super) fn unpark_origin(&mut self, key: &OriginKey, app: AppId) {
        for of_app in [None, Some(app)] {
            while let Some(endpoint) = self.origins.next(key, of_app)
                && !self.give_origin_place(endpoint, key)
            {}
        }
    }

    /// Gives a lane that waits at an origin a place there and one of the overall cap, to be used in its next turn. `false`: it no
    /// longer waits, or may not have them.
    fn give_origin_place(&mut self, endpoint: EndpointId, key: &OriginKey) -> bool {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        if !matches!(lane.place, LaneState::AwaitsOrigin(_)) {
            return false;
        }
        // A lane at rest does not know its organization, but its line does. The lane_class is not always the one with which it was
        // parked.
        let (owner, lane_class) = (LaneOwner { app: lane.app, org: Some(key.0) }, lane.pace.lane_class());
        let slot = OriginSlot { key: key.clone(), app: owner.app, lane_class };
        if !self.origins.may_have(key, owner.app, lane_class) {
            lane.place = LaneState::AwaitsOrigin(lane_class);
            self.origins.park(endpoint, slot);
            return false;
        }
        match self.shares.leave(owner, lane_class) {
            CapacityCheck::Available => lane.slot = Some(self.shares.grant_slot(owner, lane_class)),
            // All wait: it keeps the place at its origin until its turn comes.
            CapacityCheck::Full => {}
            CapacityCheck::ShareUsed => {
                self.park(endpoint, owner, lane_class);
                return false;
            }
        }
        lane.place = LaneState::Waiting;
        self.origins.grant_slot(endpoint, slot);
        self.wake(endpoint);
        true
    }
}

/// At an origin there is one organization only, and applications share as organizations do elsewhere.
fn alone(app: AppId) -> LaneOwner {
    LaneOwner { app, org: Some(OrgId::from_bytes(*app.as_bytes())) }
}
