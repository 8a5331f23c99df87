//! Whose turn it is: the ready lanes, the alarms of the others, and the overall cap.
//!
//! Nothing here waits or does IO. Every method changes the state and [`Turns::run_once`] says what
//! to do now; the dispatcher does it.

mod shares;

use crate::attempt::Start;
use crate::gates::{Entrance, Gates};
use crate::lane::{Awake, Entry, FixedMap, Lane, Place, Queue, Readiness, Reading, Room, Standing, Throttle};
use crate::options::Options;
use crate::outlook::{Outlook, Question};
use crate::target::Target;
use aldaba_delivery::{AppId, Delivery, EndpointId, Health, OrgId, Passability, Reason, Timestamp};
use aldaba_store::{DueQuery, Record, Seq, Waiting};
use shares::{Leave, Shares};
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
    pub(crate) lanes: FixedMap<EndpointId, Box<Lane>>,
    /// How many of them are awake. Past the limit those that only wait are put to rest.
    awake: usize,
    /// What their buffers hold together.
    room: Room,
    pub(crate) gates: Gates,
    /// Ready lanes in the order of their turns, by what is known of their receivers.
    /// A later ticket is a later turn.
    ready: [BTreeMap<u64, EndpointId>; Queue::ALL.len()],
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

/// What is to be done now.
pub(crate) enum Action {
    /// Read the endpoint of a lane.
    Read(EndpointId),
    Refill(DueQuery),
    Attempt(Start),
    /// End a delivery without sending it.
    End(Start, Reason),
}

/// What an attempt is told that had to wait for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayStart {
    Yes,
    /// Ask again at this moment: its endpoint gets no more than so many requests a second.
    At(Timestamp),
    /// Something came in between.
    No,
}

/// What a lane's turn came to.
enum Turn {
    Act(Action),
    Later,
    /// The lane has to wake up: its endpoint is to be read.
    Wakes,
    /// It is waking up, and keeps the place that it was given.
    Fetches,
    /// The overall cap is reached; the lane keeps its turn.
    Full,
    /// The application's share of it is used up; the lane waits for one of its deliveries to end.
    Parked(AppId),
}

