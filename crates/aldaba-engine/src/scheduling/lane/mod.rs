//! A lane: the queue of one endpoint, with what decides whether it may send. Its [states](state) are in one table.

mod backlog;
mod bucket;
mod buffer_budget;
mod expiry;
mod pace;
mod ramp;
mod state;
mod throttle;

pub(crate) use backlog::{Backlog, BufferedDelivery};
pub(crate) use buffer_budget::BufferBudget;
pub(crate) use expiry::{Expiry, SearchResult};
pub(crate) use pace::{LaneClass, Pace};
pub(crate) use ramp::Ramp;
pub(crate) use state::{EndpointEvent, EndpointRead, LaneEvent, LaneState, ReadyQueue, Wake};
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

/// A map with the same order in every run, though nothing relies on it. A delivery needs dozens of look-ups, so the hash is a
/// fast one. It does not resist chosen keys: ids are the server's own, and maps keyed by an origin are bounded.
pub(crate) type FixedMap<K, V> = HashMap<K, V, FixedState>;
pub(crate) type FixedSet<K> = HashSet<K, FixedState>;

/// There can be very many lanes, most of them idle: what only a lane about to send needs is in [`Awake`].
pub(crate) struct Lane {
    pub(crate) app: AppId,
    pub(crate) state: LaneState,
    pub(crate) endpoint_read: EndpointRead,
    /// What it knows of its endpoint. `None`: the lane is idle, and reads its endpoint when it is selected.
    pub(crate) awake: Option<Box<Awake>>,
    /// The endpoint is deleted. It stays so, whatever an earlier read may still return.
    pub(crate) deleted: bool,
    pub(crate) backlog: Backlog,
    pub(crate) pace: Pace,
    pub(crate) throttle: Option<Box<Throttle>>,
    /// After a hold or a resume.
    pub(crate) ramp: Option<Box<Ramp>>,
    /// The delivery whose attempt is the probe of a failed endpoint.
    pub(crate) probing: Option<Seq>,
    /// The slot that it was granted and has not used.
    pub(crate) slot: Option<Slot>,
    /// It holds a token of its application's throttle for its next request.
    pub(crate) rate_token: bool,
    /// The fair queue has an entry of it, even if it no longer waits there.
    pub(crate) in_fair_queue: bool,
    /// The queue for refills has an entry of it.
    pub(crate) in_refill_queue: bool,
    /// The stop dates of its deliveries.
    pub(crate) expiry: Expiry,
    /// When it is woken at the latest.
    pub(crate) alarm: Option<Timestamp>,
    pub(crate) idle_since: Timestamp,
}

/// A part of the in-flight limit that is reserved for one delivery of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) lane_class: LaneClass,
    /// The organization was known when the slot was granted, so it counts within the organization's share.
    pub(crate) of_org: bool,
}

/// What a lane knows of its endpoint.
pub(crate) struct Awake {
    pub(crate) target: Arc<Target>,
    pub(crate) health: Health,
}

impl Awake {
    /// The state that decides about its deliveries.
    pub(crate) fn state(&self) -> EndpointState<'_> {
        EndpointState::of(&self.health, self.target.controls())
    }

    /// The rule by which its deliveries expire.
    pub(crate) fn stop_rule(&self) -> StopRule {
        self.state().stop_rule(self.target.policy.clone())
    }
}

/// What a lane's own state says about its next delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The first delivery may be sent.
    Ready { probe: bool },
    /// Not before this moment.
    At(Timestamp),
    /// Something else must happen first, and it wakes the lane.
    Waits,
    /// The endpoint must be read first.
    Loads,
    /// The first delivery ends without being sent: the endpoint is deleted, or was not sent to for too long.
    Ends(Reason),
}

impl Lane {
    pub(crate) fn new(app: AppId, options: &Options, budget: &BufferBudget, now: Timestamp) -> Self {
        Self {
            app,
            state: LaneState::Waiting,
            endpoint_read: EndpointRead::Needed,
            awake: None,
            deleted: false,
            backlog: Backlog::new(options.lane_buffer, budget.clone()),
            pace: Pace::new(options.lane_start, options.lane_most),
            throttle: None,
            ramp: None,
            probing: None,
            slot: None,
            rate_token: false,
            in_fair_queue: false,
            in_refill_queue: false,
            expiry: Expiry::new(),
            alarm: None,
            idle_since: now,
        }
    }

