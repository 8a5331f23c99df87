//! Room in memory for the bodies of requests: one bound over all connections.

use super::Error;
use http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much room there is, and how much of it is taken.
#[derive(Clone, Debug)]
pub(crate) struct Rooms(Arc<Bytes>);

#[derive(Debug)]
struct Bytes {
    limit: usize,
    taken: AtomicUsize,
}

/// The room of one body, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Room {
    of: Rooms,
    bytes: usize,
}

impl Rooms {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Bytes { limit, taken: AtomicUsize::new(0) }))
    }

    /// None as yet.
    pub(super) fn enter(&self) -> Room {
        Room { of: self.clone(), bytes: 0 }
    }
}

impl Room {
    /// Grows to so many bytes in all. Nobody waits for room: whoever holds a part of it might be
    /// waiting for the rest.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let Bytes { limit, taken } = &*self.of.0;
        let fits = |taken: usize| taken.checked_add(more).filter(|taken| taken <= limit);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| no_room())?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn no_room() -> Error {
    let detail = "The server is reading as many requests as it has room for. Nothing was stored; try again";
    Error::later(StatusCode::SERVICE_UNAVAILABLE, "busy", detail, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rooms: &Rooms) -> usize {
        rooms.0.taken.load(Ordering::Relaxed)
    }

    #[test]
    fn room_is_given_up_to_the_limit_and_given_back_at_the_end() {
        let rooms = Rooms::new(100);
        let (mut first, mut second) = (rooms.enter(), rooms.enter());
        assert_eq!(taken(&rooms), 0, "whoever has announced nothing holds nothing");
        first.grow_to(60).unwrap();
        second.grow_to(41).unwrap_err();
        assert_eq!(taken(&rooms), 60, "a refusal costs nothing");
        second.grow_to(40).unwrap();
        first.grow_to(60).expect("it has that already");
        first.grow_to(10).expect("and more than that");
        first.grow_to(61).unwrap_err();
        drop(second);
        first.grow_to(100).unwrap();
        drop(first);
        assert_eq!(taken(&rooms), 0);
    }

    #[test]
    fn a_length_that_no_memory_has_is_refused() {
        let rooms = Rooms::new(usize::MAX);
        let (mut first, mut second) = (rooms.enter(), rooms.enter());
        first.grow_to(1).unwrap();
        second.grow_to(usize::MAX).unwrap_err();
    }

    #[test]
    fn many_at_once_never_have_more_than_there_is() {
        let rooms = Rooms::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in 0..10_000 {
                        let mut room = rooms.enter();
                        let fits = room.grow_to(bytes % 400).is_ok() && room.grow_to(bytes % 800).is_ok();
                        assert!(!fits || taken(&rooms) <= 1000);
                    }
                });
            }
        });
        assert_eq!(taken(&rooms), 0);
    }
}
