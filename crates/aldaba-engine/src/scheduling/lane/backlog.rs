//! What a lane knows of its waiting deliveries.
//!
//! The part in memory has an upper edge, the *watermark*: every waiting row whose turn comes before it
//! is in the buffer or in flight, and rows from it on are in the store only. So memory does not
//! grow with the backlog. The buffer is refilled from the store; because that read is a snapshot
//! which may be older than what the lane hears meanwhile, changes during a refill are kept and laid
//! over its result.
//!
//! In an ordered lane ([`Backlog::set_ordered`]) turns are compared by place alone ([`PendingDelivery::sequence`]). Their due times
//! decide nothing but when the head may go, and with it the lane. What has no place yet is in the store only.

use super::buffer_budget::BufferBudget;
use crate::delivering::BudgetedContent;
use aldaba_delivery::Timestamp;
use aldaba_store::{LanePosition, PendingDelivery, Seq};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many deliveries a lane may keep in memory when all lanes together have no room left.
const MIN_BUFFERED: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct BufferedDelivery {
    pub(crate) waiting: PendingDelivery,
    /// Absent: it is read from the store at its turn.
    pub(crate) content: Option<Arc<BudgetedContent>>,
}

#[derive(Debug)]
pub(crate) struct Backlog {
    /// In the order of their scheduler.
    buffer: VecDeque<BufferedDelivery>,
    /// As many as a lane may have on the wire and unrecorded: few enough to look through.
    in_flight: Vec<InFlight>,
    watermark: Watermark,
    ordered: bool,
    refill: Option<Box<Refill>>,
    capacity: usize,
    room: BufferBudget,
}

/// A row that was taken, until its change is committed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    seq: Seq,
    /// Its due time may have been corrected in the store since it was taken.
    is_outdated: bool,
}

/// Up to where the buffer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watermark {
    /// Rows from this turn on may be missing. None of them is worth a look before its due time.
    Below(LanePosition),
    /// No row is missing.
    All,
}

/// A read of the store under way.
#[derive(Debug, Default)]
struct Refill {
    /// What was heard since it began; the newest word about each delivery.
    changes: BTreeMap<Seq, Option<BufferedDelivery>>,
    /// The watermark was lowered meanwhile, or too much was heard to lay it over the result: it would
    /// leave a gap, and counts for nothing. What was heard is in the buffer, as far as the watermark.
    invalidated: bool,
}

