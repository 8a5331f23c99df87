//! A ledger that pauses at a requested point, so that the process can be killed there.

use aldaba_receiver::{Claim, Event, Guarantee, Ledger, LedgerError};
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The header that says where.
pub(crate) const HEADER: &str = "x-stand-still";

/// What the child says when it does.
pub(crate) const SAID: &str = "standing still";

/// A point in the life of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// It is marked, and nothing is done.
    Claimed,
    /// Of two statements one is done.
    HalfDone,
    /// The handler has ended.
    Worked,
    /// The commit is on its way, and its answer was not read.
    Committing,
    /// It is committed, and not answered.
    Committed,
    /// The sender has its answer.
    Answered,
}

const NAMES: [(Point, &str); 6] = [
    (Point::Claimed, "claimed"),
    (Point::HalfDone, "half-done"),
    (Point::Worked, "worked"),
    (Point::Committing, "committing"),
    (Point::Committed, "committed"),
    (Point::Answered, "answered"),
];

impl Point {
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(point, _)| *point == self).unwrap().1
    }

    /// The point at which an event requests a pause.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let asked = event.headers.get(HEADER)?.to_str().ok()?;
        NAMES.iter().find(|(_, name)| *name == asked).map(|(point, _)| *point)
    }
}

/// Pauses forever, if the event requests this point.
pub(crate) async fn here(point: Point, asked: Option<Point>) {
    if asked == Some(point) {
        println!("{SAID}");
        pending::<()>().await;
    }
}

#[derive(Debug)]
pub(crate) struct Pausing<L>(pub(crate) L);

#[derive(Debug)]
pub(crate) struct Work<W> {
    pub(crate) inner: W,
    asked: Option<Point>,
    /// The number at the end of the event's id.
    number: u32,
}

/// The longer, the more of the trials end before the commit is sent.
const STEP: Duration = Duration::from_micros(25);

fn number(event: &Event) -> u32 {
    event.id.rsplit('_').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Commits, and is killed at some moment of it: the word for that goes out before. By turns the commit is sent at once
/// and its answer never read; is sent a little later; or comes to its end, if there is time.
async fn commit_under_fire(commit: impl Future<Output = Result<(), LedgerError>>, number: u32) -> Infallible {
    let mut commit = pin!(commit);
    println!("{SAID}");
    if number.is_multiple_of(2) {
        let _ = commit.await;
    } else {
        if number % 4 == 3 {
            std::thread::sleep(STEP * (number / 4 % 16));
        }
        // The first poll sends it.
        let _ = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
    }
    pending().await
}

impl<L: Ledger> Ledger for Pausing<L> {
    type Work = Work<L::Work>;

    const GUARANTEE: Guarantee = L::GUARANTEE;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<Self::Work>, LedgerError> {
        Ok(match self.0.claim(event, wait_timeout).await? {
            Claim::New(inner) => Claim::New(Work { inner, asked: Point::of(event), number: number(event) }),
            Claim::Duplicate => Claim::Duplicate,
            Claim::OtherBody => Claim::OtherBody,
            Claim::InProgress => Claim::InProgress,
        })
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        self.0.clean(older_than).await
    }
}

impl<W: aldaba_receiver::Work> aldaba_receiver::Work for Work<W> {
    async fn complete(self) -> Result<(), LedgerError> {
        here(Point::Worked, self.asked).await;
        if self.asked == Some(Point::Committing) {
            match commit_under_fire(self.inner.complete(), self.number).await {}
        }
        self.inner.complete().await?;
        here(Point::Committed, self.asked).await;
        Ok(())
    }

    async fn abandon(self) {
        self.inner.abandon().await;
    }
}
