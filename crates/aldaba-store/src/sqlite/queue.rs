//! What waits for the writer: bounded, and taken in the order of the classes.

use super::failure::Failure;
use super::op::{Class, Op, Reply};
use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// A bound in operations and in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub(super) operations: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    room: Room,
    batch: Room,
    lines: Mutex<Lines>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: [VecDeque<(Op, Reply)>; Class::ALL.len()],
    /// What waits of the classes that can be refused.
    used: Room,
    closed: bool,
}

/// What one commit is made of.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ops: Vec<Op>,
    pub(super) replies: Vec<Reply>,
}

impl Queue {
    pub(super) fn new(room: Room, batch: Room) -> Self {
        Self { room, batch, lines: Mutex::default(), arrived: Condvar::new() }
    }

    /// Hands an operation over, or answers at once on the caller's thread that it is refused.
    pub(super) fn put(&self, op: Op, reply: Reply, failure: &Failure) {
        let class = op.class();
        let (operations, bytes) = (op.operations(), op.bytes());
        let mut lines = self.lines.lock();
        let refusal = if let Some(error) = failure.get() {
            Some(error)
        } else if lines.closed {
            Some(Error::Closed)
        } else if class != Class::Result && !lines.used.fits(operations, bytes, self.room) {
            Some(Error::Busy)
        } else {
            None
        };
        if let Some(error) = refusal {
            drop(lines);
            reply.call(Err(error));
            return;
        }
        if class != Class::Result {
            lines.used.add(operations, bytes);
        }
        lines.waiting[class as usize].push_back((op, reply));
        drop(lines);
        self.arrived.notify_one();
    }

    /// What the next commit is made of; waits for something to arrive. `None`: closed, and empty.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut lines = self.lines.lock();
        while lines.waiting.iter().all(VecDeque::is_empty) {
            if lines.closed {
                return None;
            }
            self.arrived.wait(&mut lines);
        }
        Some(lines.take(self.batch))
    }

    /// Nothing more is taken in; what waits is still written.
    pub(super) fn close(&self) {
        self.lines.lock().closed = true;
        self.arrived.notify_all();
    }
}

impl Lines {
    /// Fills a batch: first every class gets its share, then the room that is left is filled in
    /// order. Without the shares a steady stream of results could keep everything else waiting.
    fn take(&mut self, batch: Room) -> Batch {
        let mut taken: [Vec<(Op, Reply)>; Class::ALL.len()] = Default::default();
        let mut filled = Room::default();
        for rest in [false, true] {
            for class in Class::ALL {
                let share = if rest { batch.operations } else { share(class, batch.operations) };
                let mut own = Room::default();
                let line = &mut self.waiting[class as usize];
                while let Some((op, _)) = line.front() {
                    let (operations, bytes) = (op.operations(), op.bytes());
                    // One that is larger than a whole batch would otherwise wait for ever.
                    if !filled.fits(operations, bytes, batch) || own.operations >= share {
                        break;
                    }
                    filled.add(operations, bytes);
                    own.add(operations, bytes);
                    if class != Class::Result {
                        self.used.remove(operations, bytes);
                    }
                    taken[class as usize].extend(line.pop_front());
                }
            }
        }
        let (ops, replies) = taken.into_iter().flatten().unzip();
        Batch { ops, replies }
    }
}

fn share(class: Class, operations: usize) -> usize {
    match class {
        Class::Result => operations / 2,
        Class::Accept => operations * 3 / 8,
        Class::Command => operations / 8,
    }
    .max(1)
}

impl Room {
    /// Something always fits into an empty room, however large it is.
    fn fits(&self, operations: usize, bytes: usize, limit: Self) -> bool {
        let empty = self.operations == 0;
        empty || (self.operations + operations <= limit.operations && self.bytes + bytes <= limit.bytes)
    }

    fn add(&mut self, operations: usize, bytes: usize) {
        self.operations += operations;
        self.bytes += bytes;
    }

    fn remove(&mut self, operations: usize, bytes: usize) {
        self.operations -= operations;
        self.bytes -= bytes;
    }
}
