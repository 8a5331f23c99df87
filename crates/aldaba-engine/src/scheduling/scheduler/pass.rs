//! Handing out turns: who is next, what comes of a turn, and where a lane waits after it.

use super::fair_queue::FairScope;
use super::origins::OriginSlot;
use super::shares::{CapacityCheck, LaneOwner};
use super::{Action, Scheduler};
use crate::delivering::AttemptRequest;
use crate::delivering::Target;
use crate::scheduling::expiry::wait;
use crate::scheduling::gates::{GateRequest, Passage};
use crate::scheduling::lane::{BufferedDelivery, LaneClass, LaneState, Readiness, Reading, ReadyQueue, Slot};
use aldaba_delivery::{AppId, EndpointId, Reason, StopRule, Timestamp};
use aldaba_store::DueQuery;
use std::sync::Arc;

/// How many actions one run may return, so that news is heard between them.
const MAX_ACTIONS_PER_PASS: usize = 256;

/// How many lanes may be reading the store at once: enough to keep its readers busy, few enough to
/// leave them to others.
pub(super) const MAX_REFILLS: usize = 64;

/// What a lane's turn came to.
enum Turn {
    Act(Action),
    Later,
    /// A gate holds the lane until this moment.
    Held(Timestamp),
    /// The head is past its stop date.
    Overdue,
    /// The lane has to wake up: its endpoint is to be read.
    Wakes,
    /// It is waking up, and keeps the place that it was given.
    Fetches,
    /// The overall cap is reached; the lane keeps its turn.
    Full,
    /// The share of its application or organization is used up; the lane waits until a place comes free.
    Parked(LaneOwner, LaneClass),
    /// As many requests are in flight to its origin as may be; the lane waits there, and holds no place of the overall cap.
    AtOrigin(OriginSlot),
    /// The application's rate is used up; the lane stands in the line for it.
    InLine,
}

