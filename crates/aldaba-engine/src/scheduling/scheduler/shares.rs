//! Concurrency shares: how much of an in-flight limit each lane class, organization and application may use. The overall
//! limit is divided by these rules, and the limit of each origin (`origins.rs`).

use super::fair_queue::{FairQueue, FairScope};
use crate::scheduling::lane::{FixedMap, LaneClass, Slot};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use aldaba_store::Seq;
use std::ops::{AddAssign, SubAssign};

/// Deliveries of lanes that are not responsive that every application may have in flight, if the limit is large enough.
const MIN_UNPROVEN_PER_APPLICATION: usize = 8;

/// An organization may have this many times the free capacity. Alone it gets three quarters of the limit, two get three
/// sevenths each, and however many there are, something is left for the next one.
const FREE_CAPACITY_FACTOR: usize = 3;

/// The deliveries in flight, and the lanes that wait for capacity.
pub(super) struct Shares {
    flights: FixedMap<Seq, Flight>,
    counts: InFlightCounts,
    queue: FairQueue,
}

/// How much is in flight, by lane class, application and organization. Granted slots count as deliveries.
pub(super) struct InFlightCounts {
    limit: usize,
    all: ClassCounts,
    of_app: FixedMap<AppId, AppCount>,
    of_org: FixedMap<OrgId, ClassCounts>,
}

/// The application and the organization of a lane. An idle lane does not know its organization; what it has in flight counts
/// for the organization as soon as another lane of the application knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneOwner {
    pub(crate) app: AppId,
    pub(crate) org: Option<OrgId>,
}

/// A delivery in flight, as it was when it was selected.
#[derive(Clone, Copy)]
struct Flight {
    app: AppId,
    lane_class: LaneClass,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClassCounts {
    all: usize,
    /// Of lanes that are new or slow.
    unproven: usize,
    /// Of lanes that are slow.
    slow: usize,
}

impl ClassCounts {
    fn one(lane_class: LaneClass) -> Self {
        let unproven = usize::from(lane_class != LaneClass::Responsive);
        Self { all: 1, unproven, slow: usize::from(lane_class == LaneClass::Slow) }
    }
}

impl AddAssign for ClassCounts {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.unproven += other.unproven;
        self.slow += other.slow;
    }
}

impl SubAssign for ClassCounts {
    fn sub_assign(&mut self, other: Self) {
        self.all -= other.all;
        self.unproven -= other.unproven;
        self.slow -= other.slow;
    }
}

#[derive(Default)]
struct AppCount {
    org: Option<OrgId>,
    count: ClassCounts,
}

/// Whether one more delivery may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityCheck {
    Available,
    /// All lanes of this class have to wait.
    Full,
    /// Lanes of this application or its organization have to wait.
    ShareUsed,
}

impl Shares {
    pub(super) fn new(limit: usize) -> Self {
        let counts = InFlightCounts {
            limit,
            all: ClassCounts::default(),
            of_app: FixedMap::default(),
            of_org: FixedMap::default(),
        };
        Self { flights: FixedMap::default(), counts, queue: FairQueue::default() }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.queue.is_empty()
    }

    /// How many lanes of an application wait.
    #[cfg(test)]
    pub(super) fn waiting_lanes(&self, app: AppId) -> usize {
        self.queue.waiting_lanes(app)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Nothing is in flight, granted or waiting.
    pub(super) fn is_idle(&self) -> bool {
        self.counts.all.all == 0 && self.queue.has_no_waiting_lane()
    }

    /// Whether any lane of this class could have one more in flight.
    pub(super) fn has_capacity(&self, lane_class: LaneClass) -> bool {
        self.counts.has_capacity(lane_class)
    }

    /// Whether a lane may have one more in flight.
    pub(super) fn check(&self, owner: LaneOwner, lane_class: LaneClass) -> CapacityCheck {
        self.counts.check(self.known(owner), lane_class)
    }

    /// An idle lane does not know its organization, but another lane of its application may.
    fn known(&self, owner: LaneOwner) -> LaneOwner {
        LaneOwner { org: owner.org.or_else(|| self.organization(owner.app)), ..owner }
    }

    pub(super) fn take(&mut self, seq: Seq, owner: LaneOwner, lane_class: LaneClass) {
        self.flights.insert(seq, Flight { app: owner.app, lane_class });
        self.grant_slot(owner, lane_class);
    }

    /// Reserves a slot for a lane until it takes a delivery.
    pub(super) fn grant_slot(&mut self, owner: LaneOwner, lane_class: LaneClass) -> Slot {
        let owner = self.known(owner);
        let of_org = self.counts.add(owner, lane_class);
        self.queue.learn(owner);
        Slot { lane_class, of_org }
    }

    pub(super) fn release_slot(&mut self, app: AppId, lane_class: LaneClass) {
        self.counts.subtract(app, lane_class);
    }

    /// Ends a delivery's time in flight. Returns its application.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<AppId> {
        let Flight { app, lane_class } = self.flights.remove(&seq)?;
        self.counts.subtract(app, lane_class);
        Some(app)
    }

