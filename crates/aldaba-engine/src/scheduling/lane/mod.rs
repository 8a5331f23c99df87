//! A lane: the queue of one endpoint, with what decides whether it may send.

mod backlog;
mod bucket;
mod buffer_budget;
mod expiry;
mod pace;
mod ramp;
mod throttle;

pub(crate) use backlog::{Backlog, BufferedDelivery};
pub(crate) use buffer_budget::BufferBudget;
pub(crate) use expiry::{Expiry, SearchResult};
pub(crate) use pace::{LaneClass, Pace};
pub(crate) use ramp::Ramp;
pub(crate) use throttle::Throttle;

use crate::delivering::Target;
use crate::scheduling::scheduler::LaneOwner;
use crate::{ClockTrust, Options};
use aldaba_delivery::{Admission, AppId, EndpointState, Health, Reason, StopRule, Timestamp};
use aldaba_store::Seq;
use foldhash::fast::FixedState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A map whose order, though never relied on, is the same in every run. A delivery needs dozens of look-ups, so the hash
/// is a quick one. It does not resist chosen keys: ids are the server's own, and maps keyed by an origin are bounded.
pub(crate) type FixedMap<K, V> = HashMap<K, V, FixedState>;
pub(crate) type FixedSet<K> = HashSet<K, FixedState>;

/// There can be very many, most of them waiting: what only a lane about to send needs is in
/// [`Awake`].
pub(crate) struct Lane {
    pub(crate) app: AppId,
    pub(crate) reading: Reading,
    /// `None`: the lane *rests*. Its endpoint is read when its turn comes.
    pub(crate) awake: Option<Box<Awake>>,
    /// The endpoint is deleted. It stays so, whatever an older read of it may still say.
    pub(crate) deleted: bool,
    pub(crate) backlog: Backlog,
    pub(crate) pace: Pace,
    pub(crate) throttle: Option<Box<Throttle>>,
    /// A token of the application's throttle is taken for its next request.
    pub(crate) token: bool,
    /// While what was held for the endpoint is let go.
    pub(crate) ramp: Option<Box<Ramp>>,
    /// A probe of a failed endpoint is on its way.
    pub(crate) probing: Option<Seq>,
    pub(crate) place: LaneState,
    /// It stands in its application's line of parked lanes, parked or not.
    pub(crate) lined_up: bool,
    /// Its turn has come, and it was given a place among those in flight, which it has not used yet: it may have to
    /// wake up first.
    pub(crate) slot: Option<Slot>,
    /// The lane stands in the line for a refill.
    pub(crate) awaits_refill: bool,
    /// What it knows of the stop dates of what waits.
    pub(crate) expiry: Expiry,
    /// When the lane is to be looked at again.
    pub(crate) alarm: Option<Timestamp>,
    pub(crate) idle_since: Timestamp,
}

/// A place among those in flight that a lane was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) lane_class: LaneClass,
    /// Its organization was known, so that it is within the share of that.
    pub(crate) of_org: bool,
}

/// What a lane knows of its endpoint.
pub(crate) struct Awake {
    pub(crate) target: Arc<Target>,
    pub(crate) health: Health,
}

impl Awake {
    /// What its deliveries are decided by.
    pub(crate) fn state(&self) -> EndpointState<'_> {
        EndpointState::of(&self.health, self.target.controls())
    }

    /// By what deliveries end that have waited too long.
    pub(crate) fn stop_rule(&self) -> StopRule {
        self.state().stop_rule(self.target.policy.clone())
    }
}

/// How far the reading of the endpoint has come. At most one read is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It has to be read, for the first time or anew, before the lane sends.
    Wanted,
    UnderWay,
    /// Under way, and the endpoint has changed since it began.
    Outdated,
    Done,
}

/// Where a lane stands between its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    Waiting,
    /// Among the ready lanes of a queue, with this ticket.
    Ready(ReadyQueue, u64),
    /// Its application or its organization has as much in flight as it may have.
    AwaitsShare,
    /// In the line for the cap of its origin, as what it was then.
    AwaitsOrigin(LaneClass),
    /// In the line for its application's throttle.
    AwaitsRate,
}

/// The queues in which ready lanes wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyQueue {
    /// Its turn had come already, and it has a place.
    Granted,
    Responsive,
    New,
    Slow,
}

impl ReadyQueue {
    pub(crate) const ALL: [Self; 4] = [Self::Granted, Self::Responsive, Self::New, Self::Slow];
}

/// What a lane's own state says about its next delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The head may go.
    Ready { probe: bool },
    /// Not before this moment.
    At(Timestamp),
    /// Something else must happen first, and it will bring the lane back.
    Waits,
    /// The endpoint must be read before anything can be said.
    Wakes,
    /// What waits ends without being sent: the endpoint is deleted, or has not been sent to for too long.
    Ends(Reason),
}

