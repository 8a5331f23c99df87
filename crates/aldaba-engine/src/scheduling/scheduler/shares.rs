//! Who may have how much of a cap on deliveries in flight: first every organization, then its applications. The overall cap
//! is shared so, and the cap of each origin (`origins.rs`).

use super::fair_queue::{FairQueue, FairScope};
use crate::scheduling::lane::{FixedMap, LaneClass, Slot};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use aldaba_store::Seq;
use std::ops::{AddAssign, SubAssign};

/// How many deliveries of lanes that are not known to answer quickly every application may have in
/// flight at least, in a cap that is large enough.
const MIN_UNPROVEN_PER_APPLICATION: usize = 8;

/// An organization may have so many times what is left free. Alone it comes to three quarters of what there is; two come to
/// three sevenths each; and however many want it, something is left for the next one.
const FREE_CAPACITY_FACTOR: usize = 3;

/// The deliveries in flight, and the lanes that wait for a place.
pub(super) struct Shares {
    flights: FixedMap<Seq, Flight>,
    counts: InFlightCounts,
    lines: FairQueue,
}

/// What is in flight, by the lane_class of its lanes and by whose it is. Places of lanes that were given one, and have not taken
/// a delivery yet, count as deliveries.
pub(super) struct InFlightCounts {
    cap: usize,
    all: InFlightCount,
    of_app: FixedMap<AppId, AppCount>,
    of_org: FixedMap<OrgId, InFlightCount>,
}

/// Whose a lane is. A lane at rest does not know its organization; what it has counts for that from when one of the
/// application's lanes says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneOwner {
    pub(crate) app: AppId,
    pub(crate) org: Option<OrgId>,
}

/// As it was when the delivery was taken.
#[derive(Clone, Copy)]
struct Flight {
    app: AppId,
    lane_class: LaneClass,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InFlightCount {
    all: usize,
    /// Of lanes that do not answer quickly, or are not known to.
    unproven: usize,
    /// Of those, of lanes that are known not to.
    slow: usize,
}

impl InFlightCount {
    fn one(lane_class: LaneClass) -> Self {
        let unproven = usize::from(lane_class != LaneClass::Responsive);
        Self { all: 1, unproven, slow: usize::from(lane_class == LaneClass::Slow) }
    }
}

impl AddAssign for InFlightCount {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.unproven += other.unproven;
        self.slow += other.slow;
    }
}

impl SubAssign for InFlightCount {
    fn sub_assign(&mut self, other: Self) {
        self.all -= other.all;
        self.unproven -= other.unproven;
        self.slow -= other.slow;
    }
}

#[derive(Default)]
struct AppCount {
    org: Option<OrgId>,
    count: InFlightCount,
}

/// Whether one more may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityCheck {
    Available,
    /// All lanes of this lane_class have to wait.
    Full,
    /// Only those of this application have to, or of its organization.
    ShareUsed,
}

impl Shares {
    pub(super) fn new(cap: usize) -> Self {
        let counts = InFlightCounts {
            cap,
            all: InFlightCount::default(),
            of_app: FixedMap::default(),
            of_org: FixedMap::default(),
        };
        Self { flights: FixedMap::default(), counts, lines: FairQueue::default() }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.lines.is_empty()
    }

    /// How many lanes of an application wait.
    #[cfg(test)]
    pub(super) fn parked(&self, app: AppId) -> usize {
        self.lines.parked(app)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Nothing is in flight or claimed, and nobody waits: there is nothing to remember.
    pub(super) fn is_idle(&self) -> bool {
        self.counts.all.all == 0 && self.lines.nobody_waits()
    }

    /// Whether anybody of this lane_class could have one more in flight.
    pub(super) fn any(&self, lane_class: LaneClass) -> bool {
        self.counts.any(lane_class)
    }

    /// Whether this one may.
    pub(super) fn leave(&self, owner: LaneOwner, lane_class: LaneClass) -> CapacityCheck {
        self.counts.leave(self.known(owner), lane_class)
    }

    /// A lane at rest does not know its organization, but another of its application may have told it.
    fn known(&self, owner: LaneOwner) -> LaneOwner {
        LaneOwner { org: owner.org.or_else(|| self.organization(owner.app)), ..owner }
    }

    pub(super) fn take(&mut self, seq: Seq, owner: LaneOwner, lane_class: LaneClass) {
        self.flights.insert(seq, Flight { app: owner.app, lane_class });
        self.grant_slot(owner, lane_class);
    }

    /// Holds a place for a lane until it takes a delivery.
    pub(super) fn grant_slot(&mut self, owner: LaneOwner, lane_class: LaneClass) -> Slot {
        let owner = self.known(owner);
        let of_org = self.counts.add(owner, lane_class);
        self.lines.learn(owner);
        Slot { lane_class, of_org }
    }

    pub(super) fn release_slot(&mut self, app: AppId, lane_class: LaneClass) {
        self.counts.subtract(app, lane_class);
    }

    /// Gives a place back; returns the application that had it.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<AppId> {
        let Flight { app, lane_class } = self.flights.remove(&seq)?;
        self.counts.subtract(app, lane_class);
        Some(app)
    }

    /// A lane waits until a place has come free that it may have.
    pub(super) fn park(&mut self, owner: LaneOwner, lane_class: LaneClass, endpoint: EndpointId) {
        self.lines.park(self.known(owner), lane_class, endpoint);
    }

