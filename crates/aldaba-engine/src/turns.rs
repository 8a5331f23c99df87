//! Whose turn it is: the ready lanes, the alarms of the others, and the overall cap.
//!
//! Nothing here waits or does IO. Every method changes the state and [`Turns::run_once`] says what
//! to do now; the dispatcher does it.

use crate::attempt::Start;
use crate::gates::{Entrance, Gates, Probes};
use crate::lane::{Bucket, Entry, FixedMap, Lane, Readiness};
use crate::options::Options;
use crate::target::Target;
use aldaba_delivery::{Delivery, EndpointId, Health, Reason, Timestamp};
use aldaba_store::{DueQuery, GateRecord, Record, Seq, Waiting};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How many actions one run may return, so that news is heard between them.
const ACTIONS: usize = 256;

pub(crate) struct Turns {
    options: Options,
    pub(crate) lanes: FixedMap<EndpointId, Lane>,
    pub(crate) gates: Gates,
    /// Ready lanes in the order of their turns: those that answer, and those that have yet to.
    answering: VecDeque<EndpointId>,
    unproven: VecDeque<EndpointId>,
    alarms: BTreeSet<(Timestamp, EndpointId)>,
    /// Deliveries taken and not yet recorded.
    flights: FixedMap<Seq, Flight>,
    /// How many of them belong to lanes that did not answer when they were taken.
    unproven_in_flight: usize,
    /// Nothing more is started: the store cannot be written, or the server stops.
    pub(crate) halted: bool,
}

#[derive(Clone, Copy)]
struct Flight {
    unproven: bool,
}

/// Whether the caller must have the endpoint of a lane read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Known,
    ReadEndpoint,
}

/// What is to be done now.
pub(crate) enum Action {
    Refill(DueQuery),
    Attempt(Start),
    /// End a delivery without sending it.
    End(Start, Reason),
}

/// What a lane's turn came to.
enum Turn {
    Act(Action),
    Later,
    /// The overall cap is reached; the lane keeps its turn.
    Full,
}

impl Turns {
    pub(crate) fn new(options: Options, gates: Gates) -> Self {
        Self {
            options,
            lanes: FixedMap::default(),
            gates,
            answering: VecDeque::new(),
            unproven: VecDeque::new(),
            alarms: BTreeSet::new(),
            flights: FixedMap::default(),
            unproven_in_flight: 0,
            halted: false,
        }
    }

