//! What waits for the writer: bounded in number, in bytes and in time, and taken in the order of the
//! classes.

mod cost;
mod pace;

use super::failure::Failure;
use crate::Error;
use crate::operations::{Class, Monotonic, Op, Reply};
use cost::Cost;
use pace::Pace;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// How many results one commit may have in any case while messages come.
const FEW_RESULTS: usize = 8;
/// A commit has at most so many times the usual operations, while messages wait that have several deliveries each.
const MAX_FAN_OUT: usize = 4;
/// How long such a commit may take, as far as can be told.
const LARGE_COMMIT_TIME: Duration = Duration::from_millis(12);
/// How long after the last message others are expected.
const LULL: Duration = Duration::from_millis(200);

/// A bound in operations and in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub(super) operations: usize,
    pub(super) bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// What may wait.
    pub(super) room: Room,
    /// How long one may have to wait.
    pub(super) wait: Duration,
    /// What is in one commit.
    pub(super) batch: Room,
}

#[derive(Debug)]
pub(super) struct WriteQueue {
    limits: Limits,
    clock: Monotonic,
    lines: Mutex<ClassQueues>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct ClassQueues {
    of: [ClassQueue; Class::ALL.len()],
    /// What waits of the classes that can be refused.
    used: Room,
    cost: Cost,
    /// When a message last came.
    last_accept: Option<Duration>,
    closed: bool,
}

#[derive(Debug, Default)]
struct ClassQueue {
    waiting: VecDeque<Waiting>,
    operations: usize,
    messages: usize,
    pace: Pace,
}

#[derive(Debug)]
struct Waiting {
    op: Op,
    reply: Reply,
    since: Duration,
}

/// What one commit is made of.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ops: Vec<Op>,
    pub(super) replies: Vec<Reply>,
}

impl WriteQueue {
    pub(super) fn new(limits: Limits, clock: Monotonic) -> Self {
        Self { limits, clock, lines: Mutex::default(), arrived: Condvar::new() }
    }

    /// Queues an operation, or refuses it at once on the caller's thread.
    pub(super) fn put(&self, op: Op, reply: Reply, failure: &Failure) {
        let now = self.clock.now();
        let mut lines = self.lines.lock();
        let refusal = if let Some(error) = failure.get() {
            Some(error)
        } else if lines.closed {
            Some(Error::Closed)
        } else if lines.refuses(&op, now, &self.limits) {
            Some(Error::Busy)
        } else {
            None
        };
        if let Some(error) = refusal {
            drop(lines);
            reply.call(Err(error));
            return;
        }
        lines.put(op, reply, now);
        drop(lines);
        self.arrived.notify_one();
    }

    /// What the next commit is made of; waits for something to arrive, for so long at most, and then returns an empty batch.
    /// `None`: closed, and empty.
    pub(super) fn take(&self, timeout: Option<Duration>) -> Option<Batch> {
        let mut lines = self.lines.lock();
        lines.written(self.clock.now());
        while lines.of.iter().all(|line| line.waiting.is_empty()) {
            if lines.closed {
                return None;
            }
            match timeout {
                None => self.arrived.wait(&mut lines),
                Some(timeout) => {
                    if self.arrived.wait_for(&mut lines, timeout).timed_out() {
                        return Some(Batch::default());
                    }
                }
            }
        }
        Some(lines.take(self.limits.batch, self.clock.now()))
    }

    /// Nothing more is taken in; what waits is still written.
    pub(super) fn close(&self) {
        self.lines.lock().closed = true;
        self.arrived.notify_all();
    }
}

impl ClassQueues {
    /// A result is never refused: it is what frees the system of work.
    fn refuses(&self, op: &Op, now: Duration, limits: &Limits) -> bool {
        let class = op.class();
        class != Class::Result
            && (!self.used.fits(op.operations(), op.bytes(), limits.room)
                || self.of[class as usize].is_slow(now, limits))
    }

    fn put(&mut self, op: Op, reply: Reply, since: Duration) {
        let class = op.class();
        if class != Class::Result {
            self.used.add(op.operations(), op.bytes());
        }
        if class == Class::Accept {
            self.last_accept = Some(since);
        }
        let line = &mut self.of[class as usize];
        line.operations += op.operations();
        line.messages += op.messages();
        line.waiting.push_back(Waiting { op, reply, since });
    }

    /// The writer is done with the batch that it took last.
    fn written(&mut self, now: Duration) {
        self.cost.end(now);
        for line in &mut self.of {
            line.pace.end(now);
        }
    }

