//! The scheduler: selects which lanes send next, within all limits.
//!
//! Nothing here waits or does IO. Events change the state, and a scheduling pass ([`Scheduler::run_once`]) returns the actions
//! that the dispatcher carries out.

mod app_throttle;
mod expiry;
mod fair_queue;
mod origins;
mod pass;
mod ready_watch;
mod shares;

use crate::delivering::{AttemptRequest, Target};
use crate::options::Options;
use crate::scheduling::expiry::ExpirySearch;
use crate::scheduling::gates::Gates;
use crate::scheduling::lane::{
    Awake, BufferBudget, BufferedDelivery, EndpointEvent, EndpointRead, FixedMap, FixedSet, Lane, LaneEvent,
    LaneState, ReadyQueue, Throttle, Wake,
};
use crate::scheduling::wait_reasons::{WaitQuestion, WaitReasons};
use crate::{ClockTrust, SchedulerLoad};
use aldaba_delivery::{AppId, EndpointId, Health, OrgId, Reason, Timestamp};
use aldaba_store::{DueQuery, PendingDelivery, Record, Seq};
use app_throttle::AppThrottles;
use origins::Origins;
use ready_watch::ReadyWatch;
pub use ready_watch::SchedulingProgress;
pub(crate) use shares::LaneOwner;
use shares::Shares;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Scheduler {
    options: Options,
    pub(crate) lanes: FixedMap<EndpointId, Box<Lane>>,
    /// How many lanes are awake. Past `lanes_awake`, lanes that only wait become idle.
    awake: usize,
    /// What the buffers of all lanes hold.
    buffers: BufferBudget,
    pub(crate) gates: Gates,
    /// The lanes of each ready queue, by ticket: the lowest is selected first.
    ready: [BTreeMap<u64, EndpointId>; ReadyQueue::ALL.len()],
    next_ticket: u64,
    ready_watch: ReadyWatch,
    alarms: BTreeSet<(Timestamp, EndpointId)>,
    /// When lanes are to be searched for expired deliveries, and how many searches are running.
    searches: BTreeSet<(Timestamp, EndpointId)>,
    searching: usize,
    throttles: AppThrottles,
    /// Deliveries in flight, and the lanes that wait for a share of the in-flight limit.
    shares: Shares,
    /// Requests in flight to each origin.
    origins: Origins,
    /// How many refills are running, and the lanes that wait for one.
    refills: usize,
    refill_queue: VecDeque<EndpointId>,
    /// Deleted applications, each remembered as long as it has lanes. A lane that is opened later reads of the deletion.
    deleted_apps: FixedSet<AppId>,
    /// No attempt starts: the store cannot be written, or the server stops.
    pub(crate) halted: bool,
    /// Whether deliveries may end by time.
    pub(crate) trust: ClockTrust,
}

/// What the dispatcher is to do after a pass.
pub(crate) enum Action {
    /// Read the endpoint of a lane.
    Read(EndpointId),
    Refill(DueQuery),
    Attempt(AttemptRequest),
    /// End a delivery without sending it.
    End(AttemptRequest, Reason),
    /// Search a lane for expired deliveries, and end them.
    Search(ExpirySearch),
}

/// The answer to an attempt that had to wait for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayStart {
    Yes,
    /// Ask again at this moment: a rate is used up.
    At(Timestamp),
    /// Something has changed since the delivery was selected.
    No,
}

impl Scheduler {
    pub(crate) fn new(options: Options, gates: Gates) -> Self {
        Self {
            shares: Shares::new(options.in_flight),
            origins: Origins::new(options.requests_per_origin),
            buffers: BufferBudget::new(options.lane_bytes),
            options,
            lanes: FixedMap::default(),
            awake: 0,
            gates,
            ready: Default::default(),
            next_ticket: 0,
            ready_watch: ReadyWatch::default(),
            alarms: BTreeSet::new(),
            searches: BTreeSet::new(),
            searching: 0,
            throttles: AppThrottles::default(),
            refills: 0,
            refill_queue: VecDeque::new(),
            deleted_apps: FixedSet::default(),
            halted: false,
            trust: ClockTrust::default(),
        }
    }

