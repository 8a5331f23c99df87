//! Handing out turns: who is next, what comes of a turn, and where a lane waits after it.

use super::lines::Line;
use super::origins::OriginClaim;
use super::shares::{Leave, Owner};
use super::{Action, Turns};
use crate::delivering::Start;
use crate::delivering::Target;
use crate::scheduling::expiry::wait;
use crate::scheduling::gates::{Entrance, Visitor};
use crate::scheduling::lane::{Claim, Entry, Place, Queue, Readiness, Reading, Standing};
use aldaba_delivery::{AppId, EndpointId, Reason, StopRule, Timestamp};
use aldaba_store::DueQuery;
use std::sync::Arc;

/// How many actions one run may return, so that news is heard between them.
const ACTIONS: usize = 256;

/// How many lanes may be reading the store at once: enough to keep its readers busy, few enough to
/// leave them to others.
pub(super) const REFILLS: usize = 64;

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
    Parked(Owner, Standing),
    /// As many requests are in flight to its origin as may be; the lane waits there, and holds no place of the overall cap.
    AtOrigin(OriginClaim),
    /// The application's rate is used up; the lane stands in the line for it.
    InLine,
}

impl Turns {
    /// Gives turns until nobody can use one, everything is in use, or enough has been handed out.
    pub(crate) fn run_once(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions: Vec<_> = self.due_searches(now).into_iter().map(Action::Search).collect();
        self.ring(now);
        self.call(now);
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
        let unused = queue == Queue::Claimed
            && matches!(turn, Turn::Later | Turn::InLine | Turn::Parked(..) | Turn::AtOrigin(_));
        let keeps_origin = matches!(turn, Turn::Wakes | Turn::Fetches | Turn::Full);
        match turn {
            Turn::Act(action) => {
                actions.push(action);
                self.wake(endpoint);
            }
            Turn::Wakes | Turn::Fetches => {}
            Turn::InLine => {
                self.put(endpoint, Place::InLine);
                self.rest(endpoint);
            }
            Turn::Later | Turn::Held(_) | Turn::Overdue => self.rest(endpoint),
            Turn::Full => {
                // One that had a place has given it back, and waits with those of its standing.
                let now_in = self.lanes.get(&endpoint).map_or(queue, |lane| lane.queue());
                self.put(endpoint, Place::Ready(now_in, ticket));
                self.ready[now_in as usize].insert(ticket, endpoint);
                return queue == Queue::Claimed;
            }
            Turn::Parked(owner, standing) => {
                self.park(endpoint, owner, standing);
                self.rest(endpoint);
            }
            Turn::AtOrigin(wanted) => {
                self.put(endpoint, Place::AtOrigin(wanted.standing));
                self.origins.park(endpoint, wanted);
                self.rest(endpoint);
            }
        }
        if !keeps_origin {
            self.unclaim_origin(endpoint);
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
    pub(super) fn unclaim(&mut self, endpoint: EndpointId) -> Option<Claim> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let claim = lane.claims.take()?;
        self.shares.unclaim(lane.app, claim.standing);
        Some(claim)
    }

    fn put(&mut self, endpoint: EndpointId, place: Place) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = place;
        }
    }

    /// A lane waits for a place to come free. It may have left the line before its turn in it, and then still stands there.
    pub(super) fn park(&mut self, endpoint: EndpointId, owner: Owner, standing: Standing) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.place = Place::Parked;
            if !std::mem::replace(&mut lane.lined_up, true) {
                self.shares.park(owner, standing, endpoint);
            }
        }
    }

    /// A place of an application has come free. It goes to the next of all that wait; and where it was the share of its
    /// organization that was too small, or its own, the next of those may have one beside.
    pub(super) fn unpark(&mut self, app: AppId) {
        let of_org = self.shares.organization(app).map(Line::Organization);
        for line in [Some(Line::All), of_org, Some(Line::Application(app))].into_iter().flatten() {
            while let Some(endpoint) = self.shares.next(line)
                && !self.give_place(endpoint)
            {}
        }
    }

    /// Gives a parked lane a place, to be used in its next turn. `false`: it no longer waits, or may not have this one.
    fn give_place(&mut self, endpoint: EndpointId) -> bool {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        lane.lined_up = false;
        if lane.place != Place::Parked {
            return false;
        }
        // Not always the one with which it was parked.
        let (owner, standing) = (lane.owner(), lane.pace.standing());
        if self.shares.leave(owner, standing) != Leave::Yes {
            self.park(endpoint, owner, standing);
            return false;
        }
        lane.place = Place::Nowhere;
        lane.claims = Some(self.shares.claim(owner, standing));
        self.wake(endpoint);
        true
    }

    fn turn(&mut self, endpoint: EndpointId, now: Timestamp) -> Turn {
        if let Some(turn) = self.goes_on_waking(endpoint, now) {
            return turn;
        }
        let given = self.unclaim(endpoint);
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Turn::Later;
        };
        let (owner, standing) = (lane.owner(), lane.pace.standing());
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
        let is_its_own = given == Some(Claim { standing, of_org: true });
        let leave = if is_its_own { Leave::Yes } else { self.shares.leave(owner, standing) };
        match leave {
            Leave::Yes if !self.halted => {}
            Leave::Yes | Leave::Full => return Turn::Full,
            Leave::Share => return Turn::Parked(owner, standing),
        }
        if let Readiness::Ready { probe } = readiness
            && let Some(awake) = &lane.awake
        {
            let target = awake.target.clone();
            let rule = target.policy.has_stop_date().then(|| awake.stop_rule());
            let key = (target.org, target.origin.clone());
            let wanted = OriginClaim { key, app: owner.app, standing };
            let has_place = self.origins.claim_of(endpoint) == Some(&wanted);
            if !has_place && !self.origins.may_have(&wanted.key, wanted.app, standing) {
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
        lane.claims = Some(self.shares.claim(owner, standing));
        lane.reading = Reading::UnderWay;
        Turn::Wakes
    }

    /// What a lane does that was given a place while it wakes up, until it is awake.
    fn goes_on_waking(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Turn> {
        let lane = self.lanes.get_mut(&endpoint).filter(|lane| lane.claims.is_some())?;
        if lane.reading == Reading::Wanted {
            lane.reading = Reading::UnderWay;
            return Some(Turn::Wakes);
        }
        let until = if lane.deleted { Timestamp::MAX } else { now };
        let to_come = lane.backlog.is_refilling() || lane.thirsty || lane.backlog.wants_refill(until);
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
        let visitor = Visitor { endpoint, target: &target, head: head.seq, deliveries };
        match self.gates.enter(&visitor, now) {
            Entrance::Open => {}
            Entrance::Waits => return Turn::Later,
            Entrance::At(at) => {
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
        let standing = lane.pace.standing();
        let used = OriginClaim { key: (target.org, target.origin.clone()), app: lane.app, standing };
        let given = self.origins.unclaim(endpoint);
        self.origins.take(entry.waiting.seq, &used);
        // The place that it was given may be another: its endpoint was changed since, or it answers by now.
        if let Some(given) = given.filter(|given| *given != used) {
            self.unpark_origin(&given.key, given.app);
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
        let owner = Owner { app: target.app, org: Some(target.org) };
        self.shares.take(entry.waiting.seq, owner, standing);
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

    /// Calls the lanes that stand in the lines of their applications and may go now.
    fn call(&mut self, now: Timestamp) {
        while let Some(app) = self.throttles.ring(now) {
            let (lanes, shares, halted) = (&self.lanes, &self.shares, self.halted);
            let can_go = |endpoint: EndpointId| {
                // One that is gone, or has left the line, is passed over below.
                let lane = lanes.get(&endpoint).filter(|lane| lane.place == Place::InLine);
                lane.is_none_or(|lane| !halted && shares.any(lane.pace.standing()))
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
        let in_line = self.lanes.get(&endpoint).is_some_and(|lane| lane.place == Place::InLine);
        if in_line {
            self.put(endpoint, Place::Nowhere);
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
