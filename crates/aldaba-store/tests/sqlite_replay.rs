//! Steps and counts of replays end by the clock.

use aldaba_delivery::Timestamp;
use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Monotonic, Options, SqliteStore};
use aldaba_store::{
    Accept, Change, Directory, Done, Error, Replay, ReplayFilter, ReplayKind, ReplayState, ReplayStep,
    ReplayStepped, Replays, StoreOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const MESSAGES: u64 = 20;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A store in whose time every look at the clock is so much later.
fn open(folder: &Path, look: Duration) -> Arc<SqliteStore> {
    let looks = AtomicU64::new(0);
    let clock = Monotonic::new(move || look * looks.fetch_add(1, Ordering::Relaxed) as u32);
    let options = Options::of(StoreOptions { clock, queue_wait: Duration::MAX, ..StoreOptions::new(folder) });
    Arc::new(SqliteStore::open(&options).unwrap())
}

/// A replay of some messages that an endpoint was never sent.
fn replay(scene: &Scene) -> Replay {
    let tenant = block_on(scene.with_endpoints(1));
    for _ in 0..MESSAGES {
        block_on(scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }));
    }
    let filter = ReplayFilter { since: at(-9), missing: true, ..ReplayFilter::nothing(at(9)) };
    Replay {
        id: scene.id(),
        org: scene.org,
        app: tenant.application.id,
        endpoint: tenant.endpoints[0].id,
        kind: ReplayKind::Missing,
        filter,
        rate: 100,
        state: ReplayState::Running,
        reached: None,
        looked_at: 0,
        opened: 0,
        created_at: at(20),
        updated_at: at(20),
    }
}

fn ask<T: Send + 'static>(write: impl FnOnce(Done<T>)) -> T {
    let (told, fate) = mpsc::channel();
    write(Done::new(move |result: Result<T, Error>| told.send(result).unwrap()));
    fate.recv().unwrap().unwrap()
}

fn step(store: &SqliteStore, replay: &Replay, now: Timestamp) -> ReplayStepped {
    let step = ReplayStep { id: replay.id, look: 1000, open: 1000, most: 1000, now };
    ask(|done| store.step_replay(step, done))
}

#[test]
fn a_step_ends_by_the_clock_and_always_comes_forward() {
    // A slice has 5 ms: one look in its middle, or none.
    for (look, in_a_step) in [(Duration::from_millis(2), 3), (Duration::from_secs(9), 1)] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), look);
        let replay = replay(&Scene::new(store.clone()));
        ask(|done| {
            store.change(Change::StartReplay { replay: replay.clone(), idempotency: None }, None, done);
        });
        let mut opened = 0;
        for _ in 0..MESSAGES.div_ceil(in_a_step) {
            let stepped = step(&store, &replay, at(30));
            let expected = in_a_step.min(MESSAGES - opened);
            assert_eq!(stepped.opened.len() as u64, expected, "{look:?}");
            opened += expected;
        }
        let last = step(&store, &replay, at(31)).replay.unwrap();
        assert_eq!((last.state, last.opened, last.looked_at), (ReplayState::Finished, MESSAGES, MESSAGES));
    }
}

#[test]
fn a_long_count_returns_its_progress_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Duration::from_millis(50));
    let replay = replay(&Scene::new(store.clone()));
    let (mut matched, mut reads, mut after) = (0, 0, None);
    loop {
        let page = block_on(store.count_replay(replay.clone(), after, 1000)).unwrap();
        // A fifth of the second that a read may last; the writer may look at the clock meanwhile.
        assert!(page.next.is_none() || (1..=4).contains(&page.rows), "{page:?}");
        matched += page.matched;
        reads += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(matched, MESSAGES);
    assert!(reads > MESSAGES / 4, "{reads}");
}
