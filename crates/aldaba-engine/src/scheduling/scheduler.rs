//! Whose turn it is: the ready lanes, the alarms of the others, and the overall cap.
//!
//! Nothing here waits or does IO. Every method changes the state and [`Scheduler::run_once`] says what
//! to do now; the dispatcher does it.

mod app_throttle;
mod expiry;
mod fair_queue;
mod origins;
mod pass;
mod shares;

use crate::ClockTrust;
use crate::delivering::AttemptRequest;
use crate::delivering::Target;
use crate::options::Options;
use crate::scheduling::expiry::ExpirySearch;
use crate::scheduling::gates::Gates;
use crate::scheduling::lane::{
    Awake, BufferBudget, BufferedDelivery, FixedMap, FixedSet, Lane, LaneState, Reading, ReadyQueue, Throttle,
};
use crate::scheduling::wait_reasons::{WaitQuestion, WaitReasons};
use aldaba_delivery::{AppId, EndpointId, Health, OrgId, Reason, Timestamp};
use aldaba_store::{DueQuery, PendingDelivery, Record, Seq};
use app_throttle::AppThrottles;
use origins::Origins;
pub(crate) use shares::LaneOwner;
use shares::Shares;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Scheduler {
    options: Options,
    pub(crate) lanes: FixedMap<EndpointId, Box<Lane>>,
    /// How many of them are awake. Past the limit those that only wait are put to rest.
    awake: usize,
    /// What their buffers hold together.
    room: BufferBudget,
    pub(crate) gates: Gates,
    /// Ready lanes in the order of their scheduler, by what is known of their receivers.
    /// A later ticket is a later turn.
    ready: [BTreeMap<u64, EndpointId>; ReadyQueue::ALL.len()],
    next_ticket: u64,
    alarms: BTreeSet<(Timestamp, EndpointId)>,
    /// When lanes are to be searched for deliveries past their stop date, and how many searches are under way.
    searches: BTreeSet<(Timestamp, EndpointId)>,
    searching: usize,
    throttles: AppThrottles,
    /// Deliveries taken and not yet recorded.
    shares: Shares,
    /// Requests in flight to each origin.
    origins: Origins,
    /// How many refills are under way, and the lanes that wait for one to end.
    refills: usize,
    awaits_refill: VecDeque<EndpointId>,
    /// Applications that were deleted: nothing more is sent by any of their lanes. Each is remembered as long as it has
    /// lanes; one that is opened later reads of it.
    gone: FixedSet<AppId>,
    /// Nothing more is started: the store cannot be written, or the server stops.
    pub(crate) halted: bool,
    /// Whether deliveries may end by time.
    pub(crate) trust: ClockTrust,
}

/// What is to be done now.
pub(crate) enum Action {
    /// Read the endpoint of a lane.
    Read(EndpointId),
    Refill(DueQuery),
    Attempt(AttemptRequest),
    /// AttemptEnd a delivery without sending it.
    End(AttemptRequest, Reason),
    /// AttemptEnd what waits for an endpoint and is past its stop date.
    Search(ExpirySearch),
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

impl Scheduler {
    pub(crate) fn new(options: Options, gates: Gates) -> Self {
        Self {
            shares: Shares::new(options.in_flight),
            origins: Origins::new(options.requests_per_origin),
            room: BufferBudget::new(options.lane_bytes),
            options,
            lanes: FixedMap::default(),
            awake: 0,
            gates,
            ready: Default::default(),
            next_ticket: 0,
            alarms: BTreeSet::new(),
            searches: BTreeSet::new(),
            searching: 0,
            throttles: AppThrottles::default(),
            refills: 0,
            awaits_refill: VecDeque::new(),
            gone: FixedSet::default(),
            halted: false,
            trust: ClockTrust::default(),
        }
    }

    /// How many deliveries are taken and not yet recorded.
    pub(crate) fn in_flight(&self) -> usize {
        self.shares.in_flight()
    }

    /// How many lanes there are, and deleted applications that are remembered for theirs.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.lanes.len(), self.gone.len())
    }

    /// When something is next due that no news will announce.
    pub(crate) fn next_alarm(&self, now: Timestamp) -> Option<Timestamp> {
        let own = self.alarms.first().map(|(at, _)| *at);
        own.into_iter().chain(self.throttles.next_alarm()).chain(self.next_search(now)).min()
    }

