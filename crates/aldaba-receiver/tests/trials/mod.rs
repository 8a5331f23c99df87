//! Trials of a ledger by crashes and by copies. A child process receives over HTTP; its handler writes a row and counts.
//! It is killed as `kill -9` does at a named point, another child takes its place, and the event is sent again until it
//! is taken: then there must be one row of it, and one count.
//!
//! A ledger says how it is set up and worked with ([`Trial`]), and `trials!` does the rest.

pub(crate) mod child;
pub(crate) mod copies;
pub(crate) mod hasty;
pub(crate) mod kills;
pub(crate) mod pausing;
pub(crate) mod process;
pub(crate) mod sender;

use aldaba_receiver::Ledger;
use std::future::Future;

/// How often each trial is done, unless `ALDABA_TRIALS` says it.
const USUAL_TRIALS: usize = 20;

pub(crate) fn how_many() -> usize {
    std::env::var("ALDABA_TRIALS")
        .map_or(USUAL_TRIALS, |count| count.parse().expect("ALDABA_TRIALS is a number"))
}

/// A ledger, and what the handler does with it: a row in `effects`, and one more in `counter`.
pub(crate) trait Trial: Sized + Send + Sync + 'static {
    const NAME: &'static str;

    type Ledger: Ledger;

    /// A separate database with the three tables.
    fn set() -> impl Future<Output = Self> + Send;

    /// Where a child finds it.
    fn place(&self) -> String;

    fn open(place: &str) -> impl Future<Output = Self::Ledger> + Send;

    /// Writes the row of this event.
    fn write(work: &mut Work<Self>, event_id: &str) -> impl Future<Output = ()> + Send;

    /// Counts one more.
    fn count(work: &mut Work<Self>) -> impl Future<Output = ()> + Send;

    /// How many rows there are of this event.
    fn effects(&self, event_id: &str) -> impl Future<Output = u64> + Send;

    /// How many were counted, of all events.
    fn counted(&self) -> impl Future<Output = u64> + Send;
}

pub(crate) type Work<T> = <<T as Trial>::Ledger as Ledger>::Work;

macro_rules! trials {
    ($($room:ident: $trial:ty),+ $(,)?) => {
        $(mod $room {
            use $crate::trials::pausing::Point;

            $crate::trials::trials! { @kills $trial;
                killed_after_the_claim: Point::Claimed,
                killed_in_the_middle_of_the_work: Point::HalfDone,
                killed_before_the_commit: Point::Worked,
                killed_during_the_commit: Point::Committing,
                killed_before_the_answer: Point::Committed,
                killed_after_the_answer: Point::Answered,
            }

            #[tokio::test]
            async fn of_64_copies_in_parallel_one_has_its_effect() {
                $crate::trials::copies::race::<$trial>().await;
            }

            #[tokio::test]
            async fn e3_a_ledger_that_marks_before_it_works_is_found_out() {
                $crate::trials::kills::find_out::<$trial>().await;
            }
        })+

        /// What the others start, again and again.
        #[test]
        #[ignore = "a child of the other tests, which tell it what to do"]
        fn child() {
            let (name, place) = $crate::trials::child::told();
            match name.as_str() {
                $(name if name == <$trial as $crate::trials::Trial>::NAME => {
                    $crate::trials::child::serve::<$trial>(&place);
                })+
                other => panic!("no ledger is called {other}"),
            }
        }
    };
    (@kills $trial:ty; $($name:ident: $point:expr),+ $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            $crate::trials::kills::kill_at::<$trial>($point).await;
        }
    )+};
}

pub(crate) use trials;