    /// The next lane that may have a place now. It waits no longer.
    pub(super) fn next(&mut self, line: FairScope) -> Option<EndpointId> {
        self.lines.next(line, &self.counts)
    }

    /// Whose an application is, if that is known.
    pub(super) fn organization(&self, app: AppId) -> Option<OrgId> {
        self.counts.of_app.get(&app).and_then(|of_app| of_app.org).or_else(|| self.lines.organization(app))
    }
}

impl InFlightCounts {
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.all == InFlightCount::default() && self.of_app.is_empty() && self.of_org.is_empty()
    }

    fn any(&self, lane_class: LaneClass) -> bool {
        self.all.all < self.cap
            && (lane_class == LaneClass::Responsive || self.all.unproven < self.for_unproven())
    }

    /// A quarter of the cap is only for lanes that answer quickly, whatever the others do.
    fn for_unproven(&self) -> usize {
        self.cap - self.cap / 4
    }

    /// Whether no lane of an organization may have one more in flight, whatever is known of it.
    pub(super) fn has_share(&self, org: OrgId) -> bool {
        self.of_org.get(&org).is_some_and(|of_org| of_org.all >= self.share())
    }

    fn share(&self) -> usize {
        FREE_CAPACITY_FACTOR * (self.cap - self.all.all)
    }

    /// Whether this application may have one more in flight. Lanes that do not answer quickly, or are not known to, share
    /// half of the cap, slow ones a quarter, and no application takes more than half of that, nor more than its
    /// organization may still take; but everyone may have a few, even when others have filled it. Those of slow lanes end at
    /// half of the cap. So what one tenant's receivers do stays with that tenant, and any number of black holes leaves
    /// room for an endpoint that was never tried.
    pub(super) fn leave(&self, owner: LaneOwner, lane_class: LaneClass) -> CapacityCheck {
        if !self.any(lane_class) {
            return CapacityCheck::Full;
        }
        let (half, quarter) = (self.cap.div_ceil(2), self.cap.div_ceil(4));
        let (of_app, of_org) = self.of(owner);
        if of_app.all >= half || of_org.all >= self.share() {
            return CapacityCheck::ShareUsed;
        }
        let few = (self.cap / 64).clamp(1, MIN_UNPROVEN_PER_APPLICATION);
        // Where the organization is not known only what the application itself has may make it wait: it would stand in no line
        // that others move.
        let leaves_room = lane_class != LaneClass::Slow || self.all.slow < half || !self.knows(owner);
        let a_few = of_app.unproven < few
            && leaves_room
            && of_org.unproven
                < FREE_CAPACITY_FACTOR * (self.for_unproven().saturating_sub(self.all.unproven));
        let may_take = |of_org: usize, free: usize| (FREE_CAPACITY_FACTOR * free).saturating_sub(of_org);
        let shared = may_take(of_org.unproven, half.saturating_sub(self.all.unproven)).min(quarter);
        let slow = may_take(of_org.slow, quarter.saturating_sub(self.all.slow));
        let of_shared = of_app.unproven < shared && (lane_class == LaneClass::New || slow > 0);
        if lane_class == LaneClass::Responsive || a_few || of_shared {
            CapacityCheck::Available
        } else {
            CapacityCheck::ShareUsed
        }
    }

    /// Whether the organization is known.
    fn knows(&self, owner: LaneOwner) -> bool {
        owner.org.is_some() || self.of_app.get(&owner.app).is_some_and(|of_app| of_app.org.is_some())
    }

    /// What an application and its organization have. As long as the organization is not known the
    /// application is taken for all of it.
    fn of(&self, owner: LaneOwner) -> (InFlightCount, InFlightCount) {
        let of_app = self.of_app.get(&owner.app);
        let count = of_app.map_or(InFlightCount::default(), |of_app| of_app.count);
        let known = of_app.and_then(|of_app| of_app.org);
        let org = owner.org.or(known);
        let mut of_org = org.and_then(|org| self.of_org.get(&org)).copied().unwrap_or_default();
        if known.is_none() {
            of_org += count;
        }
        (count, of_org)
    }

    /// Whether the organization is known.
    fn add(&mut self, owner: LaneOwner, lane_class: LaneClass) -> bool {
        let one = InFlightCount::one(lane_class);
        self.all += one;
        let of_app = self.of_app.entry(owner.app).or_default();
        of_app.count += one;
        match (of_app.org, owner.org) {
            (Some(org), _) => *self.of_org.entry(org).or_default() += one,
            // What the application has counts for its organization from when that is known.
            (None, Some(org)) => {
                of_app.org = Some(org);
                *self.of_org.entry(org).or_default() += of_app.count;
            }
            (None, None) => return false,
        }
        true
    }

    /// What has nothing needs no memory.
    fn subtract(&mut self, app: AppId, lane_class: LaneClass) {
        let one = InFlightCount::one(lane_class);
        self.all -= one;
        let Some(of_app) = self.of_app.get_mut(&app) else { return };
        of_app.count -= one;
        let org = of_app.org;
        if of_app.count.all == 0 {
            self.of_app.remove(&app);
        }
        if let Some(org) = org
            && let Some(of_org) = self.of_org.get_mut(&org)
        {
            *of_org -= one;
            if of_org.all == 0 {
                self.of_org.remove(&org);
            }
        }
    }
}
