//! ConnectionSlots for connections. Whoever finds none waits at the door for a moment, and is then told to come
//! back rather than left to hang.

use super::connection_table::{ConnectionTable, Newcomer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long one waits at the door, unless half of it is taken: then nobody waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a connection is let alone before it may be asked to give up its slot.
const MIN_SLOT_TIME: Duration = Duration::from_secs(5);
/// How long turning one away may take, and what is read of it.
const LONGEST: Duration = Duration::from_secs(1);
/// How long whoever finds no slot may take for a head, which makes others give way to it; and the same while many wait at the
/// door: whoever sends nothing must not keep the others from it.
const HEAD_TIMEOUT: Duration = Duration::from_millis(100);
const CROWDED_HEAD_TIMEOUT: Duration = Duration::from_millis(20);
/// What is looked at of a head at the door. A longer one waits for a slot without it.
const HEAD_BYTES: usize = 4096;
const MOST: u64 = 64 * 1024;

/// Why one is turned away.
#[derive(Clone, Copy, Debug)]
pub(super) enum RejectReason {
    Full,
    Overloaded,
    /// Its address has as many connections as it may have.
    Address,
}

impl RejectReason {
    fn detail(self) -> &'static str {
        match self {
            Self::Full => "The server has as many connections as it may have. Nothing was stored; try again",
            Self::Overloaded => "The server is busy. Nothing was stored; try again",
            Self::Address => {
                "This address has as many connections as it may have. Nothing was stored; try again"
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct ConnectionSlots {
    count: usize,
    slots: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    max_pending: usize,
    table: Arc<ConnectionTable>,
    /// Whoever waits for it is asked to leave: the first one first.
    wanted: Notify,
    /// It was said that some are turned away.
    crowded: AtomicBool,
}

/// A slot at the door.
#[derive(Debug)]
pub(super) struct PendingConnection {
    held: OwnedSemaphorePermit,
    permits: Arc<Semaphore>,
    max_pending: usize,
}

impl PendingConnection {
    fn is_crowded(&self) -> bool {
        self.permits.available_permits() < self.max_pending / 2
    }
}

/// A slot of one's own.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    _held: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    /// `pending`: connections that have been accepted and have no slot. More wait in the system's queue.
    pub(super) fn new(count: usize, pending: usize, table: Arc<ConnectionTable>) -> Self {
        let (slots, permits) = (Arc::new(Semaphore::new(count)), Arc::new(Semaphore::new(pending)));
        Self {
            count,
            slots,
            permits,
            max_pending: pending,
            table,
            wanted: Notify::new(),
            crowded: AtomicBool::new(false),
        }
    }

    pub(super) fn table(&self) -> &Arc<ConnectionTable> {
        &self.table
    }

    /// Whether few slots are left, so that nobody should have one for longer than needed.
    pub(super) fn are_scarce(&self) -> bool {
        self.slots.available_permits() < self.count / 4
    }

    /// How many connections have a slot.
    pub(super) fn in_use(&self) -> usize {
        self.count.saturating_sub(self.slots.available_permits())
    }

    /// Resolves when the next connection may be accepted.
    pub(super) async fn pending_permit(&self) -> PendingConnection {
        let held = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        PendingConnection { held, permits: self.permits.clone(), max_pending: self.max_pending }
    }

    /// Leads from the door to a slot, if there is one.
    pub(super) fn try_acquire(
        &self,
        pending: PendingConnection,
    ) -> Result<ConnectionSlot, PendingConnection> {
        match self.slots.clone().try_acquire_owned() {
            Ok(slot) => Ok(self.occupy(slot)),
            Err(_) => Err(pending),
        }
    }

    fn occupy(&self, slot: OwnedSemaphorePermit) -> ConnectionSlot {
        // Not at the first free slot: it would be said again and again.
        if self.crowded.load(Ordering::Relaxed) && self.slots.available_permits() > self.count / 4 {
            self.crowded.store(false, Ordering::Relaxed);
        }
        ConnectionSlot { _held: slot }
    }

    /// Leads from the door to a slot, maybe after a moment. `Err`: there is none, to be turned away.
    pub(super) async fn acquire(
        &self,
        pending: PendingConnection,
        stream: &TcpStream,
    ) -> Result<ConnectionSlot, PendingConnection> {
        // Whoever has not even sent a request gives way first.
        let mut one_leaves = self.table.evict_oldest(Newcomer::HeadUnknown);
        if !one_leaves && has_sent_head(stream, &pending).await {
            one_leaves = self.table.evict_oldest(Newcomer::HeadReceived);
        }
        if !one_leaves {
            self.wanted.notify_one();
            self.table.reserve_next_eviction();
        }
        let patience = if pending.is_crowded() && !one_leaves { Duration::ZERO } else { PATIENCE };
        let acquired = tokio::time::timeout(patience, self.slots.clone().acquire_owned()).await;
        if !one_leaves {
            self.table.cancel_eviction();
        }
        match acquired {
            Ok(slot) => Ok(self.occupy(slot.expect("slots are never closed"))),
            Err(_) => {
                if !self.crowded.swap(true, Ordering::Relaxed) {
                    tracing::warn!(max_connections = self.count, "too many connections: some get a 503");
                }
                Err(pending)
            }
        }
    }

    /// Resolves when somebody else should have the slot: after a while, if others find none, and by turns.
    pub(super) async fn wanted(&self) {
        tokio::time::sleep(MIN_SLOT_TIME).await;
        self.wanted.notified().await;
    }

    /// Resolves when everybody has left.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = self.slots.acquire_many(all).await;
    }
}

/// Whether a whole head has come, or comes soon.
async fn has_sent_head(stream: &TcpStream, pending: &PendingConnection) -> bool {
    let looks = async {
        stream.readable().await?;
        let mut start = [0; HEAD_BYTES];
        let read = stream.peek(&mut start).await?;
        io::Result::Ok(start[..read].windows(4).any(|end| end == b"\r\n\r\n"))
    };
    let longest = if pending.is_crowded() { CROWDED_HEAD_TIMEOUT } else { HEAD_TIMEOUT };
    matches!(tokio::time::timeout(longest, looks).await, Ok(Ok(true)))
}

/// Answers without looking at what was asked.
pub(super) async fn reject(mut stream: TcpStream, pending: PendingConnection, reason: RejectReason) {
    let answered = async {
        // Not before the request has begun: many clients take that for a broken connection.
        stream.ready(Interest::READABLE).await?;
        let mut bin = [0; 4096];
        while stream.try_read(&mut bin).is_ok_and(|read| read == bin.len()) {}
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1";
        let body = format!("{{\"code\":\"busy\",\"detail\":\"{}\"}}", reason.detail());
        let length = body.len();
        let answer = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with something unread may take the answer with it. So whoever is still
        // sending may end, unless others wait for the slot at the door.
        if !pending.is_crowded() {
            tokio::io::copy(&mut stream.take(MOST), &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    };
    let longest = if pending.is_crowded() { CROWDED_HEAD_TIMEOUT } else { LONGEST };
    let _ = tokio::time::timeout(longest, answered).await;
    drop(pending.held);
}
