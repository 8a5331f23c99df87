//! Places for connections. Whoever finds none waits at the door for a moment, and is then told to come
//! back rather than left to hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that have been accepted and have no place. More wait in the system's queue.
const DOOR: usize = 128;
/// How long one waits at the door, unless half of it is taken: then nobody waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long turning one away may take, and what is read of it.
const LONGEST: Duration = Duration::from_secs(1);
const MOST: u64 = 64 * 1024;

const DETAIL: &str = r#"{"code":"busy","detail":"The server has as many connections as it may have. Nothing was stored; try again"}"#;

#[derive(Debug)]
pub(super) struct Places {
    count: usize,
    places: Arc<Semaphore>,
    door: Arc<Semaphore>,
    /// It was said that some are turned away.
    crowded: AtomicBool,
}

/// A place at the door.
#[derive(Debug)]
pub(super) struct AtDoor {
    _held: OwnedSemaphorePermit,
}

/// A place of one's own.
#[derive(Debug)]
pub(super) struct Place {
    _held: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(count: usize) -> Self {
        let (places, door) = (Arc::new(Semaphore::new(count)), Arc::new(Semaphore::new(DOOR)));
        Self { count, places, door, crowded: AtomicBool::new(false) }
    }

    /// Resolves when the next connection may be accepted.
    pub(super) async fn come_to_the_door(&self) -> AtDoor {
        AtDoor { _held: self.door.clone().acquire_owned().await.expect("the door is never closed") }
    }

    /// Leads from the door to a place. `Err`: there is none, to be turned away.
    pub(super) async fn come_in(&self, door: AtDoor) -> Result<Place, AtDoor> {
        let many = self.door.available_permits() < DOOR / 2;
        let patience = if many { Duration::ZERO } else { PATIENCE };
        match tokio::time::timeout(patience, self.places.clone().acquire_owned()).await {
            Ok(place) => {
                // Not at the first free place: it would be said again and again.
                if self.crowded.load(Ordering::Relaxed) && self.places.available_permits() > self.count / 4 {
                    self.crowded.store(false, Ordering::Relaxed);
                }
                Ok(Place { _held: place.expect("places are never closed") })
            }
            Err(_) => {
                if !self.crowded.swap(true, Ordering::Relaxed) {
                    tracing::warn!(max_connections = self.count, "too many connections: some get a 503");
                }
                Err(door)
            }
        }
    }

    /// Resolves when everybody has left.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }
}

/// Answers without looking at what was asked.
pub(super) async fn turn_away(mut stream: TcpStream, door: AtDoor) {
    let answered = async {
        // Not before the request has begun: many clients take that for a broken connection.
        stream.read_u8().await?;
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1";
        let length = DETAIL.len();
        let answer = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{DETAIL}");
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with something unread may take the answer with it.
        tokio::io::copy(&mut stream.take(MOST), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(LONGEST, answered).await;
    drop(door);
}
