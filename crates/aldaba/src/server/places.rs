//! Places for connections. Whoever finds none waits at the door for a moment, and is then told to come
//! back rather than left to hang.

use super::heads::{Heads, Newcomer};
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
/// How long a connection is let alone before it may be asked to give up its place.
const STAY: Duration = Duration::from_secs(5);
/// How long turning one away may take, and what is read of it.
const LONGEST: Duration = Duration::from_secs(1);
/// How long whoever finds no place may take for a head, which makes others give way to it; and the same while many wait at the
/// door: whoever sends nothing must not keep the others from it.
const HEAD_AT_DOOR: Duration = Duration::from_millis(100);
const HEAD_IN_A_CROWD: Duration = Duration::from_millis(20);
/// What is looked at of a head at the door. A longer one waits for a place without it.
const HEAD_BYTES: usize = 4096;
const MOST: u64 = 64 * 1024;

/// Why one is turned away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Because {
    Full,
    Late,
    /// Its address has as many connections as it may have.
    Address,
}

impl Because {
    fn detail(self) -> &'static str {
        match self {
            Self::Full => "The server has as many connections as it may have. Nothing was stored; try again",
            Self::Late => "The server is busy. Nothing was stored; try again",
            Self::Address => {
                "This address has as many connections as it may have. Nothing was stored; try again"
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Places {
    count: usize,
    places: Arc<Semaphore>,
    door: Arc<Semaphore>,
    at_door: usize,
    heads: Arc<Heads>,
    /// Whoever waits for it is asked to leave: the first one first.
    wanted: Notify,
    /// It was said that some are turned away.
    crowded: AtomicBool,
}

/// A place at the door.
#[derive(Debug)]
pub(super) struct AtDoor {
    held: OwnedSemaphorePermit,
    door: Arc<Semaphore>,
    at_door: usize,
}

impl AtDoor {
    fn in_a_crowd(&self) -> bool {
        self.door.available_permits() < self.at_door / 2
    }
}

/// A place of one's own.
#[derive(Debug)]
pub(super) struct Place {
    _held: OwnedSemaphorePermit,
}

impl Places {
    /// `at_door`: connections that have been accepted and have no place. More wait in the system's queue.
    pub(super) fn new(count: usize, at_door: usize, heads: Arc<Heads>) -> Self {
        let (places, door) = (Arc::new(Semaphore::new(count)), Arc::new(Semaphore::new(at_door)));
        Self { count, places, door, at_door, heads, wanted: Notify::new(), crowded: AtomicBool::new(false) }
    }

    pub(super) fn heads(&self) -> &Arc<Heads> {
        &self.heads
    }

    /// Whether few places are left, so that nobody should have one for longer than needed.
    pub(super) fn are_few(&self) -> bool {
        self.places.available_permits() < self.count / 4
    }

    /// How many connections have a place.
    pub(super) fn taken(&self) -> usize {
        self.count.saturating_sub(self.places.available_permits())
    }

    /// Resolves when the next connection may be accepted.
    pub(super) async fn come_to_the_door(&self) -> AtDoor {
        let held = self.door.clone().acquire_owned().await.expect("the door is never closed");
        AtDoor { held, door: self.door.clone(), at_door: self.at_door }
    }

    /// Leads from the door to a place, if there is one.
    pub(super) fn come_in_at_once(&self, door: AtDoor) -> Result<Place, AtDoor> {
        match self.places.clone().try_acquire_owned() {
            Ok(place) => Ok(self.comes_in(place)),
            Err(_) => Err(door),
        }
    }

    fn comes_in(&self, place: OwnedSemaphorePermit) -> Place {
        // Not at the first free place: it would be said again and again.
        if self.crowded.load(Ordering::Relaxed) && self.places.available_permits() > self.count / 4 {
            self.crowded.store(false, Ordering::Relaxed);
        }
        Place { _held: place }
    }

    /// Leads from the door to a place, maybe after a moment. `Err`: there is none, to be turned away.
    pub(super) async fn come_in(&self, door: AtDoor, stream: &TcpStream) -> Result<Place, AtDoor> {
        // Whoever has not even sent a request gives way first.
        let mut one_leaves = self.heads.make_way(Newcomer::Unknown);
        if !one_leaves && has_sent_a_head(stream, &door).await {
            one_leaves = self.heads.make_way(Newcomer::Asks);
        }
        if !one_leaves {
            self.wanted.notify_one();
            self.heads.waits();
        }
        let patience = if door.in_a_crowd() && !one_leaves { Duration::ZERO } else { PATIENCE };
        let came_in = tokio::time::timeout(patience, self.places.clone().acquire_owned()).await;
        if !one_leaves {
            self.heads.gives_up();
        }
        match came_in {
            Ok(place) => Ok(self.comes_in(place.expect("places are never closed"))),
            Err(_) => {
                if !self.crowded.swap(true, Ordering::Relaxed) {
                    tracing::warn!(max_connections = self.count, "too many connections: some get a 503");
                }
                Err(door)
            }
        }
    }

    /// Resolves when somebody else should have the place: after a while, if others find none, and by turns.
    pub(super) async fn wanted(&self) {
        tokio::time::sleep(STAY).await;
        self.wanted.notified().await;
    }

    /// Resolves when everybody has left.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }
}

/// Whether a whole head has come, or comes soon.
async fn has_sent_a_head(stream: &TcpStream, door: &AtDoor) -> bool {
    let looks = async {
        stream.readable().await?;
        let mut start = [0; HEAD_BYTES];
        let read = stream.peek(&mut start).await?;
        io::Result::Ok(start[..read].windows(4).any(|end| end == b"\r\n\r\n"))
    };
    let longest = if door.in_a_crowd() { HEAD_IN_A_CROWD } else { HEAD_AT_DOOR };
    matches!(tokio::time::timeout(longest, looks).await, Ok(Ok(true)))
}

/// Answers without looking at what was asked.
pub(super) async fn turn_away(mut stream: TcpStream, door: AtDoor, because: Because) {
    let answered = async {
        // Not before the request has begun: many clients take that for a broken connection.
        stream.ready(Interest::READABLE).await?;
        let mut bin = [0; 4096];
        while stream.try_read(&mut bin).is_ok_and(|read| read == bin.len()) {}
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1";
        let body = format!("{{\"code\":\"busy\",\"detail\":\"{}\"}}", because.detail());
        let length = body.len();
        let answer = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with something unread may take the answer with it. So whoever is still
        // sending may end, unless others wait for the place at the door.
        if !door.in_a_crowd() {
            tokio::io::copy(&mut stream.take(MOST), &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    };
    let longest = if door.in_a_crowd() { HEAD_IN_A_CROWD } else { LONGEST };
    let _ = tokio::time::timeout(longest, answered).await;
    drop(door.held);
}
