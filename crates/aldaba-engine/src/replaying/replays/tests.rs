//! Counts against the real store.

use super::*;
use crate::SystemEntropy;
use aldaba_delivery::Timestamp;
use aldaba_store::conformance::{Scene, at};
use aldaba_store::{Accept, Monotonic, StoreOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const MESSAGES: u64 = 12;

/// Each look is so much later.
#[derive(Debug)]
struct Steps(Duration, AtomicU32);

impl Steps {
    fn of(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds), AtomicU32::new(0))
    }

    fn next(&self) -> Duration {
        self.0 * self.1.fetch_add(1, Ordering::Relaxed)
    }
}

impl Clock for Steps {
    fn now(&self) -> Timestamp {
        at(20)
    }

    fn monotonic(&self) -> Duration {
        self.next()
    }
}

/// Counts what an endpoint was never sent, on a store whose reads come forward by one message each.
async fn count(folder: &Path, clock: Steps) -> ReplayCount {
    let slow = Steps::of(1);
    let options = StoreOptions {
        clock: Monotonic::new(move || slow.next()),
        queue_wait: Duration::MAX,
        ..StoreOptions::new(folder)
    };
    let store = aldaba_store::open(&options).expect("a store");
    let scene = Scene::new(store.clone());
    let tenant = scene.with_endpoints(1).await;
    for _ in 0..MESSAGES {
        scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }).await;
    }
    let (inbox, _news) = Inbox::new();
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(clock), Arc::new(SystemEntropy::new()));
    let entries = Entries::new(clock.clone(), entropy.clone());
    let background = Background::new(clock.clone());
    let replays = Replays::new(store, clock, entropy, inbox, entries, Duration::ZERO, background);
    let new = NewReplay {
        org: scene.org,
        app: tenant.application.id,
        endpoint: tenant.endpoints[0].id,
        kind: ReplayKind::Missing,
        filter: ReplayFilter { since: at(-9), missing: true, ..ReplayFilter::nothing(at(9)) },
        rate: 1,
    };
    replays.count(new).await.expect("a count")
}

#[tokio::test]
async fn a_count_goes_on_over_reads_that_end_early() {
    let folder = tempfile::tempdir().expect("a folder");
    let counted = count(folder.path(), Steps::of(0)).await;
    assert_eq!(counted, ReplayCount { count: MESSAGES, at_least: false });
}

#[tokio::test]
async fn a_count_that_takes_long_says_how_many_there_are_at_least() {
    let folder = tempfile::tempdir().expect("a folder");
    // It is looked at before each read.
    let counted = count(folder.path(), Steps::of(2)).await;
    assert_eq!(counted, ReplayCount { count: 4, at_least: true });
}
