//! The backlog against a model: a store whose commits are reported late, and whose reads are snapshots.

use super::*;
use aldaba_delivery::MessageId;
use proptest::prelude::*;
use std::collections::VecDeque;

const CAPACITY: usize = 4;
const CROWD: usize = 1000;

#[derive(Clone, Debug)]
enum Step {
    /// A row is committed, due so many milliseconds from now.
    Accept(i64),
    /// The same for a row without a sequence number.
    Later(i64),
    /// One of those gets its sequence number.
    Sequence(usize),
    /// The lane is told of the next commit.
    Handle,
    Take,
    /// A delivery in flight ends; with a delay it is pending again.
    Finish(usize, Option<i64>),
    /// A refill begins, if the lane wants one.
    Begin,
    /// The refill's read takes its snapshot.
    Read,
    /// The lane gets what was read.
    Refilled,
    Pass(i64),
    /// Other lanes use up the budget of all lanes, or release it.
    Crowd(bool),
    /// The lane becomes idle, if nothing of it is running.
    Idle,
    /// A row is reserved to end it, as it is or as it was before.
    Reserve(usize),
    /// The endpoint becomes an ordered one, or is no longer.
    Order(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (-20..40i64).prop_map(Step::Accept),
        1 => (-20..40i64).prop_map(Step::Later),
        1 => (0..8usize).prop_map(Step::Sequence),
        6 => Just(Step::Handle),
        4 => Just(Step::Take),
        4 => (0..8usize, prop::option::of(0..60i64)).prop_map(|(which, again)| Step::Finish(which, again)),
        3 => Just(Step::Begin),
        2 => Just(Step::Read),
        2 => Just(Step::Refilled),
        1 => (1..30i64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Crowd),
        1 => Just(Step::Idle),
        2 => (0..64usize).prop_map(Step::Reserve),
    ]
}

fn step_or_order() -> impl Strategy<Value = Step> {
    prop_oneof![20 => step(), 1 => any::<bool>().prop_map(Step::Order)]
}

struct Model {
    now: i64,
    next_seq: i64,
    store: BTreeMap<Seq, PendingDelivery>,
    /// Commits that the lane was not told of yet, in their order.
    feed: VecDeque<(Seq, Change)>,
    in_flight: Vec<PendingDelivery>,
    /// Every row as it ever was.
    known: Vec<PendingDelivery>,
    /// Whether by number, after what, and how many.
    reading: Option<(bool, Option<LanePosition>, usize)>,
    snapshot: Option<Vec<PendingDelivery>>,
    lane: Backlog,
    budget: BufferBudget,
    crowded: bool,
}

#[derive(Clone, Copy)]
enum Change {
    Accepted(PendingDelivery),
    Recorded(Option<PendingDelivery>),
    /// A row was to end that had changed.
    Refused,
}

impl Model {
    fn new() -> Self {
        let budget = BufferBudget::new(CROWD * BufferBudget::BYTES_PER_DELIVERY);
        Self {
            now: 0,
            next_seq: 1,
            store: BTreeMap::new(),
            feed: VecDeque::new(),
            in_flight: Vec::new(),
            known: Vec::new(),
            reading: None,
            snapshot: None,
            lane: Backlog::new(CAPACITY, budget.clone()),
            budget,
            crowded: false,
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Accept(delay) => self.accept(delay),
            Step::Later(delay) => self.accept_as(delay, false),
            Step::Sequence(which) => self.place(which),
            Step::Handle => self.handle(),
            Step::Take => drop(self.take()),
            Step::Finish(which, again) => self.finish(which, again),
            Step::Begin => {
                if let Some(query) = self.lane.begin_refill(Timestamp::from_millis(self.now)) {
                    self.reading = Some((self.lane.is_ordered(), query.0, query.1));
                }
            }
            Step::Read => self.read(),
            Step::Refilled => self.refilled(),
            Step::Pass(millis) => self.now += millis,
            Step::Crowd(crowded) => self.crowd(crowded),
            Step::Idle => {
                if self.lane.is_settled() {
                    self.lane.make_idle();
                }
            }
            Step::Reserve(which) => self.reserve(which),
            Step::Order(ordered) => self.lane.set_ordered(ordered),
        }
        let changes = self.lane.refill.as_ref().map_or(0, |refill| refill.changes.len());
        let others = if self.crowded { CROWD } else { 0 };
        assert_eq!(self.budget.held(), self.lane.buffer.len() + changes + others, "miscounted");
        assert!(self.lane.buffer.len() <= CAPACITY, "the buffer outgrew its capacity");
        if self.feed.is_empty() && self.lane.is_settled() {
            self.does_not_oversleep();
        }
    }

    /// Everything that it was told of and could do now is due at its next wake-up at the latest.
    fn does_not_oversleep(&self) {
        let due = match self.lane.is_ordered() {
            true => self.in_order().first().map(|head| head.due_at),
            false => self.store.values().map(|row| row.due_at).min(),
        };
        let (Some(due), next) = (due, self.lane.next_due()) else { return };
        assert!(next.is_some_and(|next| next <= due), "the next is due at {due:?}; it waits until {next:?}");
    }