impl Lane {
    pub(crate) fn new(app: AppId, options: &Options, room: &BufferBudget, now: Timestamp) -> Self {
        Self {
            app,
            reading: Reading::Wanted,
            awake: None,
            deleted: false,
            backlog: Backlog::new(options.lane_buffer, room.clone()),
            pace: Pace::new(options.lane_start, options.lane_most),
            throttle: None,
            token: false,
            ramp: None,
            probing: None,
            place: LaneState::Waiting,
            lined_up: false,
            slot: None,
            awaits_refill: false,
            expiry: Expiry::new(),
            alarm: None,
            idle_since: now,
        }
    }

    /// The endpoint is deleted: what waits ends, whether or not it has a place in an order. An ordered lane was not told of
    /// what has none: it is not ordered any more, and reads the store anew.
    pub(crate) fn delete(&mut self) {
        self.deleted = true;
        self.backlog.set_ordered(false);
    }

    /// A delivery goes out now.
    pub(crate) fn sends(&mut self, entry: &BufferedDelivery, probe: bool) {
        if let Some(ramp) = &mut self.ramp {
            ramp.take();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.take(entry.content.is_some());
        }
        self.pace.started();
        if probe {
            self.probing = Some(entry.waiting.seq);
        }
    }

    /// Everything about the lane itself; gates and the overall cap are the caller's. `held`: how long a
    /// delivery may be held for an endpoint that is not sent to.
    pub(crate) fn readiness(&mut self, now: Timestamp, held: Duration, trust: &ClockTrust) -> Readiness {
        let due_at = self.backlog.next_due();
        if let Some(throttle) = &mut self.throttle
            && due_at.is_none_or(|due_at| due_at > now)
        {
            throttle.holds_nothing();
        }
        let Some(due_at) = due_at else {
            return Readiness::Waits;
        };
        if due_at > now && !self.deleted {
            return Readiness::At(due_at);
        }
        let awake = match (self.reading, &self.awake) {
            (Reading::Done, Some(awake)) => awake,
            (Reading::UnderWay | Reading::Outdated, _) => return Readiness::Waits,
            (Reading::Wanted, _) | (Reading::Done, None) => return Readiness::Wakes,
        };
        if !self.backlog.has_entry() {
            return Readiness::Waits;
        }
        if self.deleted {
            return Readiness::Ends(Reason::OF_DELETION);
        }
        let probing = self.probing.is_some();
        let probe = match awake.state().admission(due_at, held, probing, now, || trust.may_end_by_time()) {
            Admission::Open => false,
            Admission::Probe => true,
            Admission::Held(until) => return until.map_or(Readiness::Waits, Readiness::At),
            Admission::Ends(reason) => return Readiness::Ends(reason),
        };
        let released_at = awake.health.released_at;
        self.go_slowly_since(released_at, now);
        if !self.pace.has_room() || !self.backlog.may_take() {
            return Readiness::Waits;
        }
        if let Some(Err(at)) = self.ramp.as_ref().map(|ramp| ramp.ready(now)) {
            return Readiness::At(at);
        }
        let Some(throttle) = &mut self.throttle else {
            return Readiness::Ready { probe };
        };
        match throttle.ready(now) {
            Ok(()) => Readiness::Ready { probe },
            Err(at) => {
                throttle.holds(now);
                Readiness::At(at)
            }
        }
    }

    /// What was held is let go one by one at first, then faster.
    fn go_slowly_since(&mut self, released_at: Option<Timestamp>, now: Timestamp) {
        match (released_at, &self.ramp) {
            (None, None) => {}
            (Some(at), Some(ramp)) if ramp.began_at(at) && !ramp.is_over(now) => {}
            (Some(at), _) => {
                self.ramp = Ramp::since(at, now).map(Box::new);
                if self.ramp.is_some() {
                    self.pace.begin_anew();
                }
            }
            (None, Some(_)) => self.ramp = None,
        }
    }

    /// Whose it is, as far as it knows.
    pub(crate) fn owner(&self) -> LaneOwner {
        LaneOwner { app: self.app, org: self.awake.as_ref().map(|awake| awake.target.org) }
    }

    /// The queue in which the lane waits for its turn.
    pub(crate) fn queue(&self) -> ReadyQueue {
        match (self.slot, self.pace.lane_class()) {
            (Some(_), _) => ReadyQueue::Granted,
            (None, LaneClass::Responsive) => ReadyQueue::Responsive,
            (None, LaneClass::New) => ReadyQueue::New,
            (None, LaneClass::Slow) => ReadyQueue::Slow,
        }
    }

    /// Nothing is on its way: what the lane knows is on disk, and can be read again.
    pub(crate) fn can_rest(&self) -> bool {
        self.slot.is_none()
            && matches!(self.reading, Reading::Done | Reading::Wanted)
            && self.backlog.is_still()
    }

    /// Forgets what can be read again.
    pub(crate) fn rest(&mut self) {
        self.awake = None;
        self.reading = Reading::Wanted;
        self.backlog.rest();
    }

    /// Nothing is on its way and nothing is due before `horizon`: whatever waits beyond it is on
    /// disk and brings the lane back when a sweep finds it.
    pub(crate) fn can_be_forgotten(&self, horizon: Timestamp) -> bool {
        self.can_rest() && self.backlog.is_idle(horizon)
    }
}
