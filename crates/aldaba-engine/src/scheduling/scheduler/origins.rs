//! The cap on requests in flight to one origin, for each organization: who may have how much of it, and who waits for it.
//!
//! It is shared by the rules of the overall cap ([`Shares`]), with every application in the place of an organization. A request
//! has its place from its turn until its answer; waiting for the record holds none. Nothing is kept for an origin where
//! nothing is in flight and nobody waits.

use super::Turns;
use super::lines::Line;
use super::shares::{Leave, Owner, Shares};
use crate::scheduling::lane::{FixedMap, Place, Standing};
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
    claims: FixedMap<EndpointId, OriginClaim>,
    /// In whose line a lane stands, and as what. One that has left it before its turn is passed over there.
    lined_up: FixedMap<EndpointId, (OriginKey, Standing)>,
}

/// A place that a lane has or wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OriginClaim {
    pub(super) key: OriginKey,
    pub(super) app: AppId,
    pub(super) standing: Standing,
}

impl Origins {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            cap,
            of: FixedMap::default(),
            requests: FixedMap::default(),
            claims: FixedMap::default(),
            lined_up: FixedMap::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.requests.is_empty() && self.claims.is_empty() && self.lined_up.is_empty()
    }

    /// Whether a lane of an application may have one more request in flight there.
    pub(super) fn may_have(&self, key: &OriginKey, app: AppId, standing: Standing) -> bool {
        self.of.get(key).is_none_or(|shares| shares.leave(alone(app), standing) == Leave::Yes)
    }

    /// A request is about to leave.
    pub(super) fn take(&mut self, seq: Seq, OriginClaim { key, app, standing }: &OriginClaim) {
        self.shares(key).take(seq, alone(*app), *standing);
        self.requests.insert(seq, key.clone());
    }

    /// A request has left the wire. Returns where a place has come free, and whose it was.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<(OriginKey, AppId)> {
        let key = self.requests.remove(&seq)?;
        let app = self.of.get_mut(&key)?.give_back(seq)?;
        self.forget_idle(&key);
        Some((key, app))
    }

    pub(super) fn claim_of(&self, endpoint: EndpointId) -> Option<&OriginClaim> {
        if self.claims.is_empty() { None } else { self.claims.get(&endpoint) }
    }

    /// Holds a place for a lane until its turn.
    pub(super) fn claim(&mut self, endpoint: EndpointId, claim: OriginClaim) {
        self.shares(&claim.key).claim(alone(claim.app), claim.standing);
        self.claims.insert(endpoint, claim);
    }

    pub(super) fn unclaim(&mut self, endpoint: EndpointId) -> Option<OriginClaim> {
        if self.claims.is_empty() {
            return None;
        }
        let claim = self.claims.remove(&endpoint)?;
        if let Some(shares) = self.of.get_mut(&claim.key) {
            shares.unclaim(claim.app, claim.standing);
        }
        self.forget_idle(&claim.key);
        Some(claim)
    }

    /// A lane waits until a place has come free that it may have. One that still stands in the line keeps its turn there.
    pub(super) fn park(&mut self, endpoint: EndpointId, OriginClaim { key, app, standing }: OriginClaim) {
        let stands_there =
            |(in_line, lined_up_as): &(OriginKey, Standing)| *in_line == key && *lined_up_as == standing;
        if !self.lined_up.get(&endpoint).is_some_and(stands_there) {
            self.shares(&key).park(alone(app), standing, endpoint);
            self.lined_up.insert(endpoint, (key, standing));
        }
    }

    /// The next lane that may have a place now: of all that wait there, or of an application. It has left the line.
    pub(super) fn next(&mut self, key: &OriginKey, app: Option<AppId>) -> Option<EndpointId> {
        let shares = self.of.get_mut(key)?;
        let line = app.map_or(Line::All, Line::Application);
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

impl Turns {
    /// Gives the place at its origin back that a lane was given and has not used, if there is one. The next that waits there
    /// may have it.
    pub(super) fn unclaim_origin(&mut self, endpoint: EndpointId) {
        if let Some(OriginClaim { key, app, .. }) = self.origins.unclaim(endpoint) {
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
        if !matches!(lane.place, Place::AtOrigin(_)) {
            return false;
        }
        // A lane at rest does not know its organization, but its line does. The standing is not always the one with which it was
        // parked.
        let (owner, standing) = (Owner { app: lane.app, org: Some(key.0) }, lane.pace.standing());
        let claim = OriginClaim { key: key.clone(), app: owner.app, standing };
        if !self.origins.may_have(key, owner.app, standing) {
            lane.place = Place::AtOrigin(standing);
            self.origins.park(endpoint, claim);
            return false;
        }
        match self.shares.leave(owner, standing) {
            Leave::Yes => lane.claims = Some(self.shares.claim(owner, standing)),
            // All wait: it keeps the place at its origin until its turn comes.
            Leave::Full => {}
            Leave::Share => {
                self.park(endpoint, owner, standing);
                return false;
            }
        }
        lane.place = Place::Nowhere;
        self.origins.claim(endpoint, claim);
        self.wake(endpoint);
        true
    }
}

/// At an origin there is one organization only, and applications share as organizations do elsewhere.
fn alone(app: AppId) -> Owner {
    Owner { app, org: Some(OrgId::from_bytes(*app.as_bytes())) }
}
