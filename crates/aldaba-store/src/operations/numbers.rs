//! Numbers for deliveries, places and notices, from one count that never gives a number twice.
//!
//! The writer reserves numbers in blocks, so that most commits write nothing for them. After a crash the rest of a block is
//! never used.

use super::transaction::{ReadingExt, statements, values};
use super::{Result, Transaction};
use crate::Seq;

/// How many numbers are reserved at once.
const BLOCK: i64 = 10_000;

statements! {
    LAST = "SELECT value FROM total WHERE name = 'numbers'";
    RESERVE = "UPDATE total SET value = ?1 WHERE name = 'numbers'";
}

/// The numbers that are reserved and not used yet.
#[derive(Debug, Default)]
pub struct Numbers {
    next: i64,
    end: i64,
}

impl Numbers {
    /// The first of so many numbers that follow each other.
    pub fn draw(&mut self, tx: &dyn Transaction, how_many: usize) -> Result<Seq> {
        let how_many = super::column::count(how_many);
        if self.end - self.next < how_many {
            let last = tx.number(&LAST, values![])?;
            let end = last + how_many.max(BLOCK);
            tx.execute(&RESERVE, values![end])?;
            *self = Self { next: last + 1, end: end + 1 };
        }
        let first = self.next;
        self.next += how_many;
        Ok(Seq(first))
    }

    /// The transaction was rolled back, and perhaps a reservation with it.
    pub fn roll_back(&mut self) {
        *self = Self::default();
    }
}