const START_POSITION: LanePosition = LanePosition { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

impl Backlog {
    /// Of a lane that has heard nothing yet: all its rows may be in the store.
    pub(crate) fn new(capacity: usize, room: BufferBudget) -> Self {
        Self {
            buffer: VecDeque::new(),
            in_flight: Vec::new(),
            watermark: Watermark::Below(START_POSITION),
            ordered: false,
            refill: None,
            capacity,
            room,
        }
    }

    /// Whether the lane is an ordered one. When that changes everything is left to the store: the order
    /// in memory is the wrong one. What is in flight stays so.
    pub(crate) fn set_ordered(&mut self, ordered: bool) {
        if self.ordered != ordered {
            self.ordered = ordered;
            self.start_over();
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Whether the next may leave beside what is in flight: never in an ordered lane.
    pub(crate) fn may_take(&self) -> bool {
        !self.ordered || self.in_flight.is_empty()
    }

    /// News of a waiting row: accepted, or to be tried again.
    pub(crate) fn offer(&mut self, entry: BufferedDelivery) {
        if self.is_in_flight(entry.waiting.seq) || self.is_outside(&entry.waiting) {
            return;
        }
        self.note(entry.waiting.seq, Some(&entry));
        self.insert(entry);
    }

    /// Takes the head if it is due. It is in flight until [`Backlog::recorded`].
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<BufferedDelivery> {
        self.head(now)?;
        let entry = self.buffer.pop_front()?;
        self.room.recount(1, 0);
        if self.buffer.is_empty() {
            self.buffer = VecDeque::new();
        }
        self.in_flight.push(InFlight { seq: entry.waiting.seq, is_outdated: false });
        Some(entry)
    }

    /// The head, if it is due.
    pub(crate) fn head(&self, now: Timestamp) -> Option<&PendingDelivery> {
        let head = &self.buffer.front()?.waiting;
        (head.due_at <= now).then_some(head)
    }

    /// The head, due or not: for lanes that end.
    pub(crate) fn take_any(&mut self) -> Option<BufferedDelivery> {
        self.take(Timestamp::MAX)
    }

    /// Takes a row out of its turn, to be ended unsent: as the lane knows it, else as whoever asks has
    /// read it. It is in flight until [`Backlog::recorded`]. `None`: it is in flight already.
    pub(crate) fn withdraw(&mut self, read: PendingDelivery) -> Option<PendingDelivery> {
        if self.is_in_flight(read.seq) {
            return None;
        }
        let place = self.buffer.iter().position(|entry| entry.waiting.seq == read.seq);
        let entry = place.and_then(|place| self.buffer.remove(place));
        self.room.recount(usize::from(entry.is_some()), 0);
        self.in_flight.push(InFlight { seq: read.seq, is_outdated: false });
        Some(entry.map_or(read, |entry| entry.waiting))
    }

    pub(crate) fn is_in_flight(&self, seq: Seq) -> bool {
        self.in_flight.iter().any(|flying| flying.seq == seq)
    }

    /// Leaves everything to the store: a row may wait there that the lane took for ended.
    pub(crate) fn start_over(&mut self) {
        self.room.recount(self.buffer.len(), 0);
        self.buffer = VecDeque::new();
        self.watermark = Watermark::Below(START_POSITION);
        self.invalidate_refill();
    }

    /// Due times were corrected in the store: what the lane knows of them counts for nothing, nor what it will handle of those
    /// that were taken before.
    pub(crate) fn rescheduled(&mut self) {
        self.in_flight.iter_mut().for_each(|flying| flying.is_outdated = true);
        self.start_over();
    }

    /// A delivery's change is committed: it is settled, or waits again.
    pub(crate) fn recorded(&mut self, seq: Seq, again: Option<PendingDelivery>) {
        let is_outdated = self.in_flight.iter().any(|flying| flying.seq == seq && flying.is_outdated);
        self.in_flight.retain(|flying| flying.seq != seq);
        if self.in_flight.is_empty() {
            self.in_flight = Vec::new();
        }
        if is_outdated && again.is_some() {
            return self.start_over();
        }
        match again {
            // It may have got its place while it was in flight: the store must say.
            Some(waiting) if self.is_outside(&waiting) => self.start_over(),
            Some(waiting) => self.offer(BufferedDelivery { waiting, content: None }),
            None => self.note(seq, None),
        }
    }

    /// Whether the buffer runs low and the store has more that is due.
    pub(crate) fn wants_refill(&self, now: Timestamp) -> bool {
        let more = matches!(self.watermark, Watermark::Below(watermark) if watermark.due_at <= now);
        more && self.refill.is_none() && self.buffer.len() <= self.may_hold() / 4
    }

    /// Begins a refill if one is wanted: what to read after, and how many rows.
    pub(crate) fn begin_refill(&mut self, now: Timestamp) -> Option<(Option<LanePosition>, usize)> {
        match self.watermark {
            Watermark::Below(watermark) if self.wants_refill(now) => {
                self.refill = Some(Box::default());
                Some((before(watermark), self.may_hold()))
            }
            _ => None,
        }
    }

    pub(crate) fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// The rows read by a refill of at most `limit`.
    pub(crate) fn refilled(&mut self, rows: &[PendingDelivery], limit: usize) {
        let Some(refill) = self.refill.take() else {
            return;
        };
        self.room.recount(refill.changes.len(), 0);
        if refill.invalidated {
            return;
        }
        self.watermark = match rows.last() {
            Some(last) if rows.len() >= limit => Watermark::Below(self.after(last)),
            _ => Watermark::All,
        };
        if self.buffer.is_empty() {
            self.buffer.reserve_exact(rows.len());
        }
        for row in rows {
            if !self.is_in_flight(row.seq) && !refill.changes.contains_key(&row.seq) {
                self.insert(BufferedDelivery { waiting: *row, content: None });
            }
        }
        for entry in refill.changes.into_values().flatten() {
            if !self.is_in_flight(entry.waiting.seq) {
                self.insert(entry);
            }
        }
    }

    /// When there is next something to do: the head's due time, or that of the first row in the
    /// store.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        match (self.buffer.front(), self.watermark) {
            (Some(head), _) => Some(head.waiting.due_at),
            (None, Watermark::Below(watermark)) => Some(watermark.due_at),
            (None, Watermark::All) => None,
        }
    }

    /// How many deliveries are in memory.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn has_entry(&self) -> bool {
        !self.buffer.is_empty()
    }

    pub(crate) fn has_flights(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Nothing is in flight, or being read.
    pub(crate) fn is_still(&self) -> bool {
        self.in_flight.is_empty() && self.refill.is_none()
    }

    /// Nothing is in flight or being read, and nothing is due before `horizon`.
    pub(crate) fn is_idle(&self, horizon: Timestamp) -> bool {
        self.is_still() && self.next_due().is_none_or(|due_at| due_at > horizon)
    }

    /// Leaves everything to the store, and remembers only when the first of it is due.
    pub(crate) fn rest(&mut self) {
        if let Some(head) = self.buffer.front() {
            self.watermark = Watermark::Below(self.turn(&head.waiting));
            self.room.recount(self.buffer.len(), 0);
            self.buffer = VecDeque::new();
        }
    }

    /// What is heard of a row: while a refill is under way it is remembered. Of the row at the watermark of an
    /// ordered lane it means that something else may be due there by now. Of one that has ended nobody says whether it
    /// was that row.
    fn note(&mut self, seq: Seq, entry: Option<&BufferedDelivery>) {
        if let Watermark::Below(watermark) = &mut self.watermark
            && self.ordered
            && entry.is_none_or(|entry| entry.waiting.sequence == Some(watermark.seq))
        {
            watermark.due_at = START_POSITION.due_at;
        }
        let Some(refill) = &mut self.refill else { return };
        if refill.invalidated {
            return;
        }
        let before = refill.changes.len();
        if self.room.is_short() && before >= self.capacity {
            self.invalidate_refill();
        } else {
            refill.changes.insert(seq, entry.cloned());
            self.room.recount(before, refill.changes.len());
        }
    }

    /// The refill under way, if there is one, counts for nothing.
    fn invalidate_refill(&mut self) {
        if let Some(refill) = &mut self.refill {
            refill.invalidated = true;
            self.room.recount(refill.changes.len(), 0);
            refill.changes.clear();
        }
    }

    /// Whether it has no place in the order of the lane yet. It is the store's alone then, whatever is heard of it.
    fn is_outside(&self, waiting: &PendingDelivery) -> bool {
        self.ordered && waiting.sequence.is_none()
    }

    /// A row's turn in this lane. In an ordered one its number is its place.
    fn turn(&self, waiting: &PendingDelivery) -> LanePosition {
        let seq = waiting.sequence.filter(|_| self.ordered).unwrap_or(waiting.seq);
        LanePosition { due_at: waiting.due_at, seq }
    }

    /// By what turns are compared.
    fn rank(&self, turn: LanePosition) -> LanePosition {
        if self.ordered { LanePosition { due_at: START_POSITION.due_at, ..turn } } else { turn }
    }

    /// Just after a row. Of those there, an ordered lane cannot know when they are due.
    fn after(&self, waiting: &PendingDelivery) -> LanePosition {
        let LanePosition { due_at, seq } = self.rank(self.turn(waiting));
        LanePosition { due_at, seq: Seq(seq.0.saturating_add(1)) }
    }

    /// How many deliveries the buffer may hold now.
    fn may_hold(&self) -> usize {
        if self.room.is_short() {
            self.buffer.len().clamp(MIN_BUFFERED.min(self.capacity), self.capacity)
        } else {
            self.capacity
        }
    }

    fn insert(&mut self, entry: BufferedDelivery) {
        let rank = |waiting: &PendingDelivery| self.rank(self.turn(waiting));
        let turn = rank(&entry.waiting);
        if self.is_outside(&entry.waiting)
            || matches!(self.watermark, Watermark::Below(watermark) if turn >= self.rank(watermark))
        {
            return;
        }
        let most = self.may_hold();
        let before = self.buffer.len();
        // Most come in the order of their scheduler.
        if self.buffer.back().is_none_or(|last| rank(&last.waiting) < turn) {
            if self.buffer.is_empty() {
                self.buffer.reserve_exact(1);
            }
            self.buffer.push_back(entry);
        } else {
            match self.buffer.binary_search_by_key(&turn, |entry| rank(&entry.waiting)) {
                Ok(place) => self.buffer[place] = entry,
                Err(place) => self.buffer.insert(place, entry),
            }
        }
        if self.buffer.len() > most
            && let Some(last) = self.buffer.pop_back()
        {
            self.watermark = Watermark::Below(self.turn(&last.waiting));
            self.invalidate_refill();
        }
        self.room.recount(before, self.buffer.len());
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        let changes = self.refill.as_ref().map_or(0, |refill| refill.changes.len());
        self.room.recount(self.buffer.len() + changes, 0);
    }
}

/// The turn just before this one, for reads that start after a turn.
fn before(turn: LanePosition) -> Option<LanePosition> {
    let seq = turn.seq.0.checked_sub(1)?;
    Some(LanePosition { seq: Seq(seq), ..turn })
}

#[cfg(test)]
mod tests;
