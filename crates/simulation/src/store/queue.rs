//! What waits for the writer: lost in a crash.

use aldaba_store::operations::{Class, Op, Reply};
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct WaitingOps {
    lines: Mutex<Lines>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    /// In the order of the classes.
    waiting: [VecDeque<(Op, Reply)>; Class::ALL.len()],
    closed: bool,
}

impl WaitingOps {
    /// Queues an operation; returns the reply when the store is closed.
    pub(super) fn put(&self, op: Op, reply: Reply) -> Result<(), Reply> {
        let mut lines = self.lines.lock();
        if lines.closed {
            return Err(reply);
        }
        lines.waiting[op.class() as usize].push_back((op, reply));
        self.arrived.notify_one();
        Ok(())
    }

    /// Everything that waits. `None`: closed, and empty.
    pub(super) async fn take(&self) -> Option<Vec<(Op, Reply)>> {
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