    /// Fills a batch: first every class gets its share, then the room that is left is filled in
    /// order. Without the shares a steady stream of results could keep everything else waiting.
    fn take(&mut self, usual: Room, now: Duration) -> Batch {
        let batch = Room { operations: self.operations(usual.operations), ..usual };
        let mut taken: [Vec<(Op, Reply)>; Class::ALL.len()] = Default::default();
        let mut filled = Room::default();
        let mut own = [Room::default(); Class::ALL.len()];
        let results = self.most_results(batch.operations, now);
        let accepts = self.most_accepts(usual.operations, batch.operations);
        for rest in [false, true] {
            for class in Class::ALL {
                let own = &mut own[class as usize];
                let size = if class.is_of_messages() { batch.operations } else { usual.operations };
                let most = most(class, results, accepts, size);
                let share = if rest { most } else { share(class, size).min(most) };
                let line = &mut self.of[class as usize];
                while let Some(Waiting { op, .. }) = line.waiting.front() {
                    let (operations, bytes) = (op.operations(), op.bytes());
                    // The first of a class is taken however large it is: otherwise a large one would
                    // wait, and everything behind it, until a batch has nothing else in it.
                    if own.operations > 0
                        && (own.operations >= share || !filled.fits(operations, bytes, batch))
                    {
                        break;
                    }
                    filled.add(operations, bytes);
                    own.add(operations, bytes);
                    line.operations -= operations;
                    line.messages -= op.messages();
                    if class != Class::Result {
                        self.used.remove(operations, bytes);
                    }
                    let next = line.waiting.pop_front();
                    taken[class as usize].extend(next.map(|Waiting { op, reply, .. }| (op, reply)));
                }
            }
        }
        for class in Class::ALL {
            let (line, own) = (&mut self.of[class as usize], own[class as usize].operations);
            // A line that was taken whole says how much came, not how much there was room for.
            let whole = line.waiting.is_empty();
            line.pace.begin(now, if whole { own.max(share(class, batch.operations)) } else { own });
        }
        self.cost.begin(now, filled.operations);
        let (ops, replies) = taken.into_iter().flatten().unzip();
        Batch { ops, replies }
    }
}

impl ClassQueues {
    /// How many operations the next commit may have. Where messages wait that have many deliveries each, it is as many messages
    /// as usual that fit, and the results of as many: most of their pages are the same, so that they cost less together.
    /// Results alone never make a commit larger.
    fn operations(&self, usual: usize) -> usize {
        let ClassQueue { operations, messages, .. } = self.of[Class::Accept as usize];
        let fan_out = (operations / messages.max(1)).clamp(1, MAX_FAN_OUT);
        let in_time = self.cost.within(LARGE_COMMIT_TIME).unwrap_or(usize::MAX);
        (usual * fan_out).min(in_time.max(usual))
    }

    /// Writing down what is to be delivered costs less than delivering it. So while results come, messages with many deliveries
    /// have no more of a commit than the results have, or what is accepted soon waits for long. A slow receiver gives few
    /// results, and must not slow this down: most of a usual commit they have in any case.
    fn most_accepts(&self, usual: usize, operations: usize) -> usize {
        match self.of[Class::Result as usize].operations {
            0 => operations,
            results => results.max(usual * 3 / 4).min(operations),
        }
    }

    /// Hundreds of results can come in one moment. A message that arrives just then waits for the commit that
    /// is under way and for its own, so they make neither take much longer.
    fn most_results(&self, operations: usize, now: Duration) -> usize {
        if self.last_accept.is_none_or(|last| now.saturating_sub(last) > LULL) {
            return operations;
        }
        let accepts = self.of[Class::Accept as usize].operations;
        let quick = self.cost.as_many_again().unwrap_or(operations);
        quick.max(accepts * 2).max(FEW_RESULTS).min(operations)
    }
}

impl ClassQueue {
    /// Whether one more would wait too long. The pace tells it early, when many come at once; the first
    /// of the line tells it when nothing moves, as on a disk that hangs.
    fn is_slow(&self, now: Duration, limits: &Limits) -> bool {
        let oldest = self.waiting.front().map_or(now, |first| first.since);
        now.saturating_sub(oldest) > limits.wait || self.pace.wait(self.operations) > limits.wait
    }
}

fn share(class: Class, operations: usize) -> usize {
    match class {
        Class::Result => operations / 2,
        Class::Accept => operations * 3 / 8,
        Class::Command => operations / 8,
        Class::Bulk => 1,
    }
    .max(1)
}

/// What a class may have of a batch that has room left.
fn most(class: Class, results: usize, accepts: usize, operations: usize) -> usize {
    match class {
        Class::Result => results,
        Class::Accept => accepts,
        Class::Command => operations,
        // A slice of bulk work takes its whole time of a commit that others wait for, so there is never
        // a second one.
        Class::Bulk => 1,
    }
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

#[cfg(test)]
mod tests;
