//! Whose turn it is: the ready lanes, the alarms of the others, and the overall cap.
//!
//! Nothing here waits or does IO. Every method changes the state and [`Turns::run_once`] says what
//! to do now; the dispatcher does it.

mod shares;

use crate::attempt::Start;
use crate::gates::{Entrance, Gates, Probes};
use crate::lane::{Bucket, Entry, FixedMap, Lane, Place, Readiness, Reading, Standing};
use crate::options::Options;
use crate::target::Target;
use aldaba_delivery::{AppId, Delivery, EndpointId, Health, Passability, Reason, Timestamp};
use aldaba_store::{DueQuery, GateRecord, Record, Seq, Waiting};
use shares::{Room, Shares};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How many actions one run may return, so that news is heard between them.
const ACTIONS: usize = 256;

/// How many lanes may be reading the store at once: enough to keep its readers busy, few enough to
/// leave them to others.
const REFILLS: usize = 64;

pub(crate) struct Turns {
    options: Options,
    pub(crate) lanes: FixedMap<EndpointId, Lane>,
    pub(crate) gates: Gates,
    /// Ready lanes in the order of their turns, by what is known of their receivers.
    /// A later ticket is a later turn.
    ready: [BTreeMap<u64, EndpointId>; Standing::ALL.len()],
    next_ticket: u64,
    alarms: BTreeSet<(Timestamp, EndpointId)>,
    /// Deliveries taken and not yet recorded.
    shares: Shares,
    /// How many refills are under way, and the lanes that wait for one to end.
    refills: usize,
    thirsty: VecDeque<EndpointId>,
    /// Nothing more is started: the store cannot be written, or the server stops.
    pub(crate) halted: bool,
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
    /// The application's share of it is used up; the lane waits for one of its deliveries to end.
    Parked(AppId),
}

impl Turns {
    pub(crate) fn new(options: Options, gates: Gates) -> Self {
        Self {
            shares: Shares::new(options.in_flight),
            options,
            lanes: FixedMap::default(),
            gates,
            ready: Default::default(),
            next_ticket: 0,
            alarms: BTreeSet::new(),
            refills: 0,
            thirsty: VecDeque::new(),
            halted: false,
        }
    }

    /// How many deliveries are taken and not yet recorded.
    pub(crate) fn in_flight(&self) -> usize {
        self.shares.in_flight()
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
    /// that it knows: it is the only one to change it. What was read before a change counts for
    /// nothing, and is read once more.
    pub(crate) fn opened(
        &mut self,
        endpoint: EndpointId,
        target: Target,
        health: Health,
        now: Timestamp,
    ) -> Opening {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Opening::Known;
        };
        if lane.reading == Reading::Outdated {
            lane.reading = Reading::UnderWay;
            return Opening::ReadEndpoint;
        }
        lane.reading = Reading::Done;
        if lane.target.is_none() {
            lane.health = health;
            lane.bucket = target.throttle_rate.map(|rate| Bucket::new(rate, now));
        }
        lane.deleted |= target.deleted;
        lane.target = Some(Arc::new(target));
        self.wake(endpoint);
        Opening::Known
    }