    /// How many deliveries are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.shares.in_flight()
    }

    pub(crate) fn load(&self) -> SchedulerLoad {
        SchedulerLoad {
            in_flight: self.in_flight(),
            awake_lanes: self.awake,
            idle_lanes: self.lanes.len().saturating_sub(self.awake),
            held_gates: self.gates.held_number(),
        }
    }

    /// How many lanes there are, and how many deleted applications are remembered for them.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.lanes.len(), self.deleted_apps.len())
    }

    /// When the next pass is due if no input comes before.
    pub(crate) fn next_alarm(&self, now: Timestamp) -> Option<Timestamp> {
        let own = self.alarms.first().map(|(at, _)| *at);
        own.into_iter().chain(self.throttles.next_alarm()).chain(self.next_search(now)).min()
    }

    /// The health of an endpoint with deliveries in flight, and the gates.
    pub(crate) fn health(&mut self, endpoint: EndpointId) -> Option<(&mut Health, &mut Gates)> {
        let awake = self.lanes.get_mut(&endpoint)?.awake.as_mut()?;
        Some((&mut awake.health, &mut self.gates))
    }

    /// Adds a pending delivery to its lane, which is opened if it is not in memory.
    pub(crate) fn enqueue(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        delivery: BufferedDelivery,
        now: Timestamp,
    ) {
        let lane = self.lane(endpoint, app, now);
        lane.expiry.enqueued(delivery.pending.clock_start);
        lane.backlog.enqueue(delivery);
        self.plan_search(endpoint, now, now);
        self.wake(endpoint);
    }

    /// The due times of a lane were corrected in the store: it reads them again. It is opened if it is not in memory.
    pub(crate) fn rescheduled(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.lane(endpoint, app, now).backlog.rescheduled();
        self.wake(endpoint);
    }

    /// The clock went back by much: moments that were set before may be far ahead. Every lane checks again what it waits for,
    /// and rates start anew.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        self.throttles = AppThrottles::default();
        let mut endpoints: Vec<_> = self.lanes.keys().copied().collect();
        endpoints.sort_unstable();
        for endpoint in endpoints {
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            lane.rate_token = false;
            lane.ramp = None;
            lane.idle_since = now;
            if let Some(throttle) = &mut lane.throttle {
                **throttle = Throttle::new(throttle.rate(), now);
            }
            if lane.state == LaneState::AwaitsRate {
                lane.transition(LaneEvent::Released);
            }
            lane.backlog.start_over();
            if lane.expiry.alarm.is_some() {
                lane.expiry.endpoint_changed();
                self.search_at(endpoint, Timestamp::MIN);
            }
            self.wake(endpoint);
        }
    }

    /// Opens a lane that has work in the store.
    pub(crate) fn open_lane(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        if !self.lanes.contains_key(&endpoint) {
            self.lane(endpoint, app, now);
            self.plan_search(endpoint, now, now);
            self.wake(endpoint);
        }
    }

    fn lane(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) -> &mut Lane {
        let (options, buffers) = (&self.options, &self.buffers);
        self.lanes.entry(endpoint).or_insert_with(|| Box::new(Lane::new(app, options, buffers, now)))
    }

    /// The endpoint of a lane was read. An awake lane keeps the health that it knows, because only it changes the health. A
    /// result that was read before a change is dropped, and the endpoint is read again.
    pub(crate) fn endpoint_read(
        &mut self,
        endpoint: EndpointId,
        target: Target,
        health: Health,
        now: Timestamp,
    ) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        lane.endpoint_transition(EndpointEvent::ReadEnds);
        if lane.endpoint_read == EndpointRead::Current {
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
    pub(crate) fn endpoint_changed(&mut self, endpoint: EndpointId) {
        // Stop dates may be earlier now, also those of deliveries that are due much later.
        if self.lanes.get(&endpoint).is_none_or(|lane| lane.backlog.next_due().is_some()) {
            self.search_at(endpoint, Timestamp::MIN);
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        lane.expiry.endpoint_changed();
        lane.endpoint_transition(EndpointEvent::Changes);
        // The URL may have another origin now.
        if let LaneState::AwaitsOrigin(_) = lane.state {
            lane.transition(LaneEvent::Released);
        }
        // An ordered lane sends nothing before its head is due. It may not be ordered any more, and then due deliveries must
        // not wait for the head.
        if lane.backlog.is_ordered() {
            lane.backlog.start_over();
        }
        self.wake(endpoint);
    }

    /// An endpoint was resumed: its held deliveries are sent. Its lane is opened if it is not in memory.
    pub(crate) fn endpoint_resumed(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.open_lane(endpoint, app, now);
        self.endpoint_changed(endpoint);
    }

    /// A policy was changed: awake lanes with it read their endpoints, and with them the policy, before they send again.
    pub(crate) fn policy_changed(&mut self, org: OrgId, name: &str) {
        self.endpoints_changed(|target| target.org == org && target.policy.name == name);
        self.search_idle_lanes();
    }

    /// The same for a wire profile.
    pub(crate) fn profile_changed(&mut self, org: OrgId, name: &str) {
        self.endpoints_changed(|target| target.org == org && target.profile.name() == name);
    }

    /// The same for the rate of an application.
    pub(crate) fn application_changed(&mut self, app: AppId) {
        self.endpoints_changed(|target| target.app == app);
        for endpoint in self.throttles.dissolve(app) {
            self.leave_rate_queue(endpoint);
        }
    }

    fn endpoints_changed(&mut self, which: impl Fn(&Target) -> bool) {
        let changed = |lane: &Lane| lane.awake.as_ref().is_some_and(|awake| which(&awake.target));
        let mut endpoints: Vec<_> =
            self.lanes.iter().filter(|(_, lane)| changed(lane)).map(|(endpoint, _)| *endpoint).collect();
        endpoints.sort_unstable();
        for endpoint in endpoints {
            self.endpoint_changed(endpoint);
        }
    }

    /// An endpoint was deleted: nothing more is sent, and its pending deliveries end. Its lane is opened if it is not in memory.
    pub(crate) fn endpoint_deleted(&mut self, endpoint: EndpointId, app: AppId, now: Timestamp) {
        self.lane(endpoint, app, now).delete();
        self.wake(endpoint);
    }

    /// The same for all endpoints of an application, however many they are: each lane learns of it when it is selected next.
    /// `housekeeping/orphans.rs` ends the deliveries that are not in memory.
    pub(crate) fn application_deleted(&mut self, app: AppId) {
        self.deleted_apps.insert(app);
    }

    /// The endpoint has no row: nothing can be pending for it.
    pub(crate) fn endpoint_missing(&mut self, endpoint: EndpointId, now: Timestamp) {
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
            if lane.rate_token {
                self.throttles.give_back(lane.app, now);
            }
            self.grant_freed(lane.app);
        }
    }

    /// A refill was read.
    pub(crate) fn refilled(&mut self, endpoint: EndpointId, rows: &[PendingDelivery], limit: usize) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.refilled(rows, limit);
        }
        self.wake(endpoint);
        self.refills = self.refills.saturating_sub(1);
    }

    /// Whether a selected delivery that had to wait for its payload may still be sent. `Yes` takes the tokens of the rates.
    pub(crate) fn may_start(&mut self, request: &AttemptRequest, now: Timestamp) -> MayStart {
        let Some(lane) = self.lanes.get_mut(&request.endpoint) else {
            return MayStart::No;
        };
        let is_probe = lane.probing == Some(request.pending.seq);
        let admits_start = |awake: &Awake| awake.state().availability(now).admits_start(is_probe);
        let lane_open = lane.awake.as_deref().is_some_and(admits_start);
        // A change of the endpoint since the selection counts.
        let same = |awake: &Awake| Arc::ptr_eq(&awake.target, &request.target);
        let current = lane.endpoint_read == EndpointRead::Current && lane.awake.as_deref().is_some_and(same);
        let deleted = lane.deleted || self.deleted_apps.contains(&lane.app);
        if self.halted || deleted || !current || !lane_open || !self.gates.still_open(request, now) {
            return MayStart::No;
        }
        let own = lane.throttle.as_mut().map_or(Ok(()), |throttle| throttle.may_start(now));
        let of_app = request.target.app_rate.map_or(Ok(()), |_| self.throttles.may_start(lane.app, now));
        if let Err(at) = own.and(of_app) {
            return MayStart::At(at);
        }
        if let Some(throttle) = &mut lane.throttle {
            throttle.started();
        }
        if request.target.app_rate.is_some() {
            self.throttles.started(lane.app);
        }
        MayStart::Yes
    }

    /// A request has left the wire: its lane may have capacity for another. `answered`: whether an answer came, and after how
    /// long. `None`: nothing was learnt about the receiver.
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
        // The freed capacity goes to waiting lanes first.
        if let Some((key, app)) = self.origins.give_back(seq) {
            self.grant_freed_at_origin(&key, app);
        }
        self.wake(endpoint);
    }

    /// Brings the health and the gates of a failed record up to date: records of later attempts may be on disk before it, and
    /// must not be undone.
    pub(crate) fn refresh(&self, record: &mut Record) {
        let awake = self.lanes.get(&record.endpoint).and_then(|lane| lane.awake.as_ref());
        if let (Some(health), Some(awake)) = (&mut record.health, awake) {
            health.clone_from(&awake.health);
        }
        for gate in &mut record.gates {
            *gate = self.gates.record(&gate.key);
        }
    }

    /// The change of a delivery is on disk. `next`: how it is pending from now on, if it is.
    pub(crate) fn recorded(
        &mut self,
        endpoint: EndpointId,
        seq: Seq,
        next: Option<PendingDelivery>,
        now: Timestamp,
    ) {
        if let Some(app) = self.shares.give_back(seq) {
            self.grant_freed(app);
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            if let Some(next) = &next {
                lane.expiry.enqueued(next.clock_start);
            }
            lane.backlog.recorded(seq, next);
            lane.expiry.recorded();
            lane.idle_since = now;
        }
        if next.is_some() {
            self.plan_search(endpoint, now, now);
        }
        self.wake(endpoint);
        self.make_idle(endpoint);
    }

    /// Takes a pending delivery out of its lane: for a manual attempt, or to end it unsent. It is in flight until it is
    /// recorded. `None`: it is in flight already.
    pub(crate) fn reserve(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        read: PendingDelivery,
        now: Timestamp,
    ) -> Option<PendingDelivery> {
        if self.deleted_apps.contains(&app) && !self.lanes.contains_key(&endpoint) {
            // Nothing sends it meanwhile: it needs no lane.
            return Some(read);
        }
        self.lane(endpoint, app, now).backlog.reserve(read)
    }

    /// A reserved delivery is on disk as ended, or it is not, and the lane must read the store again.
    pub(crate) fn reservation_ended(&mut self, endpoint: EndpointId, seq: Seq, ended: bool, now: Timestamp) {
        self.recorded(endpoint, seq, None, now);
        if !ended && let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.backlog.start_over();
            lane.expiry.start_over();
            self.plan_search(endpoint, now, now);
            self.wake(endpoint);
        }
    }

    /// What a delivery waits for besides its due time.
    pub(crate) fn wait_reasons(&mut self, question: &WaitQuestion, now: Timestamp) -> WaitReasons {
        let WaitQuestion { app, endpoint, seq, .. } = question;
        let lane = self.lanes.get_mut(endpoint);
        let has_throttle = lane.as_ref().is_some_and(|lane| lane.throttle.is_some());
        let awaits_rate = lane.as_ref().is_some_and(|lane| lane.state == LaneState::AwaitsRate);
        WaitReasons {
            origin_busy: lane.as_ref().is_some_and(|lane| matches!(lane.state, LaneState::AwaitsOrigin(_))),
            in_flight: lane.as_ref().is_some_and(|lane| lane.backlog.is_in_flight(*seq)),
            hold: self.gates.hold(question, now),
            throttled_until: lane
                .filter(|_| has_throttle)
                .and_then(|lane| lane.throttle.as_mut()?.ready(now).err()),
            app_throttled_until: if awaits_rate {
                self.throttles.held(*app, now).map(|(_, until)| until)
            } else {
                None
            },
            paused: self.halted,
        }
    }

    /// Since when due deliveries wait for the rate of an endpoint or of its application.
    pub(crate) fn throttled_since(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Timestamp> {
        let lane = self.lanes.get(&endpoint)?;
        let own = lane.throttle.as_ref().and_then(|throttle| throttle.held_since());
        let awaits_rate = lane.state == LaneState::AwaitsRate;
        let of_app =
            awaits_rate.then(|| self.throttles.held(lane.app, now)).flatten().map(|(since, _)| since);
        own.into_iter().chain(of_app).min()
    }

    /// Puts a lane into its ready queue, unless it waits for capacity.
    pub(crate) fn wake(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if let Some(alarm) = lane.alarm.take() {
            self.alarms.remove(&(alarm, endpoint));
        }
        let before = lane.state;
        lane.transition(LaneEvent::Woken(Wake {
            has_slot: lane.slot.is_some(),
            class: lane.pace.lane_class(),
            deleted: lane.deleted,
            ticket: self.next_ticket,
        }));
        if lane.state == before {
            return;
        }
        if let LaneState::Ready(queue, ticket) = before {
            self.ready[queue as usize].remove(&ticket);
        }
        if let LaneState::Ready(queue, ticket) = lane.state {
            self.ready[queue as usize].insert(ticket, endpoint);
            self.next_ticket += 1;
        }
    }

    /// Drops lanes that have had nothing to do for a while. A sweep finds what becomes due after `horizon`.
    pub(crate) fn forget_idle(&mut self, now: Timestamp, horizon: Timestamp) {
        let lane_idle = self.options.lane_idle;
        let (alarms, searches) = (&mut self.alarms, &mut self.searches);
        let (awake, gates) = (&mut self.awake, &mut self.gates);
        let mut deleted_apps = FixedSet::default();
        self.lanes.retain(|endpoint, lane| {
            let keep = lane.state != LaneState::Waiting
                || now.since(lane.idle_since) < lane_idle
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
            if keep && self.deleted_apps.contains(&lane.app) {
                deleted_apps.insert(lane.app);
            }
            keep
        });
        self.deleted_apps = deleted_apps;
        self.gates.forget_idle(now);
        self.throttles.forget_idle(now);
    }
}

#[cfg(test)]
mod tests;
