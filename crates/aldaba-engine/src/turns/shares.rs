//! Who may have how much of the overall cap on deliveries in flight.

use crate::lane::{FixedMap, Standing};
use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::Seq;
use std::collections::VecDeque;

/// The deliveries in flight, by the standing of their lanes and by application.
pub(super) struct Shares {
    cap: usize,
    flights: FixedMap<Seq, Flight>,
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
pub(super) enum Room {
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
            of_standing: [0; Standing::ALL.len()],
            of_app: FixedMap::default(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Half of the cap is only for lanes that answer quickly, and slow ones get no more than a
    /// quarter: neither black holes nor many new endpoints at once can starve the others.
    pub(super) fn of_standing(&self, standing: Standing) -> Room {
        let [_, fresh, slow] = self.of_standing;
        let unproven = fresh + slow < self.cap.div_ceil(2);
        let room = self.flights.len() < self.cap
            && match standing {
                Standing::Answers => true,
                Standing::Fresh => unproven,
                Standing::Slow => unproven && slow < self.cap.div_ceil(4),
            };
        if room { Room::Yes } else { Room::Full }
    }

    /// No application gets more than half of the cap, nor more than a quarter for lanes that do not
    /// answer quickly: what one tenant's receivers do stays with that tenant.
    pub(super) fn of_app(&self, app: AppId, standing: Standing) -> Room {
        let Some(share) = self.of_app.get(&app) else {
            return Room::Yes;
        };
        let proven = standing == Standing::Answers || share.unproven < self.cap.div_ceil(4);
        if proven && share.all < self.cap.div_ceil(2) { Room::Yes } else { Room::AppFull }
    }

    pub(super) fn take(&mut self, seq: Seq, app: AppId, standing: Standing) {
        self.flights.insert(seq, Flight { app, standing });
        self.of_standing[standing as usize] += 1;
        let share = self.of_app.entry(app).or_default();
        share.all += 1;
        share.unproven += usize::from(standing != Standing::Answers);
    }

    /// Gives a place back; returns the application that has it again.
    pub(super) fn give_back(&mut self, seq: Seq) -> Option<AppId> {
        let Flight { app, standing } = self.flights.remove(&seq)?;
        self.of_standing[standing as usize] -= 1;
        let share = self.of_app.get_mut(&app)?;
        share.all -= 1;
        share.unproven -= usize::from(standing != Standing::Answers);
        if share.all == 0 && share.parked.is_empty() {
            self.of_app.remove(&app);
        }
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