    /// What is known of an endpoint that has something in flight.
    pub(crate) fn health(&mut self, endpoint: EndpointId) -> Option<(&mut Health, &mut Gates)> {
        let awake = self.lanes.get_mut(&endpoint)?.awake.as_mut()?;
        Some((&mut awake.health, &mut self.gates))
    }

    /// News of a waiting delivery. A lane that is not in memory is opened.
    pub(crate) fn offer(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        entry: BufferedDelivery,
        now: Timestamp,
    ) {
        let lane = self.lane(endpoint, app, now);
        lane.expiry.offered(entry.waiting.clock_start);
        lane.backlog.offer(entry);
        self.plan_search(endpoint, now, now);
        self.wake(endpoint);
    }

    /// Due times of a lane were corrected in the store: what it knows of them counts for nothing. A lane that is not
    /// in memory is opened.
    pub(crate) fn rescheduled(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.lane(endpoint, app, now).backlog.rescheduled();
        self.wake(endpoint);
    }

    /// The clock went back, and by much: moments that were set by it may be far ahead. Every lane looks again at what
    /// it waits for, and rates are counted anew.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        self.throttles = AppThrottles::default();
        let mut endpoints: Vec<_> = self.lanes.keys().copied().collect();
        endpoints.sort_unstable();
        for endpoint in endpoints {
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            lane.token = false;
            lane.ramp = None;
            lane.idle_since = now;
            if let Some(throttle) = &mut lane.throttle {
                **throttle = Throttle::new(throttle.rate(), now);
            }
            if lane.place == LaneState::AwaitsRate {
                lane.place = LaneState::Waiting;
            }
            lane.backlog.start_over();
            if lane.expiry.alarm.is_some() {
                lane.expiry.altered();
                self.search_at(endpoint, Timestamp::MIN);
            }
            self.wake(endpoint);
        }
    }

    /// Opens a lane that has work in the store.
    pub(crate) fn open(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        if !self.lanes.contains_key(&endpoint) {
            self.lane(endpoint, app, now);
            self.plan_search(endpoint, now, now);
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
            if target.deleted {
                lane.delete();
            }
            lane.expiry.policy_read(target.policy.limit.stop_after);
            lane.backlog.set_ordered(target.ordering.is_fifo() && !lane.deleted);
            if lane.throttle.as_ref().map(|throttle| throttle.rate()) != target.throttle_rate {
                lane.throttle = target.throttle_rate.map(|rate| Box::new(Throttle::new(rate, now)));
            }
            let target = Arc::new(target);
            let awake = match &mut lane.awake {
                Some(awake) => {
                    awake.target = target;
                    awake.health = awake.health.reconciled(&health);
                    awake
                }
                none => {
                    self.awake += 1;
                    none.insert(Box::new(Awake { target, health }))
                }
            };
            let ordering = awake.target.ordering;
            if let Some(health) = awake.health.after_ordering_change(ordering, ordering, now) {
                awake.health = health;
            }
            self.plan_search(endpoint, now, now);
        }
        self.wake(endpoint);
    }

    /// The endpoint was changed. A lane in memory sends nothing until it has read it again.
    pub(crate) fn altered(&mut self, endpoint: EndpointId) {
        // Stop dates may be earlier ones now, also of what is not due for long.
        if self.lanes.get(&endpoint).is_none_or(|lane| lane.backlog.next_due().is_some()) {
            self.search_at(endpoint, Timestamp::MIN);
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        lane.expiry.altered();
        lane.reading = match lane.reading {
            Reading::Done | Reading::Wanted => Reading::Wanted,
            Reading::UnderWay | Reading::Outdated => Reading::Outdated,
        };
        // It may lead to another origin now.
        if let LaneState::AwaitsOrigin(_) = lane.place {
            lane.place = LaneState::Waiting;
        }
        // In order nothing goes before the head's time. Whether that still holds is not known yet, and what
        // is due must not wait for it.
        if lane.backlog.is_ordered() {
            lane.backlog.start_over();
        }
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
        self.search_all_at_rest();
    }

    /// The same for a wire profile.
    pub(crate) fn profile_changed(&mut self, org: OrgId, name: &str) {
        self.alter_all(|target| target.org == org && target.profile.name() == name);
    }

    /// The same for an application's rate.
    pub(crate) fn application_changed(&mut self, app: AppId) {
        self.alter_all(|target| target.app == app);
        for endpoint in self.throttles.dissolve(app) {
            self.leave_line(endpoint);
        }
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
        self.lane(endpoint, app, now).delete();
        self.wake(endpoint);
    }

    /// The same for all endpoints of an application, however many there are: each lane learns of it at its next turn. What
    /// waits for later is ended by somebody else (`housekeeping/orphans.rs`).
    pub(crate) fn application_removed(&mut self, app: AppId) {
        self.gone.insert(app);
    }

    /// The endpoint has no row: nothing can wait for it.
    pub(crate) fn vanished(&mut self, endpoint: EndpointId, now: Timestamp) {
        if self.lanes.get(&endpoint).is_some_and(|lane| lane.backlog.has_flights()) {
            return;
        }
        self.release_slot(endpoint);
        self.release_origin_slot(endpoint);
        self.gates.left(endpoint);
        if let Some(lane) = self.lanes.remove(&endpoint) {
            self.awake -= usize::from(lane.awake.is_some());
            if let Some(alarm) = lane.expiry.alarm {
                self.searches.remove(&(alarm, endpoint));
            }
            if lane.token {
                self.throttles.give_back(lane.app, now);
            }
            self.unpark(lane.app);
        }
    }

    pub(crate) fn refilled(&mut self, endpoint: EndpointId, rows: &[PendingDelivery], limit: usize) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.refilled(rows, limit);
        }
        self.wake(endpoint);
        self.refills = self.refills.saturating_sub(1);
    }

    /// Whether a delivery that has had its turn, and then had to wait for its payload, may still go.
    pub(crate) fn may_start(&mut self, start: &AttemptRequest, now: Timestamp) -> MayStart {
        let Some(lane) = self.lanes.get_mut(&start.endpoint) else {
            return MayStart::No;
        };
        let is_probe = lane.probing == Some(start.waiting.seq);
        let admits_start = |awake: &Awake| awake.state().availability(now).admits_start(is_probe);
        let lane_open = lane.awake.as_deref().is_some_and(admits_start);
        // What the endpoint was changed to since then counts.
        let same = |awake: &Awake| Arc::ptr_eq(&awake.target, &start.target);
        let current = lane.reading == Reading::Done && lane.awake.as_deref().is_some_and(same);
        let deleted = lane.deleted || self.gone.contains(&lane.app);
        if self.halted || deleted || !current || !lane_open || !self.gates.still_open(start, now) {
            return MayStart::No;
        }
        let own = lane.throttle.as_mut().map_or(Ok(()), |throttle| throttle.may_start(now));
        let of_app = start.target.app_rate.map_or(Ok(()), |_| self.throttles.may_start(lane.app, now));
        if let Err(at) = own.and(of_app) {
            return MayStart::At(at);
        }
        if let Some(throttle) = &mut lane.throttle {
            throttle.started();
        }
        if start.target.app_rate.is_some() {
            self.throttles.started(lane.app);
        }
        MayStart::Yes
    }

    /// A request has left the wire: its lane may have room for another.
    pub(crate) fn left_wire(&mut self, endpoint: EndpointId, seq: Seq, answered: Option<(bool, Duration)>) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            match answered {
                Some((true, took)) => lane.pace.answered(took),
                Some((false, _)) => lane.pace.unanswered(),
                None => lane.pace.abandoned(),
            }
            if lane.probing == Some(seq) {
                lane.probing = None;
            }
        }
        // What others wait for goes to them first.
        if let Some((key, app)) = self.origins.give_back(seq) {
            self.unpark_origin(&key, app);
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
            *gate = self.gates.record(&gate.key);
        }
    }

    /// A delivery's change is on disk.
    pub(crate) fn recorded(
        &mut self,
        endpoint: EndpointId,
        seq: Seq,
        again: Option<PendingDelivery>,
        now: Timestamp,
    ) {
        if let Some(app) = self.shares.give_back(seq) {
            self.unpark(app);
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            if let Some(again) = &again {
                lane.expiry.offered(again.clock_start);
            }
            lane.backlog.recorded(seq, again);
            lane.expiry.recorded();
            lane.idle_since = now;
        }
        if again.is_some() {
            self.plan_search(endpoint, now, now);
        }
        self.wake(endpoint);
        self.rest(endpoint);
    }

    /// Takes a waiting delivery out of its lane, to be ended unsent. `None`: it is in flight.
    pub(crate) fn withdraw(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        read: PendingDelivery,
        now: Timestamp,
    ) -> Option<PendingDelivery> {
        if self.gone.contains(&app) && !self.lanes.contains_key(&endpoint) {
            // Nobody sends it meanwhile: it needs no lane.
            return Some(read);
        }
        self.lane(endpoint, app, now).backlog.withdraw(read)
    }

    /// What was to be ended is on disk as ended, or it was not what it was thought to be.
    pub(crate) fn withdrawn(&mut self, endpoint: EndpointId, seq: Seq, ended: bool, now: Timestamp) {
        self.recorded(endpoint, seq, None, now);
        if !ended && let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.start_over();
            lane.expiry.start_over();
            self.plan_search(endpoint, now, now);
            self.wake(endpoint);
        }
    }

    /// What a delivery waits for besides its due time, as far as only memory knows.
    pub(crate) fn wait_reasons(&mut self, question: &WaitQuestion, now: Timestamp) -> WaitReasons {
        let WaitQuestion { app, endpoint, seq, .. } = question;
        let lane = self.lanes.get_mut(endpoint);
        let throttle = lane.as_ref().is_some_and(|lane| lane.throttle.is_some());
        let in_line = lane.as_ref().is_some_and(|lane| lane.place == LaneState::AwaitsRate);
        WaitReasons {
            origin_busy: lane.as_ref().is_some_and(|lane| matches!(lane.place, LaneState::AwaitsOrigin(_))),
            in_flight: lane.as_ref().is_some_and(|lane| lane.backlog.is_in_flight(*seq)),
            hold: self.gates.hold(question, now),
            throttled_until: lane
                .filter(|_| throttle)
                .and_then(|lane| lane.throttle.as_mut()?.ready(now).err()),
            app_throttled_until: if in_line {
                self.throttles.held(*app, now).map(|(_, until)| until)
            } else {
                None
            },
            paused: self.halted,
        }
    }

    /// Since when deliveries that are due have had to wait for the rate of an endpoint or of its application.
    pub(crate) fn throttled_since(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Timestamp> {
        let lane = self.lanes.get(&endpoint)?;
        let own = lane.throttle.as_ref().and_then(|throttle| throttle.held_since());
        let in_line = lane.place == LaneState::AwaitsRate;
        let of_app = in_line.then(|| self.throttles.held(lane.app, now)).flatten().map(|(since, _)| since);
        own.into_iter().chain(of_app).min()
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
            LaneState::Ready(now_in, _) if now_in == queue => return,
            // It is woken when a place comes free; one that has come to answer need not wait for it.
            LaneState::AwaitsShare if queue != ReadyQueue::Responsive => return,
            // The same, unless there is more room for what it has become.
            LaneState::AwaitsOrigin(lane_class) if !lane.deleted && lane_class == lane.pace.lane_class() => {
                return;
            }
            // It is called when its turn has come; what ends without being sent need not wait for that.
            LaneState::AwaitsRate if !lane.deleted => return,
            LaneState::Ready(now_in, ticket) => drop(self.ready[now_in as usize].remove(&ticket)),
            LaneState::AwaitsShare
            | LaneState::AwaitsOrigin(_)
            | LaneState::AwaitsRate
            | LaneState::Waiting => {}
        }
        lane.place = LaneState::Ready(queue, self.next_ticket);
        self.ready[queue as usize].insert(self.next_ticket, endpoint);
        self.next_ticket += 1;
    }

    /// Forgets lanes that have had nothing to do for a while; whatever they may get later than
    /// `horizon` is found by a sweep.
    pub(crate) fn forget_idle(&mut self, now: Timestamp, horizon: Timestamp) {
        let idle = self.options.lane_idle;
        let (alarms, searches) = (&mut self.alarms, &mut self.searches);
        let (awake, gates) = (&mut self.awake, &mut self.gates);
        let mut gone = FixedSet::default();
        self.lanes.retain(|endpoint, lane| {
            let keep = lane.place != LaneState::Waiting
                || now.since(lane.idle_since) < idle
                || !lane.can_be_forgotten(horizon);
            if !keep && let Some(alarm) = lane.alarm {
                alarms.remove(&(alarm, *endpoint));
            }
            if !keep && let Some(alarm) = lane.expiry.alarm {
                searches.remove(&(alarm, *endpoint));
            }
            *awake -= usize::from(!keep && lane.awake.is_some());
            if !keep {
                gates.left(*endpoint);
            }
            if keep && self.gone.contains(&lane.app) {
                gone.insert(lane.app);
            }
            keep
        });
        self.gone = gone;
        self.gates.forget_idle(now);
        self.throttles.forget_idle(now);
    }
}

#[cfg(test)]
mod tests;
