//! Slots for connections. A connection without a slot waits for a moment, and is then refused with `Retry-After`
//! instead of hanging.

use super::connection_table::{ConnectionTable, Newcomer};
use super::tls::REFUSED_HANDSHAKE;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a connection waits for a slot. While half of the waiting places are taken, none waits.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which a connection keeps its slot before it may be asked to give it up.
const MIN_SLOT_TIME: Duration = Duration::from_secs(5);
/// How long a refusal may take, including the reading of the rest.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection without a slot may take for its head, which makes others give way to it; and the same while
/// many wait: a client that sends nothing must not keep the others out.
const HEAD_TIMEOUT: Duration = Duration::from_millis(100);
const CROWDED_HEAD_TIMEOUT: Duration = Duration::from_millis(20);
/// Bytes of a head that are inspected before there is a slot. A connection with a longer head waits for a slot.
const MAX_INSPECTED_BYTES: usize = 4096;
const MAX_REJECT_BYTES: u64 = 64 * 1024;

/// Why a connection is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum RejectReason {
    Full,
    Overloaded,
    /// Its address has reached its limit of connections.
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

    fn answer(self) -> String {
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1";
        let body = format!("{{\"code\":\"busy\",\"detail\":\"{}\"}}", self.detail());
        let length = body.len();
        format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }
}

#[derive(Debug)]
pub(super) struct ConnectionSlots {
    count: usize,
    slots: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    max_pending: usize,
    table: Arc<ConnectionTable>,
    /// Wakes the connections that are asked to leave, the first one first.
    wanted: Notify,
    /// Requests in progress on connections with HTTP/2.
    streams: AtomicUsize,
    /// The log has said that connections are refused.
    crowded: AtomicBool,
}

/// A place in the queue for slots.
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

/// The slot of one connection.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    _held: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    /// `pending`: accepted connections without a slot. More wait in the system's queue.
    pub(super) fn new(count: usize, pending: usize, table: Arc<ConnectionTable>) -> Self {
        let (slots, permits) = (Arc::new(Semaphore::new(count)), Arc::new(Semaphore::new(pending)));
        Self {
            count,
            slots,
            permits,
            max_pending: pending,
            table,
            wanted: Notify::new(),
            streams: AtomicUsize::new(0),
            crowded: AtomicBool::new(false),
        }
    }

    pub(super) fn table(&self) -> &Arc<ConnectionTable> {
        &self.table
    }

    /// Whether few slots are left, so that each is released as soon as possible.
    pub(super) fn are_scarce(&self) -> bool {
        self.slots.available_permits() < self.count / 4
    }

    /// How much is asked of the server: each connection with a slot, and each request of those that have several at once.
    pub(super) fn load(&self) -> usize {
        self.count.saturating_sub(self.slots.available_permits()) + self.streams.load(Ordering::Relaxed)
    }

    pub(super) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Resolves when the next connection may be accepted.
    pub(super) async fn pending_permit(&self) -> PendingConnection {
        let held = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        PendingConnection { held, permits: self.permits.clone(), max_pending: self.max_pending }
    }

    /// A slot for a waiting connection, if one is free.
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
        // Not at the first free slot, or the log would repeat it all the time.
        if self.crowded.load(Ordering::Relaxed) && self.slots.available_permits() > self.count / 4 {
            self.crowded.store(false, Ordering::Relaxed);
        }
        ConnectionSlot { _held: slot }
    }

    /// A slot for a waiting connection, perhaps after a moment. `Err`: there is none, and the connection is refused.
    pub(super) async fn acquire(
        &self,
        pending: PendingConnection,
        stream: &TcpStream,
    ) -> Result<ConnectionSlot, PendingConnection> {
        // A connection that has not sent a request gives way first.
        let mut one_leaves = self.table.evict_oldest(Newcomer::HeadUnknown);
        if !one_leaves && has_sent_head(stream, &pending).await {
            one_leaves = self.table.evict_oldest(Newcomer::HeadReceived);
        }
        if !one_leaves {
            self.wanted.notify_one();
            self.table.reserve_next_eviction();
        }
        let timeout = if pending.is_crowded() && !one_leaves { Duration::ZERO } else { SLOT_TIMEOUT };
        let acquired = tokio::time::timeout(timeout, self.slots.clone().acquire_owned()).await;
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

    /// Resolves when another connection should have the slot: after a while, if others find none, and round robin.
    pub(super) async fn wanted(&self) {
        tokio::time::sleep(MIN_SLOT_TIME).await;
        self.wanted.notified().await;
    }

    /// Resolves when all connections have closed.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = self.slots.acquire_many(all).await;
    }
}

/// Whether a whole head has arrived, or arrives soon.
async fn has_sent_head(stream: &TcpStream, pending: &PendingConnection) -> bool {
    let looks = async {
        stream.readable().await?;
        let mut start = [0; MAX_INSPECTED_BYTES];
        let read = stream.peek(&mut start).await?;
        io::Result::Ok(start[..read].windows(4).any(|end| end == b"\r\n\r\n"))
    };
    let longest = if pending.is_crowded() { CROWDED_HEAD_TIMEOUT } else { HEAD_TIMEOUT };
    matches!(tokio::time::timeout(longest, looks).await, Ok(Ok(true)))
}

/// Refuses without reading the request's path. `tls`: before the handshake, so that an answer could not be read.
pub(super) async fn reject(
    mut stream: TcpStream,
    pending: PendingConnection,
    reason: RejectReason,
    tls: bool,
) {
    let answered = async {
        // Not before the request has begun: many clients take that for a broken connection.
        stream.ready(Interest::READABLE).await?;
        let mut bin = [0; 4096];
        while stream.try_read(&mut bin).is_ok_and(|read| read == bin.len()) {}
        match tls {
            true => stream.write_all(&REFUSED_HANDSHAKE).await?,
            false => stream.write_all(reason.answer().as_bytes()).await?,
        }
        stream.shutdown().await?;
        // Closing a connection with unread bytes may lose the response. So a client that is still sending may finish,
        // unless others wait for a slot.
        if !pending.is_crowded() {
            tokio::io::copy(&mut stream.take(MAX_REJECT_BYTES), &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    };
    let longest = if pending.is_crowded() { CROWDED_HEAD_TIMEOUT } else { REJECT_TIMEOUT };
    let _ = tokio::time::timeout(longest, answered).await;
    drop(pending.held);
}
