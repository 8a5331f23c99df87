//! What waits for the writer: lost in a crash.

use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::{
    Accept, Accepted, AuditEntry, Change, Changed, Done, Error, Record, Recorded, Removal, Removed,
    ReopenEvent, ReplayStep, ReplayStepped, Resent, Seq, SumUp, Waiting,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) enum Op {
    Record(Vec<Record>, Done<Vec<Recorded>>),
    Resent(Box<Resent>, Done<()>),
    Accept(Vec<Accept>, Done<Vec<Accepted>>),
    Reopen(ReopenEvent, Done<Vec<(EndpointId, Waiting)>>),
    Change(Box<Change>, Option<Arc<AuditEntry>>, Done<Changed>),
    StepReplay(ReplayStep, Done<ReplayStepped>),
    SettleSetting(&'static str, Vec<u8>, Done<Vec<u8>>),
    Discard(AppId, Vec<Seq>, Option<Arc<AuditEntry>>, Done<usize>),
    SumUp(SumUp, Done<usize>),
    Remove(Removal, Done<Removed>),
}

/// A write whose fate is known, and who waits for it.
#[derive(Debug)]
pub(super) enum Reply {
    Record(Done<Vec<Recorded>>, Vec<Recorded>),
    Resent(Done<()>),
    Accept(Done<Vec<Accepted>>, Vec<Accepted>),
    Reopen(Done<Vec<(EndpointId, Waiting)>>, Vec<(EndpointId, Waiting)>),
    Change(Done<Changed>, Changed),
    StepReplay(Done<ReplayStepped>, Box<ReplayStepped>),
    SettleSetting(Done<Vec<u8>>, Vec<u8>),
    Discard(Done<usize>, usize),
    SumUp(Done<usize>, usize),
    Remove(Done<Removed>, Removed),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: Mutex<Lines>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    /// Results, events, commands, slices of bulk work: in the order of their turns.
    waiting: [VecDeque<Op>; 4],
    closed: bool,
}

impl Queue {
    /// Hands an operation over; gives it back when the store is closed.
    pub(super) fn put(&self, op: Op) -> Result<(), Op> {
        let mut lines = self.lines.lock();
        if lines.closed {
            return Err(op);
        }
        let line = match op {
            Op::Record(..) | Op::Resent(..) => 0,
            Op::Accept(..) | Op::Reopen(..) => 1,
            Op::Change(..) | Op::SettleSetting(..) | Op::Discard(..) => 2,
            Op::StepReplay(..) | Op::SumUp(..) | Op::Remove(..) => 3,
        };
        lines.waiting[line].push_back(op);
        self.arrived.notify_one();
        Ok(())
    }

    /// Everything that waits. `None`: closed, and empty.
    pub(super) async fn take(&self) -> Option<Vec<Op>> {
        loop {
            {
                let mut lines = self.lines.lock();
                let batch: Vec<_> = lines.waiting.iter_mut().flat_map(std::mem::take).collect();
                if !batch.is_empty() {
                    return Some(batch);
                }
                if lines.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    pub(super) fn close(&self) {
        self.lines.lock().closed = true;
        self.arrived.notify_one();
    }
}

impl Op {
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Record(_, done) => done.call(Err(error)),
            Self::Resent(_, done) => done.call(Err(error)),
            Self::Accept(_, done) => done.call(Err(error)),
            Self::Reopen(_, done) => done.call(Err(error)),
            Self::Change(_, _, done) => done.call(Err(error)),
            Self::StepReplay(_, done) => done.call(Err(error)),
            Self::SettleSetting(_, _, done) => done.call(Err(error)),
            Self::Discard(_, _, _, done) => done.call(Err(error)),
            Self::SumUp(_, done) => done.call(Err(error)),
            Self::Remove(_, done) => done.call(Err(error)),
        }
    }
}

impl Reply {
    pub(super) fn call(self) {
        match self {
            Self::Record(done, outcome) => done.call(Ok(outcome)),
            Self::Resent(done) => done.call(Ok(())),
            Self::Accept(done, outcome) => done.call(Ok(outcome)),
            Self::Reopen(done, outcome) => done.call(Ok(outcome)),
            Self::Change(done, outcome) => done.call(Ok(outcome)),
            Self::StepReplay(done, outcome) => done.call(Ok(*outcome)),
            Self::SettleSetting(done, outcome) => done.call(Ok(outcome)),
            Self::Discard(done, outcome) => done.call(Ok(outcome)),
            Self::SumUp(done, outcome) => done.call(Ok(outcome)),
            Self::Remove(done, outcome) => done.call(Ok(outcome)),
        }
    }
}
