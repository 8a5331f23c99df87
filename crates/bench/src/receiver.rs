//! The receiver. The path of a request selects its behaviour, so that one receiver serves fast, slow and failing
//! endpoints.

use crate::background::{Background, listen, runtime, serve_each};
use crate::clock::{self, Nanos};
use crate::http1::Stream;
use crate::payload::{STAMP_BYTES, Stamp};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    AtOnce,
    /// After this many milliseconds.
    After(u64),
    /// With 500 to the first tries of every n-th message, and immediately to all others.
    Fails {
        every: u64,
        tries: u32,
    },
}

impl Behaviour {
    pub(crate) fn path(self, lane: usize) -> String {
        match self {
            Self::AtOnce => format!("/at-once/{lane}"),
            Self::After(millis) => format!("/after-{millis}/{lane}"),
            Self::Fails { every, tries } => format!("/fails-{every}-{tries}/{lane}"),
        }
    }

    /// An unknown path is answered immediately.
    fn of_path(path: &str) -> (Self, usize) {
        let mut segments = path.split('/').skip(1);
        let mut words = segments.next().unwrap_or_default().split('-');
        let lane = segments.next().and_then(|lane| lane.parse().ok()).unwrap_or_default();
        let kind = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
        let behaviour = match kind {
            Some("after") => Self::After(number()),
            Some("fails") => {
                Self::Fails { every: number().max(1), tries: u32::try_from(number()).unwrap_or(1) }
            }
            _ => Self::AtOnce,
        };
        (behaviour, lane)
    }
}

/// A completely read request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The endpoint: the number at the end of the path.
    pub(crate) lane: usize,
    pub(crate) stamp: Stamp,
    pub(crate) at: Nanos,
}

impl Arrival {
    pub(crate) fn latency(&self) -> Nanos {
        self.at.saturating_sub(self.stamp.sent_at)
    }
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    _background: Background,
}

#[derive(Default)]
struct Seen {
    log: Mutex<Log>,
    enough: Condvar,
    connections: AtomicUsize,
}

#[derive(Default)]
struct Log {
    arrivals: Vec<Arrival>,
    /// The count that a caller waits for: waking it for each arrival would cost more than the request.
    wanted: usize,
    tries: HashMap<(usize, u64), u32>,
}

impl Receiver {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let runtime = runtime()?;
        let listener = runtime.block_on(listen(address))?;
        let seen = Arc::<Seen>::default();
        let shared = Arc::clone(&seen);
        let work = serve_each(listener, move |stream| {
            let seen = Arc::clone(&shared);
            seen.connections.fetch_add(1, Ordering::Relaxed);
            // Some cases kill the sender in the middle of a request.
            async move { drop(serve(stream, &seen).await) }
        });
        Ok(Self { address, seen, _background: Background::run("receiver", runtime, work)? })
    }

    pub(crate) fn url(&self, behaviour: Behaviour, lane: usize) -> String {
        url(self.address, behaviour, lane)
    }

    /// All arrivals in order.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.seen.log.lock().arrivals.clone()
    }

    /// The number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.log.lock().arrivals.len()
    }

    pub(crate) fn forget(&self) {
        *self.seen.log.lock() = Log::default();
    }

    /// Waits for this many arrivals in total; returns whether they came in time.
    pub(crate) fn wait_for(&self, count: usize, timeout: Duration) -> bool {
        let mut log = self.seen.log.lock();
        log.wanted = count;
        let deadline = deadline(timeout);
        while log.arrivals.len() < count {
            if self.seen.enough.wait_until(&mut log, deadline).timed_out() {
                return log.arrivals.len() >= count;
            }
        }
        true
    }

    /// Waits for this many different messages, counted per endpoint; returns how many have arrived.
    pub(crate) fn wait_for_different(&self, count: usize, timeout: Duration) -> usize {
        let until = clock::now() + clock::nanos(timeout);
        loop {
            let arrivals = self.arrivals();
            let different = different(&arrivals);
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            if different >= count || left.is_zero() {
                return different;
            }
            self.wait_for(arrivals.len() + count - different, left);
        }
    }
}

pub(crate) fn url(address: SocketAddr, behaviour: Behaviour, lane: usize) -> String {
    format!("http://{address}{}", behaviour.path(lane))
}

/// The number of different messages, counted per endpoint.
pub(crate) fn different(arrivals: &[Arrival]) -> usize {
    arrivals.iter().map(|arrival| (arrival.lane, arrival.stamp.number)).collect::<HashSet<_>>().len()
}

#[expect(clippy::disallowed_methods, reason = "a condition variable knows no other clock")]
fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout
}

async fn serve(mut stream: Stream, seen: &Seen) -> io::Result<()> {
    while let Some(head) = stream.head().await? {
        let start = stream.body(head.length, STAMP_BYTES).await?;
        let (behaviour, lane) = Behaviour::of_path(head.second_word());
        let stamp = Stamp::read(&start).unwrap_or_default();
        let answer = seen.note(Arrival { lane, stamp, at: clock::now() }, behaviour);
        if let Behaviour::After(millis) = behaviour {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        stream.write(answer).await?;
    }
    Ok(())
}

impl Seen {
    /// Records an arrival; returns its answer.
    fn note(&self, arrival: Arrival, behaviour: Behaviour) -> &'static [u8] {
        let mut log = self.log.lock();
        log.arrivals.push(arrival);
        if log.arrivals.len() == log.wanted {
            self.enough.notify_all();
        }
        match behaviour {
            Behaviour::Fails { every, tries } if arrival.stamp.number.is_multiple_of(every) => {
                let tried = log.tries.entry((arrival.lane, arrival.stamp.number)).or_default();
                *tried += 1;
                if *tried <= tries { FAILED } else { TAKEN }
            }
            _ => TAKEN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_selects_the_behaviour() {
        for behaviour in
            [Behaviour::AtOnce, Behaviour::After(15_000), Behaviour::Fails { every: 3, tries: 1 }]
        {
            assert_eq!(Behaviour::of_path(&behaviour.path(17)), (behaviour, 17));
        }
        assert_eq!(Behaviour::of_path("/"), (Behaviour::AtOnce, 0));
    }

    #[test]
    fn every_third_message_fails_once() {
        let seen = Seen::default();
        let fails = Behaviour::Fails { every: 3, tries: 1 };
        let answers: Vec<_> = [3, 4, 3, 4]
            .map(|number| Arrival { lane: 0, stamp: Stamp { sent_at: 0, number }, at: 0 })
            .map(|arrival| seen.note(arrival, fails) == TAKEN)
            .into();
        assert_eq!(answers, [false, true, true, true]);
    }
}