    /// How many deliveries are taken and not yet recorded.
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// When something is next due that no news will announce.
    pub(crate) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// News of a waiting delivery. A lane that is not in memory is opened.
    pub(crate) fn offer(&mut self, endpoint: EndpointId, entry: Entry, now: Timestamp) -> Opening {
        let opening = self.open(endpoint, now);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.offer(entry);
        }
        self.wake(endpoint);
        opening
    }

    /// Opens a lane that has work in the store.
    pub(crate) fn open(&mut self, endpoint: EndpointId, now: Timestamp) -> Opening {
        if self.lanes.contains_key(&endpoint) {
            return Opening::Known;
        }
        self.lanes.insert(endpoint, Lane::new(&self.options, now));
        Opening::ReadEndpoint
    }

    /// The endpoint of a lane has been read, for the first time or anew. A lane keeps the health
    /// that it knows: it is the only one to change it.
    pub(crate) fn opened(&mut self, endpoint: EndpointId, target: Target, health: Health, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if lane.target.is_none() {
            lane.health = health;
            lane.bucket = target.throttle_rate.map(|rate| Bucket::new(rate, now));
        }
        lane.deleted |= target.deleted;
        lane.target = Some(Arc::new(target));
        self.wake(endpoint);
    }

    /// The endpoint was deleted: nothing more is sent, and what waits ends. A lane that is not in
    /// memory is opened for that.
    pub(crate) fn removed(&mut self, endpoint: EndpointId, now: Timestamp) -> Opening {
        let opening = self.open(endpoint, now);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.deleted = true;
        }
        self.wake(endpoint);
        opening
    }

    /// The endpoint has no row: nothing can wait for it.
    pub(crate) fn vanished(&mut self, endpoint: EndpointId) {
        self.lanes.remove(&endpoint);
    }

    pub(crate) fn refilled(&mut self, endpoint: EndpointId, rows: &[Waiting], limit: usize) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.refilled(rows, limit);
        }
        self.wake(endpoint);
    }

    /// A request has left the wire: its lane may have room for another.
    pub(crate) fn left_wire(&mut self, endpoint: EndpointId, seq: Seq, answered: Option<(bool, Duration)>) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        match answered {
            Some((true, took)) => lane.pace.answered(took),
            Some((false, _)) => lane.pace.unanswered(),
            None => lane.pace.called_off(),
        }
        if lane.probing == Some(seq) {
            lane.probing = None;
        }
        self.wake(endpoint);
    }

    /// Brings a record that was refused up to date. Attempts that ended after it may be on disk
    /// before it, and what they made of the endpoint's health and of gates must stay.
    pub(crate) fn renew(&self, record: &mut Record) {
        if let (Some(health), Some(lane)) = (&mut record.health, self.lanes.get(&record.endpoint)) {
            health.clone_from(&lane.health);
        }
        for GateRecord { origin, scope, gate } in &mut record.gates {
            *gate = self.gates.get(origin, *scope);
        }
    }

    /// A delivery's change is on disk.
    pub(crate) fn landed(&mut self, endpoint: EndpointId, seq: Seq, again: Option<Waiting>, now: Timestamp) {
        if let Some(Flight { unproven: true }) = self.flights.remove(&seq) {
            self.unproven_in_flight -= 1;
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.landed(seq, again);
            lane.idle_since = now;
        }
        self.wake(endpoint);
    }

    /// Puts a lane into its queue, if it is not there.
    pub(crate) fn wake(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if let Some(alarm) = lane.alarm.take() {
            self.alarms.remove(&(alarm, endpoint));
        }
        if !lane.queued {
            lane.queued = true;
            let queue = if lane.pace.answers() { &mut self.answering } else { &mut self.unproven };
            queue.push_back(endpoint);
        }
    }

    /// Forgets lanes that have had nothing to do for a while; whatever they may get later than
    /// `horizon` is found by a sweep.
    pub(crate) fn forget_idle(&mut self, now: Timestamp, horizon: Timestamp) {
        let idle = self.options.lane_idle;
        let alarms = &mut self.alarms;
        self.lanes.retain(|endpoint, lane| {
            let keep = lane.queued || now.since(lane.idle_since) < idle || !lane.can_be_forgotten(horizon);
            if !keep && let Some(alarm) = lane.alarm {
                alarms.remove(&(alarm, *endpoint));
            }
            keep
        });
    }

    /// Gives turns until nobody can use one, everything is in use, or enough has been handed out.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.ring(now);
        // The two queues take turns as well, so that neither waits for the other to run dry.
        let (mut answering_open, mut unproven_open) = (true, true);
        while actions.len() < ACTIONS && (answering_open || unproven_open) {
            if answering_open {
                answering_open = self.serve(false, now, &mut actions);
            }
            if unproven_open {
                unproven_open = self.serve(true, now, &mut actions);
            }
        }
        actions
    }

    /// Whether another [`Turns::run_once`] at the same moment could find more to do.
    pub(crate) fn has_ready(&self) -> bool {
        !self.halted && self.in_flight() < self.options.in_flight && !self.answering.is_empty()
            || !self.halted && self.unproven_has_room() && !self.unproven.is_empty()
    }

    /// One turn from one of the queues. `false`: nothing more is to be had there now.
    fn serve(&mut self, unproven: bool, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let queue = if unproven { &mut self.unproven } else { &mut self.answering };
        let Some(endpoint) = queue.pop_front() else {
            return false;
        };
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.queued = false;
        }
        if let Some(query) = self.refill(endpoint, now) {
            actions.push(Action::Refill(query));
        }
        match self.turn(endpoint, unproven, now) {
            Turn::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
                true
            }
            Turn::Later => true,
            Turn::Full => {
                if let Some(lane) = self.lanes.get_mut(&endpoint) {
                    lane.queued = true;
                    let queue = if unproven { &mut self.unproven } else { &mut self.answering };
                    queue.push_front(endpoint);
                }
                false
            }
        }
    }

    fn turn(&mut self, endpoint: EndpointId, unproven: bool, now: Timestamp) -> Turn {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let probe = match lane.readiness(now) {
            Readiness::Waits => return Turn::Later,
            Readiness::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Later;
            }
            Readiness::Ends => return self.end(endpoint, Reason::Cancelled),
            Readiness::Ready { probe } => probe,
        };
        let full = self.flights.len() >= self.options.in_flight
            || (unproven && self.unproven_in_flight >= self.options.in_flight.div_ceil(2));
        if self.halted || full {
            return Turn::Full;
        }
        let Some(target) = lane.target.clone() else {
            return Turn::Later;
        };
        let Some(head) = lane.backlog.head(now) else {
            return Turn::Later;
        };
        let delivery = Delivery { attempts: head.attempts, clock_start: head.clock_start };
        if delivery.overdue(&target.policy, now) {
            return self.end(endpoint, Reason::StopDate);
        }
        let probes = match self.gates.enter(endpoint, &target, now) {
            Entrance::Open(probes) => probes,
            Entrance::Waits => return Turn::Later,
            // A hold moves the next attempt; past the stop date there is none.
            Entrance::At(at) if delivery.overdue(&target.policy, at) => {
                return self.end(endpoint, Reason::StopDate);
            }
            Entrance::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Later;
            }
        };
        let Some(entry) = lane.backlog.take(now) else {
            return Turn::Later;
        };
        if let Some(bucket) = &mut lane.bucket {
            bucket.take();
        }
        lane.pace.started();
        if probe {
            lane.probing = Some(entry.waiting.seq);
        }
        Turn::Act(Action::Attempt(self.start(endpoint, target, entry, probes, unproven)))
    }

    /// Ends the head without sending it.
    fn end(&mut self, endpoint: EndpointId, reason: Reason) -> Turn {
        if self.halted || self.flights.len() >= self.options.in_flight {
            return Turn::Full;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let (Some(target), Some(entry)) = (lane.target.clone(), lane.backlog.take_any()) else {
            return Turn::Later;
        };
        let start = self.start(endpoint, target, entry, Probes::default(), false);
        Turn::Act(Action::End(start, reason))
    }

    fn start(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        entry: Entry,
        probes: Probes,
        unproven: bool,
    ) -> Start {
        self.flights.insert(entry.waiting.seq, Flight { unproven });
        self.unproven_in_flight += usize::from(unproven);
        Start { endpoint, target, waiting: entry.waiting, content: entry.content, probes }
    }

    fn refill(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<DueQuery> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let until = if lane.deleted { Timestamp::MAX } else { now };
        let (after, limit) = lane.backlog.begin_refill(until)?;
        Some(DueQuery { endpoint, after, limit })
    }

    fn set_alarm(&mut self, endpoint: EndpointId, at: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if let Some(before) = lane.alarm.replace(at) {
            self.alarms.remove(&(before, endpoint));
        }
        self.alarms.insert((at, endpoint));
    }

    /// Wakes the lanes whose alarm has come.
    fn ring(&mut self, now: Timestamp) {
        while let Some(&(at, endpoint)) = self.alarms.first()
            && at <= now
        {
            self.alarms.remove(&(at, endpoint));
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.alarm = None;
            }
            self.wake(endpoint);
        }
    }

    fn unproven_has_room(&self) -> bool {
        self.in_flight() < self.options.in_flight
            && self.unproven_in_flight < self.options.in_flight.div_ceil(2)
    }
}

#[cfg(test)]
mod tests;