    pub(crate) fn transition(&mut self, event: LaneEvent) {
        self.state = self.state.after(event);
    }

    pub(crate) fn endpoint_transition(&mut self, event: EndpointEvent) {
        self.endpoint_read = self.endpoint_read.after(event);
    }

    /// The endpoint is deleted: pending deliveries end, with or without a sequence number. The lane was not told of those
    /// without, so it is no longer ordered, and reads the store again.
    pub(crate) fn delete(&mut self) {
        self.deleted = true;
        self.backlog.set_ordered(false);
    }

    /// A delivery is sent now.
    pub(crate) fn sends(&mut self, delivery: &BufferedDelivery, probe: bool) {
        if let Some(ramp) = &mut self.ramp {
            ramp.take();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.take(delivery.content.is_some());
        }
        self.pace.started();
        if probe {
            self.probing = Some(delivery.pending.seq);
        }
    }

    /// Whether the lane itself lets its first delivery go. Gates and the in-flight limit are checked by the scheduler.
    /// `max_hold`: how long a delivery may be held for an endpoint that is not sent to.
    pub(crate) fn readiness(&mut self, now: Timestamp, max_hold: Duration, trust: &ClockTrust) -> Readiness {
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
        let awake = match (self.endpoint_read, &self.awake) {
            (EndpointRead::Current, Some(awake)) => awake,
            (EndpointRead::Running | EndpointRead::Outdated, _) => return Readiness::Waits,
            (EndpointRead::Needed, _) | (EndpointRead::Current, None) => return Readiness::Loads,
        };
        if !self.backlog.has_delivery() {
            return Readiness::Waits;
        }
        if self.deleted {
            return Readiness::Ends(Reason::OF_DELETION);
        }
        let probing = self.probing.is_some();
        let may_end = || trust.may_end_by_time();
        let probe = match awake.state().admission(due_at, max_hold, probing, now, may_end) {
            Admission::Open => false,
            Admission::Probe => true,
            Admission::Held(until) => return until.map_or(Readiness::Waits, Readiness::At),
            Admission::Ends(reason) => return Readiness::Ends(reason),
        };
        let released_at = awake.health.released_at;
        self.ramp_since(released_at, now);
        if !self.pace.has_capacity() || !self.backlog.may_take() {
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

    /// Starts or ends the ramp of what was held and released at a moment.
    fn ramp_since(&mut self, released_at: Option<Timestamp>, now: Timestamp) {
        match (released_at, &self.ramp) {
            (None, None) => {}
            (Some(at), Some(ramp)) if ramp.began_at(at) && !ramp.is_over(now) => {}
            (Some(at), _) => {
                self.ramp = Ramp::since(at, now).map(Box::new);
                if self.ramp.is_some() {
                    self.pace.restart();
                }
            }
            (None, Some(_)) => self.ramp = None,
        }
    }

    /// Deliveries that are due until then are worth a refill. A deleted lane ends all of them.
    pub(crate) fn refill_until(&self, now: Timestamp) -> Timestamp {
        if self.deleted { Timestamp::MAX } else { now }
    }

    /// The application and the organization of the lane, as far as it knows.
    pub(crate) fn owner(&self) -> LaneOwner {
        LaneOwner { app: self.app, org: self.awake.as_ref().map(|awake| awake.target.org) }
    }

    /// The queue in which the lane waits for its selection.
    pub(crate) fn queue(&self) -> ReadyQueue {
        ReadyQueue::of(self.slot.is_some(), self.pace.lane_class())
    }

    /// Whether everything that the lane knows is on disk, and can be read again.
    pub(crate) fn can_be_idle(&self) -> bool {
        self.slot.is_none()
            && matches!(self.endpoint_read, EndpointRead::Current | EndpointRead::Needed)
            && self.backlog.is_settled()
    }

    /// Drops what can be read again.
    pub(crate) fn make_idle(&mut self) {
        self.awake = None;
        self.endpoint_transition(EndpointEvent::BecomesIdle);
        self.backlog.make_idle();
    }

    /// Whether the lane can be dropped: nothing is due before `horizon`, and a sweep finds what is due later.
    pub(crate) fn can_be_forgotten(&self, horizon: Timestamp) -> bool {
        self.can_be_idle() && self.backlog.is_idle(horizon)
    }
}
