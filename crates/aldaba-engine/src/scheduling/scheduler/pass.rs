//! A scheduling pass: which lane is selected next, what its selection comes to, and where the lane waits after it.

use super::fair_queue::FairScope;
use super::origins::OriginSlot;
use super::shares::{CapacityCheck, LaneOwner};
use super::{Action, Scheduler};
use crate::delivering::{AttemptRequest, Target};
use crate::scheduling::expiry::pending_attempt;
use crate::scheduling::gates::{GateRequest, Passage};
use crate::scheduling::lane::{
    BufferedDelivery, EndpointEvent, EndpointRead, LaneClass, LaneEvent, LaneState, Readiness, ReadyQueue,
    Slot,
};
use aldaba_delivery::{AppId, EndpointId, Reason, StopRule, Timestamp};
use aldaba_store::DueQuery;
use std::sync::Arc;

/// Actions of one pass, so that inputs are handled between passes.
const MAX_ACTIONS_PER_PASS: usize = 256;

/// Lanes that may be reading the store at once: enough to keep its readers busy, few enough to leave them to others.
pub(super) const MAX_REFILLS: usize = 64;

/// What the selection of a lane comes to.
enum Selection {
    Act(Action),
    Later,
    /// A gate holds the lane until this moment.
    Held(Timestamp),
    /// The first delivery is past its stop date.
    Expired,
    /// The endpoint has to be read.
    Loads,
    /// The endpoint or the first deliveries are being read. The lane keeps its slot.
    Loading,
    /// The in-flight limit is reached; the lane keeps its ticket.
    LimitReached,
    /// The concurrency share of its application or organization is used up.
    LacksShare(LaneOwner, LaneClass),
    /// The in-flight limit of its origin is reached. The lane waits there, and holds no slot of the overall limit.
    LacksOrigin(OriginSlot),
    /// The rate of the application is used up.
    LacksRate,
}

