//! Who may have how much of the overall cap on deliveries in flight.

use crate::lane::{FixedMap, Standing};
use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::Seq;
use std::collections::VecDeque;

/// How many deliveries of lanes that are not known to answer quickly every application may have in
/// flight at least, in a cap that is large enough.
const FEW: usize = 8;

/// The deliveries in flight, by the standing of their lanes and by application.
pub(super) struct Shares {
    cap: usize,
    flights: FixedMap<Seq, Flight>,
    /// Places of lanes that wake up for what they will take.
    claims: usize,
    of_standing: [usize; Standing::ALL.len()],
    of_app: FixedMap<AppId, AppShare>,
}

/// As it was when the delivery was taken.
#[derive(Clone, Copy)]
struct Flight {
    app: AppId,
    standing: Standing,
}

#[derive(Default)]
struct AppShare {
    all: usize,
    /// Of lanes that do not answer quickly, or are not known to.
    unproven: usize,
    /// Lanes that wait for one of these to end.
    parked: VecDeque<EndpointId>,
}

/// Whether one more may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Yes,
    /// All lanes of this standing have to wait.
    Full,
    /// Only this application's have to.
    AppFull,
}

impl Shares {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            cap,
            flights: FixedMap::default(),
            claims: 0,
            of_standing: [0; Standing::ALL.len()],
            of_app: FixedMap::default(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Whether anybody of this standing could have one more in flight. A quarter of the cap is only for
    /// lanes that answer quickly, whatever the others do.
    pub(super) fn any(&self, standing: Standing) -> bool {
        let [_, fresh, slow] = self.of_standing;
        let unproven = standing == Standing::Answers || fresh + slow < self.cap - self.cap / 4;
        self.flights.len() + self.claims < self.cap && unproven
    }

    /// Whether this application may have one more in flight. Lanes that do not answer quickly, or are
    /// not known to, share half of the cap, slow ones a quarter, and no application takes more than
    /// half of that; but everyone may have a few, even when others have filled it. So what one
    /// tenant's receivers do stays with that tenant, and any number of black holes leaves room for an
    /// endpoint that was never tried.
    pub(super) fn leave(&self, app: AppId, standing: Standing) -> Leave {
        if !self.any(standing) {
            return Leave::Full;
        }
        let (half, quarter) = (self.cap.div_ceil(2), self.cap.div_ceil(4));
        let (all, own) = self.of_app.get(&app).map_or((0, 0), |share| (share.all, share.unproven));
        let [_, fresh, slow] = self.of_standing;
        let few = (self.cap / 64).clamp(1, FEW);
        let shared = fresh + slow < half && own < quarter && (standing == Standing::Fresh || slow < quarter);
        if all < half && (standing == Standing::Answers || own < few || shared) {
            Leave::Yes
        } else {
            Leave::AppFull
        }
    }

    pub(super) fn take(&mut self, seq: Seq, app: AppId, standing: Standing) {
        self.flights.insert(seq, Flight { app, standing });
        self.add(app, standing);
    }

    /// Holds a place for a lane that has to wake up before it can take a delivery.
    pub(super) fn claim(&mut self, app: AppId, standing: Standing) {
        self.claims += 1;
        self.add(app, standing);
    }

    pub(super) fn unclaim(&mut self, app: AppId, standing: Standing) {
        self.claims -= 1;
        self.subtract(app, standing);
    }

    fn add(&mut self, app: AppId, standing: Standing) {
        self.of_standing[standing as usize] += 1;
        let share = self.of_app.entry(app).or_default();
        share.all += 1;
        share.unproven += usize::from(standing != Standing::Answers);
    }

    fn subtract(&mut self, app: AppId, standing: Standing) {
        self.of_standing[standing as usize] -= 1;
        let Some(share) = self.of_app.get_mut(&app) else { return };
        share.all -= 1;
        share.unproven -= usize::from(standing != Standing::Answers);
        if share.all == 0 && share.parked.is_empty() {
            self.of_app.remove(&app);
        }
    }

    /// Gives a place back; returns the application that has it again.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<AppId> {
        let Flight { app, standing } = self.flights.remove(&seq)?;
        self.subtract(app, standing);
        Some(app)
    }

    pub(super) fn next_parked(&mut self, app: AppId) -> Option<EndpointId> {
        let share = self.of_app.get_mut(&app)?;
        let next = share.parked.pop_front();
        if share.all == 0 && share.parked.is_empty() {
            self.of_app.remove(&app);
        }
        next
    }

    /// A lane waits until a delivery of its application has ended. There is one: it was refused.
    pub(super) fn park(&mut self, app: AppId, endpoint: EndpointId) {
        self.of_app.entry(app).or_default().parked.push_back(endpoint);
    }
}
