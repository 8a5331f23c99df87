//! A walk along an index that ends when its page is full, or when enough was looked at.

use super::monotonic::Slice;
use crate::{Found, Order, Part};

/// How an order is written.
pub(super) struct Direction {
    pub(super) beyond: &'static str,
    pub(super) from: &'static str,
    pub(super) word: &'static str,
}

impl Direction {
    pub(super) fn of(order: Order) -> Self {
        match order {
            Order::Ascending => Self { beyond: ">", from: ">=", word: "ASC" },
            Order::Descending => Self { beyond: "<", from: "<=", word: "DESC" },
        }
    }
}

/// Rows that are looked at between two looks at the clock. A walk that finds what it looks at needs none: its page is
/// full soon.
const BETWEEN_LOOKS: usize = 64;

pub(super) struct Walk<'a, T, Id> {
    slice: &'a Slice<'a>,
    limit: usize,
    /// How many rows may be looked at.
    most: usize,
    looked_at: usize,
    /// How many had been at the last look at the clock.
    at_last_look: usize,
    last: Option<Id>,
    given_up: bool,
    found: Vec<T>,
}

impl<'a, T, Id: Copy> Walk<'a, T, Id> {
    pub(super) fn new(part: &Part<Id>, slice: &'a Slice<'a>) -> Self {
        Self {
            slice,
            limit: part.page.limit,
            most: part.walk,
            looked_at: 0,
            at_last_look: 0,
            last: None,
            given_up: false,
            found: Vec::new(),
        }
    }

    /// Whether to look at this item, which comes next. The walk always comes forward, or a slow machine would never
    /// come to an end.
    pub(super) fn goes_on(&mut self, next: Id) -> bool {
        if self.found.len() >= self.limit {
            return false;
        }
        self.given_up |= self.looked_at >= self.most.max(1) || self.is_late();
        if self.given_up {
            return false;
        }
        self.looked_at += 1;
        self.last = Some(next);
        true
    }

    fn is_late(&mut self) -> bool {
        let in_vain = self.looked_at > self.found.len();
        if !in_vain || self.looked_at < self.at_last_look + BETWEEN_LOOKS {
            return false;
        }
        self.at_last_look = self.looked_at;
        self.slice.is_over()
    }

    /// It took these rows beside the item's own to tell.
    pub(super) fn worked(&mut self, rows: usize) {
        self.looked_at += rows;
    }

    /// The item that is looked at belongs on the page.
    pub(super) fn find(&mut self, item: T) {
        self.found.push(item);
    }

    /// The page ends with the item that is looked at.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    pub(super) fn end(self) -> Found<T, Id> {
        let full = self.found.len() >= self.limit;
        Found { items: self.found, stopped: self.last.filter(|_| self.given_up && !full) }
    }
}