impl Scheduler {
    /// Selects lanes until none can send, every limit is reached, or there are enough actions.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions: Vec<_> = self.due_searches(now).into_iter().map(Action::Search).collect();
        self.wake_alarms(now);
        self.serve_rates(now);
        self.wake_refill_queue();
        // Lanes with a slot were selected before. The other queues are served round robin, so that none waits until another is
        // empty.
        while actions.len() < MAX_ACTIONS_PER_PASS && self.select_from(ReadyQueue::Granted, now, &mut actions)
        {
        }
        let mut open = vec![ReadyQueue::Responsive, ReadyQueue::New, ReadyQueue::Slow];
        while actions.len() < MAX_ACTIONS_PER_PASS && !open.is_empty() {
            open.retain(|queue| self.select_from(*queue, now, &mut actions));
        }
        actions
    }

    /// Whether another pass at the same moment could find more to do.
    pub(crate) fn has_ready(&self) -> bool {
        let has_capacity = |queue: &ReadyQueue| match queue {
            ReadyQueue::Granted => true,
            ReadyQueue::Responsive => self.shares.has_capacity(LaneClass::Responsive),
            ReadyQueue::New => self.shares.has_capacity(LaneClass::New),
            ReadyQueue::Slow => self.shares.has_capacity(LaneClass::Slow),
        };
        !self.halted
            && ReadyQueue::ALL
                .iter()
                .any(|queue| !self.ready[*queue as usize].is_empty() && has_capacity(queue))
    }

    /// Selects one lane of a queue. `false`: the queue has nothing more for this pass.
    fn select_from(&mut self, queue: ReadyQueue, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let Some((ticket, endpoint)) = self.ready[queue as usize].pop_first() else {
            return false;
        };
        self.transition(endpoint, LaneEvent::Selected);
        self.gates.left(endpoint);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.deleted |= self.deleted_apps.contains(&lane.app);
        }
        let selection = self.select(endpoint, now);
        if let Selection::Loads = selection {
            actions.push(Action::Read(endpoint));
        }
        if let Some(query) = self.refill(endpoint, now) {
            actions.push(Action::Refill(query));
        }
        match selection {
            Selection::Act(_) | Selection::Loads | Selection::Loading => {}
            Selection::Held(until) => self.plan_search(endpoint, until, now),
            Selection::Expired => self.search_expired(endpoint, now),
            Selection::Later
            | Selection::LimitReached
            | Selection::LacksShare(..)
            | Selection::LacksOrigin(_)
            | Selection::LacksRate => {
                self.plan_search(endpoint, now, now);
            }
        }
        // Whatever holds it, the lane waits as if nothing were due.
        let selection = match selection {
            Selection::Held(_) | Selection::Expired => Selection::Later,
            other => other,
        };
        if let Selection::Later
        | Selection::LimitReached
        | Selection::LacksShare(..)
        | Selection::LacksOrigin(_) = selection
        {
            self.give_token_back(endpoint, now);
        }
        let slot_unused = queue == ReadyQueue::Granted
            && matches!(
                selection,
                Selection::Later
                    | Selection::LacksRate
                    | Selection::LacksShare(..)
                    | Selection::LacksOrigin(_)
            );
        let keeps_origin_slot =
            matches!(selection, Selection::Loads | Selection::Loading | Selection::LimitReached);
        match selection {
            Selection::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
            }
            Selection::Loads | Selection::Loading => self.transition(endpoint, LaneEvent::Loads),
            Selection::LacksRate => {
                self.transition(endpoint, LaneEvent::LacksRate);
                self.make_idle(endpoint);
            }
            Selection::Later | Selection::Held(_) | Selection::Expired => self.make_idle(endpoint),
            Selection::LimitReached => {
                self.return_to_queue(endpoint, ticket);
                return queue == ReadyQueue::Granted;
            }
            Selection::LacksShare(owner, lane_class) => {
                self.await_share(endpoint, owner, lane_class);
                self.make_idle(endpoint);
            }
            Selection::LacksOrigin(wanted) => {
                self.transition(endpoint, LaneEvent::LacksOrigin(wanted.lane_class));
                self.origins.enqueue_lane(endpoint, wanted);
                self.make_idle(endpoint);
            }
        }
        if !keeps_origin_slot {
            self.release_origin_slot(endpoint);
        }
        if slot_unused && let Some(lane) = self.lanes.get(&endpoint) {
            self.grant_freed(lane.app);
        }
        true
    }

    /// Puts a selected lane back with its ticket. A lane that had a slot has returned it, and waits with those of its class.
    fn return_to_queue(&mut self, endpoint: EndpointId, ticket: u64) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        let queue = lane.queue();
        lane.transition(LaneEvent::Returned(queue, ticket));
        self.ready[queue as usize].insert(ticket, endpoint);
    }

    /// Makes a lane that only waits idle, if too many lanes are awake.
    pub(super) fn make_idle(&mut self, endpoint: EndpointId) {
        if self.awake <= self.options.lanes_awake {
            return;
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && lane.awake.is_some()
            && lane.can_be_idle()
        {
            lane.make_idle();
            self.awake -= 1;
        }
    }

    /// Takes back the slot that a lane was granted and has not used, if it has one.
    pub(super) fn release_slot(&mut self, endpoint: EndpointId) -> Option<Slot> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let slot = lane.slot.take()?;
        self.shares.release_slot(lane.app, slot.lane_class);
        Some(slot)
    }

    pub(super) fn transition(&mut self, endpoint: EndpointId, event: LaneEvent) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.transition(event);
        }
    }

    /// Lets a lane wait for its share. An entry that it still has in the fair queue serves again.
    pub(super) fn await_share(&mut self, endpoint: EndpointId, owner: LaneOwner, lane_class: LaneClass) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.transition(LaneEvent::LacksShare);
            if !std::mem::replace(&mut lane.in_fair_queue, true) {
                self.shares.enqueue_lane(owner, lane_class, endpoint);
            }
        }
    }

    /// An application has returned a slot. It goes to the next of all waiting lanes. If only the share of its organization, or
    /// its own, was used up, a lane of those may get one too.
    pub(super) fn grant_freed(&mut self, app: AppId) {
        let of_org = self.shares.organization(app).map(FairScope::Organization);
        for scope in [Some(FairScope::All), of_org, Some(FairScope::Application(app))].into_iter().flatten() {
            while let Some(endpoint) = self.shares.next(scope)
                && !self.grant(endpoint)
            {}
        }
    }

    /// Grants a slot to a lane from the fair queue. `false`: it no longer waits, or may not have one.
    fn grant(&mut self, endpoint: EndpointId) -> bool {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        lane.in_fair_queue = false;
        if lane.state != LaneState::AwaitsShare {
            return false;
        }
        // Its class may have changed since it began to wait.
        let (owner, lane_class) = (lane.owner(), lane.pace.lane_class());
        if self.shares.check(owner, lane_class) != CapacityCheck::Available {
            self.await_share(endpoint, owner, lane_class);
            return false;
        }
        lane.transition(LaneEvent::Released);
        lane.slot = Some(self.shares.grant_slot(owner, lane_class));
        self.wake(endpoint);
        true
    }

    fn select(&mut self, endpoint: EndpointId, now: Timestamp) -> Selection {
        if let Some(selection) = self.continue_loading(endpoint, now) {
            return selection;
        }
        let granted = self.release_slot(endpoint);
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Selection::Later;
        };
        let (owner, lane_class) = (lane.owner(), lane.pace.lane_class());
        let readiness = lane.readiness(now, self.options.held, &self.trust);
        match readiness {
            Readiness::Waits => return Selection::Later,
            Readiness::At(at) => {
                self.set_alarm(endpoint, at);
                return Selection::Later;
            }
            Readiness::Ends(reason) => return self.end(endpoint, reason),
            Readiness::Loads | Readiness::Ready { .. } => {}
        }
        // A granted slot stays the lane's own, whatever others have taken since.
        let has_slot = granted == Some(Slot { lane_class, of_org: true });
        let capacity = if has_slot { CapacityCheck::Available } else { self.shares.check(owner, lane_class) };
        match capacity {
            CapacityCheck::Available if !self.halted => {}
            CapacityCheck::Available | CapacityCheck::Full => return Selection::LimitReached,
            CapacityCheck::ShareUsed => return Selection::LacksShare(owner, lane_class),
        }
        if let Readiness::Ready { probe } = readiness
            && let Some(awake) = &lane.awake
        {
            let target = awake.target.clone();
            let rule = target.policy.has_stop_date().then(|| awake.stop_rule());
            let key = (target.org, target.origin.clone());
            let wanted = OriginSlot { key, app: owner.app, lane_class };
            let has_origin_slot = self.origins.slot_of(endpoint) == Some(&wanted);
            if !has_origin_slot && !self.origins.may_have(&wanted.key, wanted.app, lane_class) {
                return Selection::LacksOrigin(wanted);
            }
            if let Some(rate) = target.app_rate
                && !lane.rate_token
            {
                // A lane that has waited for its origin need not wait in a second queue while a token is left.
                lane.rate_token = (has_origin_slot && self.throttles.take(owner.app, rate, now))
                    || self.throttles.enter(owner.app, rate, endpoint, now);
                if !lane.rate_token {
                    return Selection::LacksRate;
                }
            }
            return self.send(endpoint, target, rule.as_ref(), probe, now);
        }
        lane.slot = Some(self.shares.grant_slot(owner, lane_class));
        lane.endpoint_transition(EndpointEvent::ReadStarts);
        Selection::Loads
    }

    /// Continues with a lane that holds a slot while it reads. `None`: it has read everything that it needs.
    fn continue_loading(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Selection> {
        let lane = self.lanes.get_mut(&endpoint).filter(|lane| lane.slot.is_some())?;
        if lane.endpoint_read == EndpointRead::Needed {
            lane.endpoint_transition(EndpointEvent::ReadStarts);
            return Some(Selection::Loads);
        }
        let until = lane.refill_until(now);
        let refills = lane.backlog.is_refilling() || lane.in_refill_queue || lane.backlog.wants_refill(until);
        let loading = lane.endpoint_read != EndpointRead::Current || !lane.backlog.has_delivery() && refills;
        loading.then_some(Selection::Loading)
    }

    /// Sends the first delivery, unless it is past its stop date or a gate holds it.
    fn send(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        rule: Option<&StopRule>,
        probe: bool,
        now: Timestamp,
    ) -> Selection {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Selection::Later;
        };
        let Some(mut head) = lane.backlog.head(now).copied() else {
            return Selection::Later;
        };
        if let Some(rule) = rule {
            let may_end = || self.trust.may_end_by_time();
            match rule.clock_start_when_selected(&pending_attempt(&head), now, may_end) {
                Some(clock_start) => head.clock_start = clock_start,
                None => return Selection::Expired,
            }
        }
        let deliveries = lane.backlog.len();
        let request = GateRequest { endpoint, target: &target, head: head.seq, deliveries };
        match self.gates.enter(&request, now) {
            Passage::Open => {}
            Passage::Waits => return Selection::Later,
            Passage::At(at) => {
                self.set_alarm(endpoint, at);
                return Selection::Held(at);
            }
        }
        let Some(mut delivery) = lane.backlog.take(now) else {
            return Selection::Later;
        };
        delivery.pending = head;
        lane.sends(&delivery, probe);
        if std::mem::take(&mut lane.rate_token) && delivery.content.is_none() {
            self.throttles.starts_later(lane.app);
        }
        let lane_class = lane.pace.lane_class();
        let used = OriginSlot { key: (target.org, target.origin.clone()), app: lane.app, lane_class };
        let granted = self.origins.release_slot(endpoint);
        self.origins.take(delivery.pending.seq, &used);
        // The granted slot may be another: the endpoint or the class may have changed since.
        if let Some(granted) = granted.filter(|granted| *granted != used) {
            self.grant_freed_at_origin(&granted.key, granted.app);
        }
        Selection::Act(Action::Attempt(self.attempt(endpoint, target, delivery, lane_class)))
    }

    /// Ends the first delivery without sending it.
    fn end(&mut self, endpoint: EndpointId, reason: Reason) -> Selection {
        if self.halted || !self.shares.has_capacity(LaneClass::Responsive) {
            return Selection::LimitReached;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Selection::Later;
        };
        let target = lane.awake.as_ref().map(|awake| awake.target.clone());
        let (Some(target), Some(delivery)) = (target, lane.backlog.take_any()) else {
            return Selection::Later;
        };
        let request = self.attempt(endpoint, target, delivery, LaneClass::Responsive);
        Selection::Act(Action::End(request, reason))
    }

    fn attempt(
        &mut self,
        endpoint: EndpointId,
        target: Arc<Target>,
        delivery: BufferedDelivery,
        lane_class: LaneClass,
    ) -> AttemptRequest {
        let owner = LaneOwner { app: target.app, org: Some(target.org) };
        self.shares.take(delivery.pending.seq, owner, lane_class);
        let BufferedDelivery { pending, content } = delivery;
        AttemptRequest { endpoint, target, pending, content, lane_class }
    }

    /// A refill for a lane that wants one. If too many are running, the lane enters the queue for refills.
    fn refill(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<DueQuery> {
        let lane = self.lanes.get_mut(&endpoint)?;
        if lane.awake.is_none() && lane.slot.is_none() {
            // An idle lane needs none before it is selected.
            return None;
        }
        let until = lane.refill_until(now);
        if self.refills >= MAX_REFILLS {
            if lane.backlog.wants_refill(until) && !lane.in_refill_queue {
                lane.in_refill_queue = true;
                self.refill_queue.push_back(endpoint);
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

    /// Gives free tokens of the applications' rates to the lanes that wait for them.
    fn serve_rates(&mut self, now: Timestamp) {
        while let Some(app) = self.throttles.next_due(now) {
            let (lanes, shares, halted) = (&self.lanes, &self.shares, self.halted);
            let can_go = |endpoint: EndpointId| {
                // A lane that no longer waits there is removed from the queue below.
                let lane = lanes.get(&endpoint).filter(|lane| lane.state == LaneState::AwaitsRate);
                lane.is_none_or(|lane| !halted && shares.has_capacity(lane.pace.lane_class()))
            };
            let Some(endpoint) = self.throttles.next(app, now, can_go) else { continue };
            if self.leave_rate_queue(endpoint) {
                if let Some(lane) = self.lanes.get_mut(&endpoint) {
                    lane.rate_token = true;
                }
                self.throttles.plan_next(app, now);
            } else {
                self.throttles.give_back(app, now);
            }
        }
    }

    /// Wakes a lane that waits for the rate of its application. `false`: it does not.
    pub(super) fn leave_rate_queue(&mut self, endpoint: EndpointId) -> bool {
        let waits = self.lanes.get(&endpoint).is_some_and(|lane| lane.state == LaneState::AwaitsRate);
        if waits {
            self.transition(endpoint, LaneEvent::Released);
            self.wake(endpoint);
        }
        waits
    }

    fn give_token_back(&mut self, endpoint: EndpointId, now: Timestamp) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && std::mem::take(&mut lane.rate_token)
        {
            self.throttles.give_back(lane.app, now);
        }
    }

    /// Wakes as many of the lanes that wait for a refill as may have one.
    fn wake_refill_queue(&mut self) {
        for _ in self.refills..MAX_REFILLS {
            let Some(next) = self.refill_queue.pop_front() else { return };
            if let Some(lane) = self.lanes.get_mut(&next) {
                lane.in_refill_queue = false;
            }
            self.wake(next);
        }
    }

    /// Wakes the lanes whose alarm is due.
    fn wake_alarms(&mut self, now: Timestamp) {
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
