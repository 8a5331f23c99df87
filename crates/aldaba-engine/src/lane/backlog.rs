//! What a lane knows of its waiting deliveries.
//!
//! The part in memory has an upper edge, the *bound*: every waiting row whose turn comes before it
//! is in the buffer or in flight, and rows from it on are in the store only. So memory does not
//! grow with the backlog. The buffer is refilled from the store; because that read is a snapshot
//! which may be older than what the lane hears meanwhile, changes during a refill are kept and laid
//! over its result.

use crate::content::HeldContent;
use aldaba_delivery::Timestamp;
use aldaba_store::{Seq, Turn, Waiting};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) waiting: Waiting,
    /// Absent: it is read from the store at its turn.
    pub(crate) content: Option<Arc<HeldContent>>,
}

#[derive(Debug)]
pub(crate) struct Backlog {
    buffer: BTreeMap<Turn, Entry>,
    in_flight: BTreeSet<Seq>,
    bound: Bound,
    refill: Option<Refill>,
    capacity: usize,
}

/// Up to where the buffer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// Rows from this turn on may be missing.
    Below(Turn),
    /// No row is missing.
    All,
}

/// A read of the store under way.
#[derive(Debug, Default)]
struct Refill {
    /// What was heard since it began; the newest word about each delivery.
    changes: BTreeMap<Seq, Option<Entry>>,
    /// The bound was lowered meanwhile, so that the result would leave a gap.
    overtaken: bool,
}

const FIRST: Turn = Turn { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

impl Backlog {
    /// Of a lane that has heard nothing yet: all its rows may be in the store.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            buffer: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            bound: Bound::Below(FIRST),
            refill: None,
            capacity,
        }
    }

    /// News of a waiting row: accepted, or to be tried again.
    pub(crate) fn offer(&mut self, entry: Entry) {
        let seq = entry.waiting.seq;
        if self.in_flight.contains(&seq) {
            return;
        }
        if let Some(refill) = &mut self.refill {
            refill.changes.insert(seq, Some(entry.clone()));
        }
        self.insert(entry);
    }

    /// Takes the head if it is due. It is in flight until [`Backlog::landed`].
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Entry> {
        let head = self.buffer.first_entry()?;
        if head.key().due_at > now {
            return None;
        }
        let entry = head.remove();
        self.in_flight.insert(entry.waiting.seq);
        Some(entry)
    }

    /// The head, if it is due.
    pub(crate) fn head(&self, now: Timestamp) -> Option<&Waiting> {
        let (turn, entry) = self.buffer.first_key_value()?;
        (turn.due_at <= now).then_some(&entry.waiting)
    }

    /// The head, due or not: for lanes that end.
    pub(crate) fn take_any(&mut self) -> Option<Entry> {
        self.take(Timestamp::MAX)
    }

    /// A delivery's change is committed: it is settled, or waits again.
    pub(crate) fn landed(&mut self, seq: Seq, again: Option<Waiting>) {
        self.in_flight.remove(&seq);
        let entry = again.map(|waiting| Entry { waiting, content: None });
        match (entry, &mut self.refill) {
            (Some(entry), _) => self.offer(entry),
            (None, Some(refill)) => drop(refill.changes.insert(seq, None)),
            (None, None) => {}
        }
    }

    /// Whether the buffer runs low and the store has more that is due.
    pub(crate) fn wants_refill(&self, now: Timestamp) -> bool {
        let more = matches!(self.bound, Bound::Below(bound) if bound.due_at <= now);
        more && self.refill.is_none() && self.buffer.len() <= self.capacity / 4
    }

    /// Begins a refill if one is wanted: what to read after, and how many rows.
    pub(crate) fn begin_refill(&mut self, now: Timestamp) -> Option<(Option<Turn>, usize)> {
        match self.bound {
            Bound::Below(bound) if self.wants_refill(now) => {
                self.refill = Some(Refill::default());
                Some((before(bound), self.capacity))
            }
            _ => None,
        }
    }

    /// The rows read by a refill of at most `limit`.
    pub(crate) fn refilled(&mut self, rows: &[Waiting], limit: usize) {
        let Some(refill) = self.refill.take() else {
            return;
        };
        if !refill.overtaken {
            self.bound = match rows.last() {
                Some(last) if rows.len() >= limit => Bound::Below(after(last.turn())),
                _ => Bound::All,
            };
            for row in rows {
                if !self.in_flight.contains(&row.seq) && !refill.changes.contains_key(&row.seq) {
                    self.insert(Entry { waiting: *row, content: None });
                }
            }
        }
        for entry in refill.changes.into_values().flatten() {
            if !self.in_flight.contains(&entry.waiting.seq) {
                self.insert(entry);
            }
        }
    }

    /// When there is next something to do: the head's due time, or that of the first row in the
    /// store.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let head = self.buffer.first_key_value().map(|(turn, _)| turn.due_at);
        match (head, self.bound) {
            (Some(due_at), _) => Some(due_at),
            (None, Bound::Below(bound)) => Some(bound.due_at),
            (None, Bound::All) => None,
        }
    }

    pub(crate) fn has_entry(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Nothing is in flight or being read, and nothing is due before `horizon`.
    pub(crate) fn is_idle(&self, horizon: Timestamp) -> bool {
        let nothing_soon = self.next_due().is_none_or(|due_at| due_at > horizon);
        self.in_flight.is_empty() && self.refill.is_none() && nothing_soon
    }

    fn insert(&mut self, entry: Entry) {
        let turn = entry.waiting.turn();
        if matches!(self.bound, Bound::Below(bound) if turn >= bound) {
            return;
        }
        self.buffer.insert(turn, entry);
        if self.buffer.len() > self.capacity
            && let Some((last, _)) = self.buffer.pop_last()
        {
            self.bound = Bound::Below(last);
            if let Some(refill) = &mut self.refill {
                refill.overtaken = true;
            }
        }
    }
}

/// The turn just before this one, for reads that start after a turn.
fn before(turn: Turn) -> Option<Turn> {
    let seq = turn.seq.0.checked_sub(1)?;
    Some(Turn { seq: Seq(seq), ..turn })
}

fn after(turn: Turn) -> Turn {
    Turn { seq: Seq(turn.seq.0.saturating_add(1)), ..turn }
}

#[cfg(test)]
mod tests;