    fn crowd(&mut self, crowded: bool) {
        let count = |crowded| if crowded { CROWD } else { 0 };
        self.budget.recount(count(self.crowded), count(crowded));
        self.crowded = crowded;
    }

    fn accept(&mut self, delay: i64) {
        self.accept_as(delay, true);
    }

    fn accept_as(&mut self, delay: i64, placed: bool) {
        let seq = Seq(self.next_seq);
        self.next_seq += 1;
        let waiting = PendingDelivery {
            seq,
            message: MessageId::from_bytes([0; 20]),
            due_at: Timestamp::from_millis(self.now + delay),
            attempts: 0,
            clock_start: Timestamp::from_millis(self.now),
            replayed: false,
            sequence: placed.then_some(seq),
        };
        self.store.insert(seq, waiting);
        self.known.push(waiting);
        self.feed.push_back((seq, Change::Accepted(waiting)));
    }

    fn place(&mut self, which: usize) {
        let mut outside: Vec<_> = self.store.values_mut().filter(|row| row.sequence.is_none()).collect();
        let which = which % outside.len().max(1);
        let Some(row) = outside.get_mut(which) else { return };
        row.sequence = Some(Seq(self.next_seq));
        self.next_seq += 1;
        self.known.push(**row);
        self.feed.push_back((row.seq, Change::Accepted(**row)));
    }

    /// What is in the order, in its order.
    fn in_order(&self) -> Vec<PendingDelivery> {
        let mut rows: Vec<_> = self.store.values().filter(|row| row.sequence.is_some()).copied().collect();
        rows.sort_by_key(|row| row.sequence);
        rows
    }

    fn handle(&mut self) {
        match self.feed.pop_front() {
            Some((_, Change::Accepted(waiting))) => {
                self.lane.enqueue(BufferedDelivery { pending: waiting, content: None });
            }
            Some((seq, Change::Recorded(again))) => self.lane.recorded(seq, again),
            Some((seq, Change::Refused)) => {
                self.lane.recorded(seq, None);
                self.lane.start_over();
            }
            None => {}
        }
    }

    fn take(&mut self) -> bool {
        if !self.lane.may_take() {
            return false;
        }
        let Some(entry) = self.lane.take(Timestamp::from_millis(self.now)) else {
            return false;
        };
        let taken = entry.pending;
        assert!(!self.in_flight.contains(&taken), "{taken:?} was taken twice");
        let mut stored = self.store.get(&taken.seq).copied();
        if let Some(stored) = stored.as_mut().filter(|_| !self.lane.is_ordered()) {
            // Nothing depends on it here, and the lane may not know it yet.
            stored.sequence = taken.sequence;
        }
        assert_eq!(stored, Some(taken), "a row was taken that does not wait like that");
        if self.lane.is_ordered() {
            assert!(self.in_flight.is_empty(), "{taken:?} was taken beside {:?}", self.in_flight);
            assert_eq!(taken.seq, self.in_order()[0].seq, "an earlier one waits");
        }
        assert!(taken.due_at.millis() <= self.now, "{taken:?} was taken before its time");
        self.in_flight.push(taken);
        true
    }

    fn finish(&mut self, which: usize, again: Option<i64>) {
        if self.in_flight.is_empty() {
            return;
        }
        let waiting = self.in_flight.remove(which % self.in_flight.len());
        let again = again.map(|delay| PendingDelivery {
            due_at: Timestamp::from_millis(self.now + delay),
            attempts: waiting.attempts + 1,
            ..waiting
        });
        match again {
            Some(again) => {
                // It may have got its sequence number meanwhile.
                let sequence = self.store[&waiting.seq].sequence;
                self.store.insert(waiting.seq, PendingDelivery { sequence, ..again });
                self.known.push(again);
            }
            None => drop(self.store.remove(&waiting.seq)),
        }
        self.feed.push_back((waiting.seq, Change::Recorded(again)));
    }

    fn reserve(&mut self, which: usize) {
        let Some(read) = self.known.get(which % self.known.len().max(1)).copied() else {
            return;
        };
        let flying = self.in_flight.iter().any(|row| row.seq == read.seq);
        let Some(taken) = self.lane.reserve(read) else { return };
        assert!(!flying, "{taken:?} was ended while it was being sent");
        let as_thought = |row: &PendingDelivery| row.attempts == taken.attempts;
        if self.store.get(&taken.seq).is_some_and(as_thought) {
            self.store.remove(&taken.seq);
            self.feed.push_back((taken.seq, Change::Recorded(None)));
        } else {
            self.feed.push_back((taken.seq, Change::Refused));
        }
    }

    fn read(&mut self) {
        let (Some((ordered, after, limit)), None) = (self.reading, &self.snapshot) else {
            return;
        };
        let mut rows = if ordered { self.in_order() } else { self.store.values().copied().collect() };
        rows.retain(|row| match after {
            Some(after) if ordered => row.sequence > Some(after.seq),
            Some(after) => row.position() > after,
            None => true,
        });
        if !ordered {
            rows.sort_by_key(PendingDelivery::position);
        }
        rows.truncate(limit);
        self.snapshot = Some(rows);
    }