impl Turns {
    pub(crate) fn new(options: Options, gates: Gates) -> Self {
        Self {
            shares: Shares::new(options.in_flight),
            room: Room::new(options.lane_bytes),
            options,
            lanes: FixedMap::default(),
            awake: 0,
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

    /// What is known of an endpoint that has something in flight.
    pub(crate) fn health(&mut self, endpoint: EndpointId) -> Option<(&mut Health, &mut Gates)> {
        let awake = self.lanes.get_mut(&endpoint)?.awake.as_mut()?;
        Some((&mut awake.health, &mut self.gates))
    }

    /// News of a waiting delivery. A lane that is not in memory is opened.
    pub(crate) fn offer(&mut self, endpoint: EndpointId, app: AppId, entry: Entry, now: Timestamp) {
        self.lane(endpoint, app, now).backlog.offer(entry);
        self.wake(endpoint);
    }

    /// Opens a lane that has work in the store.
    pub(crate) fn open(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        if !self.lanes.contains_key(&endpoint) {
            self.lane(endpoint, app, now);
            self.wake(endpoint);
        }
    }

    fn lane(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) -> &mut Lane {
        let (options, room) = (&self.options, &self.room);
        self.lanes.entry(endpoint).or_insert_with(|| Box::new(Lane::new(app, options, room, now)))
    }

    /// The endpoint of a lane has been read, for the first time or anew. A lane that is awake keeps
    /// the health that it knows: it is the only one to change it. What was read before a change counts
    /// for nothing, and is read once more.
    pub(crate) fn opened(&mut self, endpoint: EndpointId, target: Target, health: Health, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if lane.reading == Reading::Outdated {
            lane.reading = Reading::Wanted;
        } else {
            lane.reading = Reading::Done;
            lane.deleted |= target.deleted;
            lane.backlog.set_fifo(target.ordering.is_fifo());
            if lane.throttle.as_ref().map(|throttle| throttle.rate()) != target.throttle_rate {
                lane.throttle = target.throttle_rate.map(|rate| Box::new(Throttle::new(rate, now)));
            }
            let target = Arc::new(target);
            let awake = match &mut lane.awake {
                Some(awake) => {
                    awake.target = target;
                    // But what a hand has made of it counts.
                    if awake.health.epoch != health.epoch {
                        let quiet_until = awake.health.quiet_until.max(health.quiet_until);
                        awake.health = Health { quiet_until, ..health };
                    }
                    awake
                }
                none => {
                    self.awake += 1;
                    none.insert(Box::new(Awake { target, health }))
                }
            };
            // A block ends with the ordering that asked for it.
            if !awake.target.ordering.blocks() {
                awake.health = awake.health.unblocked(now);
            }
        }
        self.wake(endpoint);
    }

    /// The endpoint was changed. A lane in memory sends nothing until it has read it again.
    pub(crate) fn altered(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        lane.reading = match lane.reading {
            Reading::Done | Reading::Wanted => Reading::Wanted,
            Reading::UnderWay | Reading::Outdated => Reading::Outdated,
        };
        self.wake(endpoint);
    }

    /// What is held for an endpoint is let go. A lane that is not in memory is opened for that.
    pub(crate) fn resumed(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.open(endpoint, app, now);
        self.altered(endpoint);
    }

    /// A policy was changed: lanes that know it read their endpoints, and with them the policy, before
    /// they send again.
    pub(crate) fn policy_changed(&mut self, org: OrgId, name: &str) {
        self.alter_all(|target| target.org == org && target.policy.name == name);
    }

    /// The same for a wire profile.
    pub(crate) fn profile_changed(&mut self, org: OrgId, name: &str) {
        self.alter_all(|target| target.org == org && target.profile.name() == name);
    }

    fn alter_all(&mut self, which: impl Fn(&Target) -> bool) {
        let altered = |lane: &Lane| lane.awake.as_ref().is_some_and(|awake| which(&awake.target));
        let mut endpoints: Vec<_> =
            self.lanes.iter().filter(|(_, lane)| altered(lane)).map(|(endpoint, _)| *endpoint).collect();
        endpoints.sort_unstable();
        for endpoint in endpoints {
            self.altered(endpoint);
        }
    }

    /// The endpoint was deleted: nothing more is sent, and what waits ends. A lane that is not in
    /// memory is opened for that.
    pub(crate) fn removed(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.lane(endpoint, app, now).deleted = true;
        self.wake(endpoint);
    }

    /// The endpoint has no row: nothing can wait for it.
    pub(crate) fn vanished(&mut self, endpoint: EndpointId) {
        if self.lanes.get(&endpoint).is_some_and(|lane| lane.backlog.has_flights()) {
            return;
        }
        self.unclaim(endpoint);
        if let Some(lane) = self.lanes.remove(&endpoint) {
            self.awake -= usize::from(lane.awake.is_some());
            self.unpark(lane.app);
        }
    }

    pub(crate) fn refilled(&mut self, endpoint: EndpointId, rows: &[Waiting], limit: usize) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.refilled(rows, limit);
        }
        self.wake(endpoint);
        self.refills = self.refills.saturating_sub(1);
    }

