//! Who may have how much of a cap on deliveries in flight: first every organization, then its applications. The overall cap
//! is shared so, and the cap of each origin (`origins.rs`).

use super::lines::{Line, Lines};
use crate::scheduling::lane::{Claim, FixedMap, Standing};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use aldaba_store::Seq;
use std::ops::{AddAssign, SubAssign};

/// How many deliveries of lanes that are not known to answer quickly every application may have in
/// flight at least, in a cap that is large enough.
const FEW: usize = 8;

/// An organization may have so many times what is left free. Alone it comes to three quarters of what there is; two come to
/// three sevenths each; and however many want it, something is left for the next one.
const TIMES_FREE: usize = 3;

/// The deliveries in flight, and the lanes that wait for a place.
pub(super) struct Shares {
    flights: FixedMap<Seq, Flight>,
    counts: Counts,
    lines: Lines,
}

/// What is in flight, by the standing of its lanes and by whose it is. Places of lanes that were given one, and have not taken
/// a delivery yet, count as deliveries.
pub(super) struct Counts {
    cap: usize,
    all: Count,
    of_app: FixedMap<AppId, AppCount>,
    of_org: FixedMap<OrgId, Count>,
}

/// Whose a lane is. A lane at rest does not know its organization; what it has counts for that from when one of the
/// application's lanes says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) app: AppId,
    pub(crate) org: Option<OrgId>,
}

/// As it was when the delivery was taken.
#[derive(Clone, Copy)]
struct Flight {
    app: AppId,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: usize,
    /// Of lanes that do not answer quickly, or are not known to.
    unproven: usize,
    /// Of those, of lanes that are known not to.
    slow: usize,
}

impl Count {
    fn one(standing: Standing) -> Self {
        let unproven = usize::from(standing != Standing::Answers);
        Self { all: 1, unproven, slow: usize::from(standing == Standing::Slow) }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.unproven += other.unproven;
        self.slow += other.slow;
    }
}

impl SubAssign for Count {
    fn sub_assign(&mut self, other: Self) {
        self.all -= other.all;
        self.unproven -= other.unproven;
        self.slow -= other.slow;
    }
}

#[derive(Default)]
struct AppCount {
    org: Option<OrgId>,
    count: Count,
}

/// Whether one more may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Yes,
    /// All lanes of this standing have to wait.
    Full,
    /// Only those of this application have to, or of its organization.
    Share,
}

impl Shares {
    pub(super) fn new(cap: usize) -> Self {
        let counts =
            Counts { cap, all: Count::default(), of_app: FixedMap::default(), of_org: FixedMap::default() };
        Self { flights: FixedMap::default(), counts, lines: Lines::default() }
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

    /// Whether anybody of this standing could have one more in flight.
    pub(super) fn any(&self, standing: Standing) -> bool {
        self.counts.any(standing)
    }

    /// Whether this one may.
    pub(super) fn leave(&self, owner: Owner, standing: Standing) -> Leave {
        self.counts.leave(self.known(owner), standing)
    }

    /// A lane at rest does not know its organization, but another of its application may have told it.
    fn known(&self, owner: Owner) -> Owner {
        Owner { org: owner.org.or_else(|| self.organization(owner.app)), ..owner }
    }

    pub(super) fn take(&mut self, seq: Seq, owner: Owner, standing: Standing) {
        self.flights.insert(seq, Flight { app: owner.app, standing });
        self.claim(owner, standing);
    }

    /// Holds a place for a lane until it takes a delivery.
    pub(super) fn claim(&mut self, owner: Owner, standing: Standing) -> Claim {
        let owner = self.known(owner);
        let of_org = self.counts.add(owner, standing);
        self.lines.learn(owner);
        Claim { standing, of_org }
    }

    pub(super) fn unclaim(&mut self, app: AppId, standing: Standing) {
        self.counts.subtract(app, standing);
    }

    /// Gives a place back; returns the application that had it.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<AppId> {
        let Flight { app, standing } = self.flights.remove(&seq)?;
        self.counts.subtract(app, standing);
        Some(app)
    }