    fn refilled(&mut self) {
        if let (Some(rows), Some((_, _, limit))) = (self.snapshot.take(), self.reading) {
            self.reading = None;
            self.lane.refilled(&rows, limit);
        }
    }

    /// With nothing else happening, everything that is pending must be taken.
    fn drain(&mut self) {
        self.now += 1000;
        for _ in 0..self.store.len() {
            self.place(0);
        }
        for _ in 0..10_000 {
            self.read();
            self.refilled();
            while !self.feed.is_empty() {
                self.handle();
            }
            while self.take() {}
            while !self.in_flight.is_empty() {
                self.finish(0, None);
            }
            if self.store.is_empty() && self.feed.is_empty() {
                return;
            }
            self.run(&Step::Begin);
        }
        panic!("rows were never taken: {:?}", self.store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_waiting_row_is_taken_and_none_twice(steps in prop::collection::vec(step(), 1..200)) {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
        }
        model.drain();
        prop_assert!(model.store.is_empty() && model.in_flight.is_empty());
    }

    #[test]
    fn an_ordered_lane_takes_one_after_the_other_by_sequence_number(steps in prop::collection::vec(step(), 1..200)) {
        let mut model = Model::new();
        model.run(&Step::Order(true));
        for step in &steps {
            model.run(step);
        }
        model.drain();
        prop_assert!(model.store.is_empty() && model.in_flight.is_empty());
    }

    #[test]
    fn nothing_is_lost_where_the_ordering_changes(steps in prop::collection::vec(step_or_order(), 1..200)) {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
        }
        model.drain();
        prop_assert!(model.store.is_empty() && model.in_flight.is_empty());
    }
}

#[test]
fn the_head_of_an_ordered_lane_holds_it_until_its_time_even_when_idle() {
    let mut model = Model::new();
    model.run(&Step::Order(true));
    for delay in [30, 0, 0] {
        model.accept(delay);
    }
    for step in [Step::Begin, Step::Read, Step::Refilled, Step::Idle] {
        model.run(&step);
    }
    assert_eq!(model.lane.next_due(), Some(Timestamp::from_millis(30)), "not that of those behind it");
    assert!(!model.lane.wants_refill(Timestamp::from_millis(29)), "it reads nothing before");
    // If the head ends otherwise, the lane looks at once.
    model.store.remove(&Seq(1));
    model.lane.recorded(Seq(1), None);
    assert!(model.lane.wants_refill(Timestamp::from_millis(0)));
    model.drain();
}

#[test]
fn a_lane_keeps_only_a_few_when_the_budget_of_all_lanes_is_used_up() {
    let mut model = Model::new();
    model.crowd(true);
    for _ in 0..4 {
        model.accept(0);
    }
    for step in [Step::Begin, Step::Read, Step::Refilled] {
        model.run(&step);
    }
    assert_eq!(model.lane.buffer.len(), MIN_BUFFERED);
    model.crowd(false);
    model.drain();
}

#[test]
fn a_row_whose_due_time_is_corrected_in_the_store_while_it_is_taken_is_read_again() {
    let mut model = Model::new();
    model.accept(0);
    for step in [Step::Begin, Step::Read, Step::Refilled] {
        model.run(&step);
    }
    let taken = model.lane.take(Timestamp::from_millis(0)).unwrap().pending;
    let as_claimed = PendingDelivery { due_at: Timestamp::from_millis(400 * 24 * 3_600_000), ..taken };
    model.lane.rescheduled();
    model.lane.recorded(taken.seq, Some(as_claimed));
    assert!(model.lane.wants_refill(Timestamp::from_millis(0)), "the copy of its attempt is outdated");
    for step in [Step::Begin, Step::Read, Step::Refilled] {
        model.run(&step);
    }
    assert_eq!(model.lane.next_due(), Some(taken.due_at), "as the store has it");
    // Taken after the correction, it is what it is said to be.
    model.lane.take(Timestamp::from_millis(0)).unwrap();
    model.lane.recorded(taken.seq, Some(as_claimed));
    assert_eq!(model.lane.next_due(), Some(as_claimed.due_at));
}

#[test]
fn a_lane_that_is_dropped_releases_its_budget() {
    let mut model = Model::new();
    model.accept(0);
    for step in [Step::Begin, Step::Handle, Step::Read, Step::Refilled] {
        model.run(&step);
    }
    assert_eq!(model.budget.held(), 1);
    let budget = model.budget.clone();
    drop(model);
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_new_lane_reads_the_store_before_it_takes() {
    let mut model = Model::new();
    model.accept(0);
    model.handle();
    assert!(!model.take(), "rows before the new one may be in the store");
    model.run(&Step::Begin);
    model.run(&Step::Read);
    model.run(&Step::Refilled);
    assert!(model.take());
}
