//! What becomes of actions after the commit where there is no commit in time, or none at all.

use aldaba_receiver::inbound::{Inspector, Place, Recipe};
use aldaba_receiver::lease::{MemoryLease, MemoryLeases};
use aldaba_receiver::{
    Begun, Claim, Event, Failure, Guarantee, Ledger, LedgerError, Opening, Outcome, Receiver, Work,
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Its commits take their time.
struct Slow(MemoryLeases, Duration);

struct SlowLease(MemoryLease, Duration);

impl Ledger for Slow {
    type Work = SlowLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<SlowLease>, LedgerError> {
        Ok(match self.0.claim(event, wait_timeout).await? {
            Claim::New(lease) => Claim::New(SlowLease(lease, self.1)),
            _ => Claim::Duplicate,
        })
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        self.0.clean(older_than).await
    }
}

impl Work for SlowLease {
    async fn complete(self) -> Result<(), LedgerError> {
        tokio::time::sleep(self.1).await;
        self.0.complete().await
    }

    async fn abandon(self) {
        self.0.abandon().await;
    }
}

fn receiver<L: Ledger>(ledger: L) -> Receiver<L> {
    let recipe = Recipe::unsigned().with_id(Place::header("x-id").unwrap());
    Receiver::new(Inspector::new(recipe, []).unwrap(), ledger)
}

async fn begun<L: Ledger>(receiver: &Receiver<L>) -> Begun<L> {
    let headers = HeaderMap::from_iter([("x-id".parse().unwrap(), "a".parse().unwrap())]);
    match receiver.open(&Method::POST, &headers, Bytes::from_static(b"{}")).await {
        Opening::Begun(begun) => begun,
        Opening::Answered(answer) => panic!("it should be new: {answer:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_runs_also_after_a_commit_that_the_answer_has_not_waited_for() {
    for (commit, runs) in [(12, 1), (59, 1), (61, 0)] {
        let receiver = receiver(Slow(MemoryLeases::new(), Duration::from_secs(commit)));
        let begun = begun(&receiver).await;
        let ran = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&ran);
        begun.event().after_commit(async move {
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(())
        });
        assert_eq!(begun.end(Ok(())).await.outcome(), Outcome::Unavailable);
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        assert_eq!(receiver.finish(Duration::from_secs(100)).await, 0);
        assert_eq!(ran.load(Ordering::SeqCst), runs, "{commit} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_holds_its_event_is_dropped_when_it_does_not_run() {
    for end in ["fails", "is dropped", "is not completed", "is late"] {
        let commit = if end == "is not completed" { Duration::MAX } else { Duration::ZERO };
        let receiver = receiver(Slow(MemoryLeases::new(), commit));
        let begun = begun(&receiver).await;
        let event = begun.event().clone();
        let (held, copy) = (Arc::new(()), event.clone());
        let weak = Arc::downgrade(&held);
        let action = async move {
            let _both = (held, copy);
            Err("it must not run")
        };
        if end == "is late" {
            begun.end(Err(Failure::new("no"))).await;
            event.after_commit(action);
        } else {
            event.after_commit(action);
            match end {
                "fails" => drop(begun.end(Err(Failure::new("no"))).await),
                "is dropped" => drop(begun),
                _ => drop(begun.end(Ok(())).await),
            }
        }
        drop(event);
        receiver.finish(Duration::from_secs(100)).await;
        assert!(weak.upgrade().is_none(), "work that {end}");
    }
}
