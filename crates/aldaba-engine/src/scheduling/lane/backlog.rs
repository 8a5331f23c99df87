//! The pending deliveries of a lane.
//!
//! The part in memory ends at the *watermark*: every pending delivery before it is in the buffer or in flight, and those from it
//! on are in the store only. So memory does not grow with the backlog. Refills read the next deliveries from the store. Such a
//! read is a snapshot that may be older than what the lane is told meanwhile, so changes during a refill are kept and applied to
//! its result.
//!
//! An ordered lane ([`Backlog::set_ordered`]) compares deliveries by sequence number alone ([`PendingDelivery::sequence`]). Due times
//! decide only when the head may be sent. Deliveries without a sequence number are in the store only.

use super::buffer_budget::BufferBudget;
use crate::delivering::BudgetedContent;
use aldaba_delivery::Timestamp;
use aldaba_store::{LanePosition, PendingDelivery, Seq};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Deliveries that a lane may buffer when the budget of all lanes is used up.
const MIN_BUFFERED: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct BufferedDelivery {
    pub(crate) pending: PendingDelivery,
    /// `None`: the payload is read from the store when the delivery is sent.
    pub(crate) content: Option<Arc<BudgetedContent>>,
}

#[derive(Debug)]
pub(crate) struct Backlog {
    /// In the order in which they are sent.
    buffer: VecDeque<BufferedDelivery>,
    /// Few enough to search one by one.
    in_flight: Vec<InFlight>,
    watermark: Watermark,
    ordered: bool,
    refill: Option<Box<Refill>>,
    capacity: usize,
    budget: BufferBudget,
}

/// A delivery that was taken, until its change is committed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    seq: Seq,
    /// Its due time may have been corrected in the store since.
    is_outdated: bool,
}

/// Up to where the buffer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watermark {
    /// Deliveries from this position on may be missing. None of them is due earlier.
    Below(LanePosition),
    /// None is missing.
    All,
}

/// A running read of the store.
#[derive(Debug, Default)]
struct Refill {
    /// The newest change of each delivery since it started. `None`: it is no longer pending.
    changes: BTreeMap<Seq, Option<BufferedDelivery>>,
    /// The watermark was lowered meanwhile, or there were too many changes: the result would have a gap, and is dropped. The
    /// changes before the watermark are in the buffer.
    invalidated: bool,
}