    /// A lane waits until a place has come free that it may have.
    pub(super) fn park(&mut self, owner: Owner, standing: Standing, endpoint: EndpointId) {
        self.lines.park(self.known(owner), standing, endpoint);
    }

    /// The next lane that may have a place now. It waits no longer.
    pub(super) fn next(&mut self, line: Line) -> Option<EndpointId> {
        self.lines.next(line, &self.counts)
    }

    /// Whose an application is, if that is known.
    pub(super) fn organization(&self, app: AppId) -> Option<OrgId> {
        self.counts.of_app.get(&app).and_then(|of_app| of_app.org).or_else(|| self.lines.organization(app))
    }
}

impl Counts {
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.all == Count::default() && self.of_app.is_empty() && self.of_org.is_empty()
    }

    fn any(&self, standing: Standing) -> bool {
        self.all.all < self.cap && (standing == Standing::Answers || self.all.unproven < self.for_unproven())
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
        TIMES_FREE * (self.cap - self.all.all)
    }

    /// Whether this application may have one more in flight. Lanes that do not answer quickly, or are not known to, share
    /// half of the cap, slow ones a quarter, and no application takes more than half of that, nor more than its
    /// organization may still take; but everyone may have a few, even when others have filled it. Those of slow lanes end at
    /// half of the cap. So what one tenant's receivers do stays with that tenant, and any number of black holes leaves
    /// room for an endpoint that was never tried.
    pub(super) fn leave(&self, owner: Owner, standing: Standing) -> Leave {
        if !self.any(standing) {
            return Leave::Full;
        }
        let (half, quarter) = (self.cap.div_ceil(2), self.cap.div_ceil(4));
        let (of_app, of_org) = self.of(owner);
        if of_app.all >= half || of_org.all >= self.share() {
            return Leave::Share;
        }
        let few = (self.cap / 64).clamp(1, FEW);
        // Where the organization is not known only what the application itself has may make it wait: it would stand in no line
        // that others move.
        let leaves_room = standing != Standing::Slow || self.all.slow < half || !self.knows(owner);
        let a_few = of_app.unproven < few
            && leaves_room
            && of_org.unproven < TIMES_FREE * (self.for_unproven().saturating_sub(self.all.unproven));
        let may_take = |of_org: usize, free: usize| (TIMES_FREE * free).saturating_sub(of_org);
        let shared = may_take(of_org.unproven, half.saturating_sub(self.all.unproven)).min(quarter);
        let slow = may_take(of_org.slow, quarter.saturating_sub(self.all.slow));
        let of_shared = of_app.unproven < shared && (standing == Standing::Fresh || slow > 0);
        if standing == Standing::Answers || a_few || of_shared { Leave::Yes } else { Leave::Share }
    }

    /// Whether the organization is known.
    fn knows(&self, owner: Owner) -> bool {
        owner.org.is_some() || self.of_app.get(&owner.app).is_some_and(|of_app| of_app.org.is_some())
    }

    /// What an application and its organization have. As long as the organization is not known the
    /// application is taken for all of it.
    fn of(&self, owner: Owner) -> (Count, Count) {
        let of_app = self.of_app.get(&owner.app);
        let count = of_app.map_or(Count::default(), |of_app| of_app.count);
        let known = of_app.and_then(|of_app| of_app.org);
        let org = owner.org.or(known);
        let mut of_org = org.and_then(|org| self.of_org.get(&org)).copied().unwrap_or_default();
        if known.is_none() {
            of_org += count;
        }
        (count, of_org)
    }

    /// Whether the organization is known.
    fn add(&mut self, owner: Owner, standing: Standing) -> bool {
        let one = Count::one(standing);
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
    fn subtract(&mut self, app: AppId, standing: Standing) {
        let one = Count::one(standing);
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