    /// Whether a delivery that has had its turn, and then had to wait for its payload, may still go.
    pub(crate) fn may_start(&mut self, start: &Start, now: Timestamp) -> MayStart {
        let Some(lane) = self.lanes.get_mut(&start.endpoint) else {
            return MayStart::No;
        };
        let lane_open = match lane.awake.as_deref().map(|awake| awake.passability(now)) {
            Some(Passability::Open) => true,
            Some(Passability::Probe) => lane.probing == Some(start.waiting.seq),
            Some(Passability::Held(_)) | None => false,
        };
        // What the endpoint was changed to since then counts.
        let same = |awake: &Awake| Arc::ptr_eq(&awake.target, &start.target);
        let current = lane.reading == Reading::Done && lane.awake.as_deref().is_some_and(same);
        if self.halted || lane.deleted || !current || !lane_open || !self.gates.still_open(start, now) {
            return MayStart::No;
        }
        match lane.throttle.as_mut().map_or(Ok(()), |throttle| throttle.start(now)) {
            Ok(()) => MayStart::Yes,
            Err(at) => MayStart::At(at),
        }
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
        let awake = self.lanes.get(&record.endpoint).and_then(|lane| lane.awake.as_ref());
        if let (Some(health), Some(awake)) = (&mut record.health, awake) {
            health.clone_from(&awake.health);
        }
        for gate in &mut record.gates {
            *gate = self.gates.record(&gate.origin, gate.scope);
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
        self.rest(endpoint);
    }

    /// Takes a waiting delivery out of its lane, to be ended unsent. `None`: it is in flight.
    pub(crate) fn withdraw(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        read: Waiting,
        now: Timestamp,
    ) -> Option<Waiting> {
        self.lane(endpoint, app, now).backlog.withdraw(read)
    }

    /// What was to be ended is on disk as ended, or it was not what it was thought to be.
    pub(crate) fn withdrawn(&mut self, endpoint: EndpointId, seq: Seq, ended: bool, now: Timestamp) {
        self.landed(endpoint, seq, None, now);
        if !ended && let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.start_over();
            self.wake(endpoint);
        }
    }

    /// What a delivery waits for besides its due time, as far as only memory knows.
    pub(crate) fn outlook(&mut self, question: &Question, now: Timestamp) -> Outlook {
        let Question { app, endpoint, seq, origin, policy } = question;
        let lane = self.lanes.get_mut(endpoint);
        let throttle = lane.as_ref().is_some_and(|lane| lane.throttle.is_some());
        Outlook {
            in_flight: lane.as_ref().is_some_and(|lane| lane.backlog.is_in_flight(*seq)),
            hold: self.gates.hold(origin, *app, policy, now),
            throttled_until: lane
                .filter(|_| throttle)
                .and_then(|lane| lane.throttle.as_mut()?.ready(now).err()),
            paused: self.halted,
        }
    }

    /// Puts a lane among the ready ones of its queue, if it is not there.
    pub(crate) fn wake(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if let Some(alarm) = lane.alarm.take() {
            self.alarms.remove(&(alarm, endpoint));
        }
        let queue = lane.queue();
        match lane.place {
            Place::Ready(now_in, _) if now_in == queue => return,
            // It is woken when a place comes free; one that has come to answer need not wait for it.
            Place::Parked if queue != Queue::Answers => return,
            Place::Ready(now_in, ticket) => drop(self.ready[now_in as usize].remove(&ticket)),
            Place::Parked | Place::Nowhere => {}
        }
        lane.place = Place::Ready(queue, self.next_ticket);
        self.ready[queue as usize].insert(self.next_ticket, endpoint);
        self.next_ticket += 1;
    }

    /// Forgets lanes that have had nothing to do for a while; whatever they may get later than
    /// `horizon` is found by a sweep.
    pub(crate) fn forget_idle(&mut self, now: Timestamp, horizon: Timestamp) {
        let idle = self.options.lane_idle;
        let (alarms, awake) = (&mut self.alarms, &mut self.awake);
        self.lanes.retain(|endpoint, lane| {
            let keep = lane.place != Place::Nowhere
                || now.since(lane.idle_since) < idle
                || !lane.can_be_forgotten(horizon);
            if !keep && let Some(alarm) = lane.alarm {
                alarms.remove(&(alarm, *endpoint));
            }
            *awake -= usize::from(!keep && lane.awake.is_some());
            keep
        });
        self.gates.forget_idle(now);
    }