    /// The endpoint was changed. A lane in memory sends nothing until it has read it again.
    pub(crate) fn altered(&mut self, endpoint: EndpointId) -> Opening {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Opening::Known;
        };
        match lane.reading {
            Reading::Done => {
                lane.reading = Reading::UnderWay;
                Opening::ReadEndpoint
            }
            Reading::UnderWay | Reading::Outdated => {
                lane.reading = Reading::Outdated;
                Opening::Known
            }
        }
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
        self.refills = self.refills.saturating_sub(1);
    }

    /// Whether a delivery that has had its turn, and then had to wait for its payload, may still go.
    pub(crate) fn may_start(&self, start: &Start, now: Timestamp) -> bool {
        let Some(lane) = self.lanes.get(&start.endpoint) else {
            return false;
        };
        let lane_open = match lane.health.passability(now) {
            Passability::Open => true,
            Passability::Probe | Passability::Held(_) => lane.probing == Some(start.waiting.seq),
        };
        !self.halted && !lane.deleted && lane_open && self.gates.still_open(&start.target, start.probes, now)
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
        if let Some(app) = self.shares.give_back(seq) {
            self.unpark(app);
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.landed(seq, again);
            lane.idle_since = now;
        }
        self.wake(endpoint);
    }

    /// Puts a lane among the ready ones of its standing, if it is not there.
    pub(crate) fn wake(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if let Some(alarm) = lane.alarm.take() {
            self.alarms.remove(&(alarm, endpoint));
        }
        let standing = lane.pace.standing();
        match lane.place {
            Place::Ready(queue, _) if queue == standing => return,
            // It is woken when a place comes free; one that has come to answer need not wait for it.
            Place::Parked if standing != Standing::Answers => return,
            Place::Ready(queue, ticket) => drop(self.ready[queue as usize].remove(&ticket)),
            Place::Parked | Place::Nowhere => {}
        }
        lane.place = Place::Ready(standing, self.next_ticket);
        self.ready[standing as usize].insert(self.next_ticket, endpoint);
        self.next_ticket += 1;
    }

    /// Forgets lanes that have had nothing to do for a while; whatever they may get later than
    /// `horizon` is found by a sweep.
    pub(crate) fn forget_idle(&mut self, now: Timestamp, horizon: Timestamp) {
        let idle = self.options.lane_idle;
        let alarms = &mut self.alarms;
        self.lanes.retain(|endpoint, lane| {
            let keep = lane.place != Place::Nowhere
                || now.since(lane.idle_since) < idle
                || !lane.can_be_forgotten(horizon);
            if !keep && let Some(alarm) = lane.alarm {
                alarms.remove(&(alarm, *endpoint));
            }
            keep
        });
        self.gates.forget_idle(now);
    }

    /// Gives turns until nobody can use one, everything is in use, or enough has been handed out.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.ring(now);
        self.quench();
        // The queues take turns as well, so that none waits for another to run dry.
        let mut open = Standing::ALL.to_vec();
        while actions.len() < ACTIONS && !open.is_empty() {
            open.retain(|standing| self.serve(*standing, now, &mut actions));
        }
        actions
    }

    /// Whether another [`Turns::run_once`] at the same moment could find more to do.
    pub(crate) fn has_ready(&self) -> bool {
        let waits = |standing: &Standing| !self.ready[*standing as usize].is_empty();
        !self.halted && Standing::ALL.iter().any(|standing| waits(standing) && self.shares.any(*standing))
    }

    /// One turn from one of the queues. `false`: nothing more is to be had there now.
    fn serve(&mut self, standing: Standing, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let Some((ticket, endpoint)) = self.ready[standing as usize].pop_first() else {
            return false;
        };
        self.put(endpoint, Place::Nowhere);
        if let Some(query) = self.refill(endpoint, now) {
            actions.push(Action::Refill(query));
        }
        match self.turn(endpoint, standing, now) {
            Turn::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
                true
            }
            Turn::Later => {
                // It may have been woken for a place that it does not use.
                if let Some(app) = self.lanes.get(&endpoint).and_then(Lane::app)
                    && self.shares.room(app, standing) == Room::Yes
                {
                    self.unpark(app);
                }
                true
            }
            Turn::Full => {
                self.put(endpoint, Place::Ready(standing, ticket));
                self.ready[standing as usize].insert(ticket, endpoint);
                false
            }
            Turn::Parked(app) => {
                self.put(endpoint, Place::Parked);
                self.shares.park(app, endpoint);
                true
            }
        }
    }

    fn put(&mut self, endpoint: EndpointId, place: Place) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = place;
        }
    }

    /// A place of an application has come free: the first of its lanes that still waits for one gets
    /// its turn.
    fn unpark(&mut self, app: AppId) {
        while let Some(endpoint) = self.shares.next_parked(app) {
            if self.lanes.get(&endpoint).is_some_and(|lane| lane.place == Place::Parked) {
                self.put(endpoint, Place::Nowhere);
                self.wake(endpoint);
                return;
            }
        }
    }

    fn turn(&mut self, endpoint: EndpointId, standing: Standing, now: Timestamp) -> Turn {
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
        let Some(target) = lane.target.clone() else {
            return Turn::Later;
        };
        match self.shares.room(target.app, standing) {
            Room::Yes if !self.halted => {}
            Room::Yes | Room::Full => return Turn::Full,
            Room::AppFull => return Turn::Parked(target.app),
        }
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
        Turn::Act(Action::Attempt(self.start(endpoint, target, entry, probes, standing)))
    }

    /// Ends the head without sending it.
    fn end(&mut self, endpoint: EndpointId, reason: Reason) -> Turn {
        if self.halted || !self.shares.any(Standing::Answers) {
            return Turn::Full;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let (Some(target), Some(entry)) = (lane.target.clone(), lane.backlog.take_any()) else {
            return Turn::Later;
        };
        let start = self.start(endpoint, target, entry, Probes::default(), Standing::Answers);
        Turn::Act(Action::End(start, reason))
    }

    fn start(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        entry: Entry,
        probes: Probes,
        standing: Standing,
    ) -> Start {
        self.shares.take(entry.waiting.seq, target.app, standing);
        Start { endpoint, target, waiting: entry.waiting, content: entry.content, probes }
    }

    /// A refill for a lane that wants one, or a place in the line for it.
    fn refill(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<DueQuery> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let until = if lane.deleted { Timestamp::MAX } else { now };
        if self.refills >= REFILLS {
            if lane.backlog.wants_refill(until) && !lane.thirsty {
                lane.thirsty = true;
                self.thirsty.push_back(endpoint);
            }
            return None;
        }
        let (after, limit) = lane.backlog.begin_refill(until)?;
        self.refills += 1;
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

    /// Wakes as many of the lanes that wait for a refill as may have one.
    fn quench(&mut self) {
        for _ in self.refills..REFILLS {
            let Some(next) = self.thirsty.pop_front() else { return };
            if let Some(lane) = self.lanes.get_mut(&next) {
                lane.thirsty = false;
            }
            self.wake(next);
        }
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
}

#[cfg(test)]
mod tests;