    /// Adds a lane to the fair queue.
    pub(super) fn enqueue_lane(&mut self, owner: LaneOwner, lane_class: LaneClass, endpoint: EndpointId) {
        self.queue.enqueue_lane(self.known(owner), lane_class, endpoint);
    }

    /// Takes the next lane that may have a slot from the fair queue.
    pub(super) fn next(&mut self, scope: FairScope) -> Option<EndpointId> {
        self.queue.next(scope, &self.counts)
    }

    /// The organization of an application, if it is known.
    pub(super) fn organization(&self, app: AppId) -> Option<OrgId> {
        self.counts.of_app.get(&app).and_then(|of_app| of_app.org).or_else(|| self.queue.organization(app))
    }
}

impl InFlightCounts {
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.all == ClassCounts::default() && self.of_app.is_empty() && self.of_org.is_empty()
    }

    fn has_capacity(&self, lane_class: LaneClass) -> bool {
        self.all.all < self.limit
            && (lane_class == LaneClass::Responsive || self.all.unproven < self.for_unproven())
    }

    /// A quarter of the limit is only for responsive lanes, whatever the others do.
    fn for_unproven(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// Whether an organization has used up its share for all lane classes.
    pub(super) fn has_used_share(&self, org: OrgId) -> bool {
        self.of_org.get(&org).is_some_and(|of_org| of_org.all >= self.share())
    }

    fn share(&self) -> usize {
        FREE_CAPACITY_FACTOR * (self.limit - self.all.all)
    }

    /// Whether a lane of this application may have one more in flight.
    ///
    /// New and slow lanes share half of the limit, slow lanes a quarter. No application takes more than half of that, nor more
    /// than its organization may still take. Every application may have a few beyond that, even when others have filled the
    /// half; for slow lanes only until slow lanes use half of the limit. So one tenant's receivers affect that tenant alone,
    /// and any number of silent endpoints leaves capacity for an endpoint that was never tried.
    pub(super) fn check(&self, owner: LaneOwner, lane_class: LaneClass) -> CapacityCheck {
        if !self.has_capacity(lane_class) {
            return CapacityCheck::Full;
        }
        let (half, quarter) = (self.limit.div_ceil(2), self.limit.div_ceil(4));
        let (of_app, of_org) = self.of(owner);
        if of_app.all >= half || of_org.all >= self.share() {
            return CapacityCheck::ShareUsed;
        }
        let few = (self.limit / 64).clamp(1, MIN_UNPROVEN_PER_APPLICATION);
        // Without a known organization only the application's own deliveries may make a lane wait: no other application would
        // wake it.
        let leaves_capacity = lane_class != LaneClass::Slow || self.all.slow < half || !self.knows(owner);
        let a_few = of_app.unproven < few
            && leaves_capacity
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

    /// The counts of an application and its organization. Without a known organization the application counts as all of it.
    fn of(&self, owner: LaneOwner) -> (ClassCounts, ClassCounts) {
        let of_app = self.of_app.get(&owner.app);
        let count = of_app.map_or(ClassCounts::default(), |of_app| of_app.count);
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
        let one = ClassCounts::one(lane_class);
        self.all += one;
        let of_app = self.of_app.entry(owner.app).or_default();
        of_app.count += one;
        match (of_app.org, owner.org) {
            (Some(org), _) => *self.of_org.entry(org).or_default() += one,
            // What the application has in flight counts for its organization as soon as that is known.
            (None, Some(org)) => {
                of_app.org = Some(org);
                *self.of_org.entry(org).or_default() += of_app.count;
            }
            (None, None) => return false,
        }
        true
    }

    /// Entries with nothing in flight are removed.
    fn subtract(&mut self, app: AppId, lane_class: LaneClass) {
        let one = ClassCounts::one(lane_class);
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