    /// Gives turns until nobody can use one, everything is in use, or enough has been handed out.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.ring(now);
        self.quench();
        // Those have had their turn already; the other queues take turns as well, so that none waits
        // for another to run dry.
        while actions.len() < ACTIONS && self.serve(Queue::Claimed, now, &mut actions) {}
        let mut open = vec![Queue::Answers, Queue::Fresh, Queue::Slow];
        while actions.len() < ACTIONS && !open.is_empty() {
            open.retain(|queue| self.serve(*queue, now, &mut actions));
        }
        actions
    }

    /// Whether another [`Turns::run_once`] at the same moment could find more to do.
    pub(crate) fn has_ready(&self) -> bool {
        let could_go = |queue: &Queue| match queue {
            Queue::Claimed => true,
            Queue::Answers => self.shares.any(Standing::Answers),
            Queue::Fresh => self.shares.any(Standing::Fresh),
            Queue::Slow => self.shares.any(Standing::Slow),
        };
        !self.halted
            && Queue::ALL.iter().any(|queue| !self.ready[*queue as usize].is_empty() && could_go(queue))
    }

    /// One turn from one of the queues. `false`: nothing more is to be had there now.
    fn serve(&mut self, queue: Queue, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let Some((ticket, endpoint)) = self.ready[queue as usize].pop_first() else {
            return false;
        };
        self.put(endpoint, Place::Nowhere);
        let turn = self.turn(endpoint, now);
        if let Turn::Wakes = turn {
            actions.push(Action::Read(endpoint));
        }
        if let Some(query) = self.refill(endpoint, now) {
            actions.push(Action::Refill(query));
        }
        match turn {
            Turn::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
            }
            Turn::Wakes | Turn::Fetches => {}
            Turn::Later => {
                // It may have been woken for a place that it does not use. The next one gets its turn even
                // if others have filled everything by now: among the ready it waits for them, parked it
                // would wait for its own application, which may have nothing left in flight.
                if let Some(lane) = self.lanes.get(&endpoint)
                    && self.shares.leave(lane.app, lane.pace.standing()) != Leave::AppFull
                {
                    self.unpark(lane.app);
                }
                self.rest(endpoint);
            }
            Turn::Full => {
                // One that had a place has given it back, and waits with those of its standing.
                let now_in = self.lanes.get(&endpoint).map_or(queue, |lane| lane.queue());
                self.put(endpoint, Place::Ready(now_in, ticket));
                self.ready[now_in as usize].insert(ticket, endpoint);
                return queue == Queue::Claimed;
            }
            Turn::Parked(app) => {
                self.park(endpoint, app);
                self.rest(endpoint);
            }
        }
        true
    }

    /// Puts a lane to rest that only waits, if too many are awake.
    fn rest(&mut self, endpoint: EndpointId) {
        if self.awake <= self.options.lanes_awake {
            return;
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && lane.awake.is_some()
            && lane.can_rest()
        {
            lane.rest();
            self.awake -= 1;
        }
    }

    /// Gives the place back that a lane holds while it wakes up.
    fn unclaim(&mut self, endpoint: EndpointId) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && let Some(standing) = lane.claims.take()
        {
            self.shares.unclaim(lane.app, standing);
        }
    }

    fn put(&mut self, endpoint: EndpointId, place: Place) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = place;
        }
    }

    /// A lane waits for one of its application's deliveries to end. It may have left that line before its
    /// turn in it, and then still stands there.
    fn park(&mut self, endpoint: EndpointId, app: AppId) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = Place::Parked;
            if !std::mem::replace(&mut lane.lined_up, true) {
                self.shares.park(app, endpoint);
            }
        }
    }

    /// A place of an application has come free: the first of its lanes that still waits for one gets
    /// its turn.
    fn unpark(&mut self, app: AppId) {
        while let Some(endpoint) = self.shares.next_parked(app) {
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            lane.lined_up = false;
            if lane.place == Place::Parked {
                self.put(endpoint, Place::Nowhere);
                self.wake(endpoint);
                return;
            }
        }
    }

    fn turn(&mut self, endpoint: EndpointId, now: Timestamp) -> Turn {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        if lane.claims.is_some() {
            if lane.reading == Reading::Wanted {
                lane.reading = Reading::UnderWay;
                return Turn::Wakes;
            }
            let until = if lane.deleted { Timestamp::MAX } else { now };
            if lane.is_fetching() || !lane.backlog.has_entry() && lane.backlog.wants_refill(until) {
                return Turn::Fetches;
            }
        }
        self.unclaim(endpoint);
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let (app, standing) = (lane.app, lane.pace.standing());
        let readiness = lane.readiness(now, self.options.held);
        let probe = match readiness {
            Readiness::Waits => return Turn::Later,
            Readiness::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Later;
            }
            Readiness::Ends(reason) => return self.end(endpoint, reason),
            Readiness::Wakes => false,
            Readiness::Ready { probe } => probe,
        };
        match self.shares.leave(app, standing) {
            Leave::Yes if !self.halted => {}
            Leave::Yes | Leave::Full => return Turn::Full,
            Leave::AppFull => return Turn::Parked(app),
        }
        let (target, released_at) = match (&lane.awake, readiness) {
            (Some(awake), Readiness::Ready { .. }) => (awake.target.clone(), awake.health.released_at),
            _ => {
                lane.claims = Some(standing);
                lane.reading = Reading::UnderWay;
                self.shares.claim(app, standing);
                return Turn::Wakes;
            }
        };
        let Some(head) = lane.backlog.head(now) else {
            return Turn::Later;
        };
        let mut head = *head;
        // The stop date counts from when it was let go; and one attempt is owed to what had to wait for that.
        head.clock_start = released_at.map_or(head.clock_start, |at| at.max(head.clock_start));
        let owed = released_at.is_some_and(|at| head.due_at <= at);
        let delivery = Delivery { attempts: head.attempts, clock_start: head.clock_start };
        let overdue = |at| !owed && delivery.overdue(&target.policy, at);
        if overdue(now) {
            return self.end(endpoint, Reason::StopDate);
        }
        let seq = head.seq;
        match self.gates.enter(endpoint, seq, &target, now) {
            Entrance::Open => {}
            Entrance::Waits => return Turn::Later,
            // A hold moves the next attempt; past the stop date there is none.
            Entrance::At(at) if overdue(at) => {
                return self.end(endpoint, Reason::StopDate);
            }
            Entrance::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Later;
            }
        }
        let Some(mut entry) = lane.backlog.take(now) else {
            return Turn::Later;
        };
        entry.waiting = head;
        if let Some(ramp) = &mut lane.ramp {
            ramp.take();
        }
        if let Some(throttle) = &mut lane.throttle {
            throttle.take(entry.content.is_some());
        }
        lane.pace.started();
        if probe {
            lane.probing = Some(entry.waiting.seq);
        }
        Turn::Act(Action::Attempt(self.start(endpoint, target, entry, standing)))
    }

    /// Ends the head without sending it.
    fn end(&mut self, endpoint: EndpointId, reason: Reason) -> Turn {
        if self.halted || !self.shares.any(Standing::Answers) {
            return Turn::Full;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let target = lane.awake.as_ref().map(|awake| awake.target.clone());
        let (Some(target), Some(entry)) = (target, lane.backlog.take_any()) else {
            return Turn::Later;
        };
        let start = self.start(endpoint, target, entry, Standing::Answers);
        Turn::Act(Action::End(start, reason))
    }

    fn start(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        entry: Entry,
        standing: Standing,
    ) -> Start {
        self.shares.take(entry.waiting.seq, target.app, standing);
        Start { endpoint, target, waiting: entry.waiting, content: entry.content, standing }
    }

    /// A refill for a lane that wants one, or a place in the line for it.
    fn refill(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<DueQuery> {
        let lane = self.lanes.get_mut(&endpoint)?;
        if lane.awake.is_none() && lane.claims.is_none() {
            // It has no use for it before its turn.
            return None;
        }
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
        Some(DueQuery { endpoint, ordered: lane.backlog.is_fifo(), after, limit })
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