const START_POSITION: LanePosition = LanePosition { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

impl Backlog {
    /// An empty one: all deliveries may be in the store.
    pub(crate) fn new(capacity: usize, budget: BufferBudget) -> Self {
        Self {
            buffer: VecDeque::new(),
            in_flight: Vec::new(),
            watermark: Watermark::Below(START_POSITION),
            ordered: false,
            refill: None,
            capacity,
            budget,
        }
    }

    /// Makes the lane an ordered one, or not. A change drops the buffer, which has the wrong order. Deliveries in flight stay so.
    pub(crate) fn set_ordered(&mut self, ordered: bool) {
        if self.ordered != ordered {
            self.ordered = ordered;
            self.start_over();
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Whether another delivery may be sent now. An ordered lane sends one at a time.
    pub(crate) fn may_take(&self) -> bool {
        !self.ordered || self.in_flight.is_empty()
    }

    /// Adds a pending delivery: a new one, or a retry.
    pub(crate) fn enqueue(&mut self, delivery: BufferedDelivery) {
        if self.is_in_flight(delivery.pending.seq) || self.is_outside(&delivery.pending) {
            return;
        }
        self.note(delivery.pending.seq, Some(&delivery));
        self.insert(delivery);
    }

    /// Takes the first delivery if it is due. It is in flight until [`Backlog::recorded`].
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<BufferedDelivery> {
        self.head(now)?;
        let delivery = self.buffer.pop_front()?;
        self.budget.recount(1, 0);
        if self.buffer.is_empty() {
            self.buffer = VecDeque::new();
        }
        self.in_flight.push(InFlight { seq: delivery.pending.seq, is_outdated: false });
        Some(delivery)
    }

    /// The first delivery, if it is due.
    pub(crate) fn head(&self, now: Timestamp) -> Option<&PendingDelivery> {
        let head = &self.buffer.front()?.pending;
        (head.due_at <= now).then_some(head)
    }

    /// Takes the first delivery, due or not, to end it.
    pub(crate) fn take_any(&mut self) -> Option<BufferedDelivery> {
        self.take(Timestamp::MAX)
    }

    /// Takes a delivery out of its order: as the lane knows it, or else as it was read. It is in flight until
    /// [`Backlog::recorded`]. `None`: it is in flight already.
    pub(crate) fn reserve(&mut self, read: PendingDelivery) -> Option<PendingDelivery> {
        if self.is_in_flight(read.seq) {
            return None;
        }
        let index = self.buffer.iter().position(|delivery| delivery.pending.seq == read.seq);
        let delivery = index.and_then(|index| self.buffer.remove(index));
        self.budget.recount(usize::from(delivery.is_some()), 0);
        self.in_flight.push(InFlight { seq: read.seq, is_outdated: false });
        Some(delivery.map_or(read, |delivery| delivery.pending))
    }

    pub(crate) fn is_in_flight(&self, seq: Seq) -> bool {
        self.in_flight.iter().any(|flying| flying.seq == seq)
    }

    /// Drops the buffer, to read the store from the beginning: a delivery may be pending there that the lane does not know.
    pub(crate) fn start_over(&mut self) {
        self.budget.recount(self.buffer.len(), 0);
        self.buffer = VecDeque::new();
        self.watermark = Watermark::Below(START_POSITION);
        self.invalidate_refill();
    }

    /// Due times were corrected in the store: those in memory are wrong, and so are those of retries of deliveries in flight.
    pub(crate) fn rescheduled(&mut self) {
        self.in_flight.iter_mut().for_each(|flying| flying.is_outdated = true);
        self.start_over();
    }

    /// A delivery's change is committed. `next`: how it is pending from now on, if it is.
    pub(crate) fn recorded(&mut self, seq: Seq, next: Option<PendingDelivery>) {
        let is_outdated = self.in_flight.iter().any(|flying| flying.seq == seq && flying.is_outdated);
        self.in_flight.retain(|flying| flying.seq != seq);
        if self.in_flight.is_empty() {
            self.in_flight = Vec::new();
        }
        if is_outdated && next.is_some() {
            return self.start_over();
        }
        match next {
            // It may have got its sequence number while it was in flight: the store knows.
            Some(waiting) if self.is_outside(&waiting) => self.start_over(),
            Some(waiting) => self.enqueue(BufferedDelivery { pending: waiting, content: None }),
            None => self.note(seq, None),
        }
    }

    /// Whether the buffer runs low and the store may have more that is due.
    pub(crate) fn wants_refill(&self, now: Timestamp) -> bool {
        let more = matches!(self.watermark, Watermark::Below(watermark) if watermark.due_at <= now);
        more && self.refill.is_none() && self.buffer.len() <= self.limit() / 4
    }

    /// Begins a refill if one is wanted. Returns the position after which to read, and how many rows.
    pub(crate) fn begin_refill(&mut self, now: Timestamp) -> Option<(Option<LanePosition>, usize)> {
        match self.watermark {
            Watermark::Below(watermark) if self.wants_refill(now) => {
                self.refill = Some(Box::default());
                Some((before(watermark), self.limit()))
            }
            _ => None,
        }
    }

    pub(crate) fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// Adds the rows that a refill of at most `limit` has read.
    pub(crate) fn refilled(&mut self, rows: &[PendingDelivery], limit: usize) {
        let Some(refill) = self.refill.take() else {
            return;
        };
        self.budget.recount(refill.changes.len(), 0);
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
                self.insert(BufferedDelivery { pending: *row, content: None });
            }
        }
        for delivery in refill.changes.into_values().flatten() {
            if !self.is_in_flight(delivery.pending.seq) {
                self.insert(delivery);
            }
        }
    }

    /// When the next delivery is due: the first of the buffer, or the first in the store.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        match (self.buffer.front(), self.watermark) {
            (Some(head), _) => Some(head.pending.due_at),
            (None, Watermark::Below(watermark)) => Some(watermark.due_at),
            (None, Watermark::All) => None,
        }
    }

    /// How many deliveries are buffered.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn has_delivery(&self) -> bool {
        !self.buffer.is_empty()
    }

    pub(crate) fn has_flights(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether nothing is in flight or being read.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_flight.is_empty() && self.refill.is_none()
    }

    /// Whether nothing is in flight, being read, or due before `horizon`.
    pub(crate) fn is_idle(&self, horizon: Timestamp) -> bool {
        self.is_settled() && self.next_due().is_none_or(|due_at| due_at > horizon)
    }

    /// Drops the buffer, and keeps only when the first delivery is due.
    pub(crate) fn make_idle(&mut self) {
        if let Some(head) = self.buffer.front() {
            self.watermark = Watermark::Below(self.position(&head.pending));
            self.budget.recount(self.buffer.len(), 0);
            self.buffer = VecDeque::new();
        }
    }

    /// Keeps a change while a refill is running. If the delivery at the watermark of an ordered lane has changed, another may
    /// be due there now; of a delivery that has ended it is not known whether it was that one.
    fn note(&mut self, seq: Seq, delivery: Option<&BufferedDelivery>) {
        if let Watermark::Below(watermark) = &mut self.watermark
            && self.ordered
            && delivery.is_none_or(|delivery| delivery.pending.sequence == Some(watermark.seq))
        {
            watermark.due_at = START_POSITION.due_at;
        }
        let Some(refill) = &mut self.refill else { return };
        if refill.invalidated {
            return;
        }
        let before = refill.changes.len();
        if self.budget.is_used_up() && before >= self.capacity {
            self.invalidate_refill();
        } else {
            refill.changes.insert(seq, delivery.cloned());
            self.budget.recount(before, refill.changes.len());
        }
    }

    /// Drops the result of the running refill, if there is one.
    fn invalidate_refill(&mut self) {
        if let Some(refill) = &mut self.refill {
            refill.invalidated = true;
            self.budget.recount(refill.changes.len(), 0);
            refill.changes.clear();
        }
    }

    /// Whether it has no sequence number in an ordered lane yet. Then it stays in the store.
    fn is_outside(&self, waiting: &PendingDelivery) -> bool {
        self.ordered && waiting.sequence.is_none()
    }

    /// The position of a delivery in this lane.
    fn position(&self, waiting: &PendingDelivery) -> LanePosition {
        let seq = waiting.sequence.filter(|_| self.ordered).unwrap_or(waiting.seq);
        LanePosition { due_at: waiting.due_at, seq }
    }

    /// The part of a position that counts in comparisons.
    fn rank(&self, position: LanePosition) -> LanePosition {
        if self.ordered { LanePosition { due_at: START_POSITION.due_at, ..position } } else { position }
    }

    /// The position just after a delivery. An ordered lane cannot know when the deliveries from there on are due.
    fn after(&self, waiting: &PendingDelivery) -> LanePosition {
        let LanePosition { due_at, seq } = self.rank(self.position(waiting));
        LanePosition { due_at, seq: Seq(seq.0.saturating_add(1)) }
    }

    /// How many deliveries the buffer may hold now.
    fn limit(&self) -> usize {
        if self.budget.is_used_up() {
            self.buffer.len().clamp(MIN_BUFFERED.min(self.capacity), self.capacity)
        } else {
            self.capacity
        }
    }

    fn insert(&mut self, delivery: BufferedDelivery) {
        let rank = |waiting: &PendingDelivery| self.rank(self.position(waiting));
        let rank_of_new = rank(&delivery.pending);
        if self.is_outside(&delivery.pending)
            || matches!(self.watermark, Watermark::Below(watermark) if rank_of_new >= self.rank(watermark))
        {
            return;
        }
        let limit = self.limit();
        let before = self.buffer.len();
        // Most come in their order.
        if self.buffer.back().is_none_or(|last| rank(&last.pending) < rank_of_new) {
            if self.buffer.is_empty() {
                self.buffer.reserve_exact(1);
            }
            self.buffer.push_back(delivery);
        } else {
            match self.buffer.binary_search_by_key(&rank_of_new, |delivery| rank(&delivery.pending)) {
                Ok(index) => self.buffer[index] = delivery,
                Err(index) => self.buffer.insert(index, delivery),
            }
        }
        if self.buffer.len() > limit
            && let Some(last) = self.buffer.pop_back()
        {
            self.watermark = Watermark::Below(self.position(&last.pending));
            self.invalidate_refill();
        }
        self.budget.recount(before, self.buffer.len());
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        let changes = self.refill.as_ref().map_or(0, |refill| refill.changes.len());
        self.budget.recount(self.buffer.len() + changes, 0);
    }
}

/// The position just before this one, for reads that start after a position.
fn before(position: LanePosition) -> Option<LanePosition> {
    let seq = position.seq.0.checked_sub(1)?;
    Some(LanePosition { seq: Seq(seq), ..position })
}

#[cfg(test)]
mod tests;