impl Scheduler {
    /// Gives turns until nobody can use one, everything is in use, or enough has been handed out.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions: Vec<_> = self.due_searches(now).into_iter().map(Action::Search).collect();
        self.ring(now);
        self.call(now);
        self.wake_refill_queue();
        // Those have had their turn already; the other queues take turns as well, so that none waits
        // for another to run dry.
        while actions.len() < MAX_ACTIONS_PER_PASS && self.serve(ReadyQueue::Granted, now, &mut actions) {}
        let mut open = vec![ReadyQueue::Responsive, ReadyQueue::New, ReadyQueue::Slow];
        while actions.len() < MAX_ACTIONS_PER_PASS && !open.is_empty() {
            open.retain(|queue| self.serve(*queue, now, &mut actions));
        }
        actions
    }

    /// Whether another [`Scheduler::run_once`] at the same moment could find more to do.
    pub(crate) fn has_ready(&self) -> bool {
        let could_go = |queue: &ReadyQueue| match queue {
            ReadyQueue::Granted => true,
            ReadyQueue::Responsive => self.shares.any(LaneClass::Responsive),
            ReadyQueue::New => self.shares.any(LaneClass::New),
            ReadyQueue::Slow => self.shares.any(LaneClass::Slow),
        };
        !self.halted
            && ReadyQueue::ALL.iter().any(|queue| !self.ready[*queue as usize].is_empty() && could_go(queue))
    }

    /// One turn from one of the queues. `false`: nothing more is to be had there now.
    fn serve(&mut self, queue: ReadyQueue, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let Some((ticket, endpoint)) = self.ready[queue as usize].pop_first() else {
            return false;
        };
        self.put(endpoint, LaneState::Waiting);
        self.gates.left(endpoint);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            // What the lane does not know of is ended by somebody else.
            lane.deleted |= self.gone.contains(&lane.app);
        }
        let turn = self.turn(endpoint, now);
        if let Turn::Wakes = turn {
            actions.push(Action::Read(endpoint));
        }
        if let Some(query) = self.refill(endpoint, now) {
            actions.push(Action::Refill(query));
        }
        match turn {
            Turn::Act(_) | Turn::Wakes | Turn::Fetches => {}
            Turn::Held(until) => self.plan_search(endpoint, until, now),
            Turn::Overdue => self.search_overdue(endpoint, now),
            Turn::Later | Turn::Full | Turn::Parked(..) | Turn::AtOrigin(_) | Turn::InLine => {
                self.plan_search(endpoint, now, now);
            }
        }
        // Whatever it was kept from, it waits as if there were nothing to do.
        let turn = if let Turn::Held(_) | Turn::Overdue = turn { Turn::Later } else { turn };
        if let Turn::Later | Turn::Full | Turn::Parked(..) | Turn::AtOrigin(_) = turn {
            self.give_token_back(endpoint, now);
        }
        // It was given a place that it does not use.
        let unused = queue == ReadyQueue::Granted
            && matches!(turn, Turn::Later | Turn::InLine | Turn::Parked(..) | Turn::AtOrigin(_));
        let keeps_origin = matches!(turn, Turn::Wakes | Turn::Fetches | Turn::Full);
        match turn {
            Turn::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
            }
            Turn::Wakes | Turn::Fetches => {}
            Turn::InLine => {
                self.put(endpoint, LaneState::AwaitsRate);
                self.rest(endpoint);
            }
            Turn::Later | Turn::Held(_) | Turn::Overdue => self.rest(endpoint),
            Turn::Full => {
                // One that had a place has given it back, and waits with those of its lane_class.
                let now_in = self.lanes.get(&endpoint).map_or(queue, |lane| lane.queue());
                self.put(endpoint, LaneState::Ready(now_in, ticket));
                self.ready[now_in as usize].insert(ticket, endpoint);
                return queue == ReadyQueue::Granted;
            }
            Turn::Parked(owner, lane_class) => {
                self.park(endpoint, owner, lane_class);
                self.rest(endpoint);
            }
            Turn::AtOrigin(wanted) => {
                self.put(endpoint, LaneState::AwaitsOrigin(wanted.lane_class));
                self.origins.park(endpoint, wanted);
                self.rest(endpoint);
            }
        }
        if !keeps_origin {
            self.release_origin_slot(endpoint);
        }
        if unused && let Some(lane) = self.lanes.get(&endpoint) {
            self.unpark(lane.app);
        }
        true
    }

    /// Puts a lane to rest that only waits, if too many are awake.
    pub(super) fn rest(&mut self, endpoint: EndpointId) {
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

    /// Gives the place back that a lane was given and has not used, if there is one.
    pub(super) fn release_slot(&mut self, endpoint: EndpointId) -> Option<Slot> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let claim = lane.slot.take()?;
        self.shares.release_slot(lane.app, claim.lane_class);
        Some(claim)
    }

    fn put(&mut self, endpoint: EndpointId, place: LaneState) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = place;
        }
    }

    /// A lane waits for a place to come free. It may have left the line before its turn in it, and then still stands there.
    pub(super) fn park(&mut self, endpoint: EndpointId, owner: LaneOwner, lane_class: LaneClass) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = LaneState::AwaitsShare;
            if !std::mem::replace(&mut lane.lined_up, true) {
                self.shares.park(owner, lane_class, endpoint);
            }
        }
    }

    /// A place of an application has come free. It goes to the next of all that wait; and where it was the share of its
    /// organization that was too small, or its own, the next of those may have one beside.
    pub(super) fn unpark(&mut self, app: AppId) {
        let of_org = self.shares.organization(app).map(FairScope::Organization);
        for line in [Some(FairScope::All), of_org, Some(FairScope::Application(app))].into_iter().flatten() {
            while let Some(endpoint) = self.shares.next(line)
                && !self.give_place(endpoint)
            {}
        }
    }

    /// Gives a parked lane a place, to be used in its next turn. `false`: it no longer waits, or may not have this one.
    fn give_place(&mut self, endpoint: EndpointId) -> bool {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        lane.lined_up = false;
        if lane.place != LaneState::AwaitsShare {
            return false;
        }
        // Not always the one with which it was parked.
        let (owner, lane_class) = (lane.owner(), lane.pace.lane_class());
        if self.shares.leave(owner, lane_class) != CapacityCheck::Available {
            self.park(endpoint, owner, lane_class);
            return false;
        }
        lane.place = LaneState::Waiting;
        lane.slot = Some(self.shares.grant_slot(owner, lane_class));
        self.wake(endpoint);
        true
    }

    fn turn(&mut self, endpoint: EndpointId, now: Timestamp) -> Turn {
        if let Some(turn) = self.goes_on_waking(endpoint, now) {
            return turn;
        }
        let given = self.release_slot(endpoint);
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let (owner, lane_class) = (lane.owner(), lane.pace.lane_class());
        let readiness = lane.readiness(now, self.options.held, &self.trust);
        match readiness {
            Readiness::Waits => return Turn::Later,
            Readiness::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Later;
            }
            Readiness::Ends(reason) => return self.end(endpoint, reason),
            Readiness::Wakes | Readiness::Ready { .. } => {}
        }
        // A place that it was given is its own, whatever others have taken since.
        let is_its_own = given == Some(Slot { lane_class, of_org: true });
        let leave = if is_its_own { CapacityCheck::Available } else { self.shares.leave(owner, lane_class) };
        match leave {
            CapacityCheck::Available if !self.halted => {}
            CapacityCheck::Available | CapacityCheck::Full => return Turn::Full,
            CapacityCheck::ShareUsed => return Turn::Parked(owner, lane_class),
        }
        if let Readiness::Ready { probe } = readiness
            && let Some(awake) = &lane.awake
        {
            let target = awake.target.clone();
            let rule = target.policy.has_stop_date().then(|| awake.stop_rule());
            let key = (target.org, target.origin.clone());
            let wanted = OriginSlot { key, app: owner.app, lane_class };
            let has_place = self.origins.slot_of(endpoint) == Some(&wanted);
            if !has_place && !self.origins.may_have(&wanted.key, wanted.app, lane_class) {
                return Turn::AtOrigin(wanted);
            }
            if let Some(rate) = target.app_rate
                && !lane.token
            {
                // It has stood in one line already: what is left of the rate is not to be had there meanwhile.
                lane.token = (has_place && self.throttles.take(owner.app, rate, now))
                    || self.throttles.enter(owner.app, rate, endpoint, now);
                if !lane.token {
                    return Turn::InLine;
                }
            }
            return self.send(endpoint, target, rule.as_ref(), probe, now);
        }
        lane.slot = Some(self.shares.grant_slot(owner, lane_class));
        lane.reading = Reading::UnderWay;
        Turn::Wakes
    }

    /// What a lane does that was given a place while it wakes up, until it is awake.
    fn goes_on_waking(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Turn> {
        let lane = self.lanes.get_mut(&endpoint).filter(|lane| lane.slot.is_some())?;
        if lane.reading == Reading::Wanted {
            lane.reading = Reading::UnderWay;
            return Some(Turn::Wakes);
        }
        let until = if lane.deleted { Timestamp::MAX } else { now };
        let to_come = lane.backlog.is_refilling() || lane.awaits_refill || lane.backlog.wants_refill(until);
        let fetches = lane.reading != Reading::Done || !lane.backlog.has_entry() && to_come;
        fetches.then_some(Turn::Fetches)
    }

    /// Sends the head, unless it is past its stop date or a gate holds it.
    fn send(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        rule: Option<&StopRule>,
        probe: bool,
        now: Timestamp,
    ) -> Turn {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let Some(mut head) = lane.backlog.head(now).copied() else {
            return Turn::Later;
        };
        if let Some(rule) = rule {
            match rule.clock_start_when_selected(&wait(&head), now, || self.trust.may_end_by_time()) {
                Some(clock_start) => head.clock_start = clock_start,
                None => return Turn::Overdue,
            }
        }
        let deliveries = lane.backlog.len();
        let visitor = GateRequest { endpoint, target: &target, head: head.seq, deliveries };
        match self.gates.enter(&visitor, now) {
            Passage::Open => {}
            Passage::Waits => return Turn::Later,
            Passage::At(at) => {
                self.set_alarm(endpoint, at);
                return Turn::Held(at);
            }
        }
        let Some(mut entry) = lane.backlog.take(now) else {
            return Turn::Later;
        };
        entry.waiting = head;
        lane.sends(&entry, probe);
        if std::mem::take(&mut lane.token) && entry.content.is_none() {
            self.throttles.starts_later(lane.app);
        }
        let lane_class = lane.pace.lane_class();
        let used = OriginSlot { key: (target.org, target.origin.clone()), app: lane.app, lane_class };
        let given = self.origins.release_slot(endpoint);
        self.origins.take(entry.waiting.seq, &used);
        // The place that it was given may be another: its endpoint was changed since, or it answers by now.
        if let Some(given) = given.filter(|given| *given != used) {
            self.unpark_origin(&given.key, given.app);
        }
        Turn::Act(Action::Attempt(self.start(endpoint, target, entry, lane_class)))
    }

    /// Ends the head without sending it.
    fn end(&mut self, endpoint: EndpointId, reason: Reason) -> Turn {
        if self.halted || !self.shares.any(LaneClass::Responsive) {
            return Turn::Full;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let target = lane.awake.as_ref().map(|awake| awake.target.clone());
        let (Some(target), Some(entry)) = (target, lane.backlog.take_any()) else {
            return Turn::Later;
        };
        let start = self.start(endpoint, target, entry, LaneClass::Responsive);
        Turn::Act(Action::End(start, reason))
    }

    fn start(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        entry: BufferedDelivery,
        lane_class: LaneClass,
    ) -> AttemptRequest {
        let owner = LaneOwner { app: target.app, org: Some(target.org) };
        self.shares.take(entry.waiting.seq, owner, lane_class);
        AttemptRequest { endpoint, target, waiting: entry.waiting, content: entry.content, lane_class }
    }

    /// A refill for a lane that wants one, or a place in the line for it.
    fn refill(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<DueQuery> {
        let lane = self.lanes.get_mut(&endpoint)?;
        if lane.awake.is_none() && lane.slot.is_none() {
            // It has no use for it before its turn.
            return None;
        }
        let until = if lane.deleted { Timestamp::MAX } else { now };
        if self.refills >= MAX_REFILLS {
            if lane.backlog.wants_refill(until) && !lane.awaits_refill {
                lane.awaits_refill = true;
                self.awaits_refill.push_back(endpoint);
            }
            return None;
        }
        let (after, limit) = lane.backlog.begin_refill(until)?;
        self.refills += 1;
        Some(DueQuery { endpoint, ordered: lane.backlog.is_ordered(), after, limit })
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

    /// Calls the lanes that stand in the lines of their applications and may go now.
    fn call(&mut self, now: Timestamp) {
        while let Some(app) = self.throttles.ring(now) {
            let (lanes, shares, halted) = (&self.lanes, &self.shares, self.halted);
            let can_go = |endpoint: EndpointId| {
                // One that is gone, or has left the line, is passed over below.
                let lane = lanes.get(&endpoint).filter(|lane| lane.place == LaneState::AwaitsRate);
                lane.is_none_or(|lane| !halted && shares.any(lane.pace.lane_class()))
            };
            let Some(endpoint) = self.throttles.next(app, now, can_go) else { continue };
            if self.leave_line(endpoint) {
                if let Some(lane) = self.lanes.get_mut(&endpoint) {
                    lane.token = true;
                }
                self.throttles.call_again(app, now);
            } else {
                self.throttles.give_back(app, now);
            }
        }
    }

    /// Whether a lane stood in the line.
    pub(super) fn leave_line(&mut self, endpoint: EndpointId) -> bool {
        let in_line = self.lanes.get(&endpoint).is_some_and(|lane| lane.place == LaneState::AwaitsRate);
        if in_line {
            self.put(endpoint, LaneState::Waiting);
            self.wake(endpoint);
        }
        in_line
    }

    fn give_token_back(&mut self, endpoint: EndpointId, now: Timestamp) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && std::mem::take(&mut lane.token)
        {
            self.throttles.give_back(lane.app, now);
        }
    }

    /// Wakes as many of the lanes that wait for a refill as may have one.
    fn wake_refill_queue(&mut self) {
        for _ in self.refills..MAX_REFILLS {
            let Some(next) = self.awaits_refill.pop_front() else { return };
            if let Some(lane) = self.lanes.get_mut(&next) {
                lane.awaits_refill = false;
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
