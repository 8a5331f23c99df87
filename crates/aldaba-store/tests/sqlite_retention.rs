//! A big removal: others hardly feel it, and a kill in the middle leaves whole deliveries.

use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::conformance::{Scene, at, find};
use aldaba_store::operations::{Cutoff, ExpiredItem, Op, Removal, Removed, Reply, Search, SettledPosition};
use aldaba_store::sqlite::{Monotonic, Options, SqliteStore};
use aldaba_store::{
    Accept, Accepted, Accepts, Backend, Done, Error, History, ManualRecord, NewAttempt, Record, Records,
    RemovedCounts, Seq, StoreOptions, Tenant, Trigger,
};
use rusqlite::Connection;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const FOLDER: &str = "ALDABA_TEST_REMOVE_FOLDER";
const SLICE: Duration = Duration::from_millis(5);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

fn open(folder: &Path) -> Arc<SqliteStore> {
    let start = now();
    let clock = Monotonic::new(move || now().duration_since(start));
    let options =
        Options::of(StoreOptions { clock, queue_wait: Duration::from_secs(30), ..StoreOptions::new(folder) });
    Arc::new(SqliteStore::open(&options).unwrap())
}

/// A store in whose time every look at the clock is a millisecond later.
fn open_slow(folder: &Path) -> Arc<SqliteStore> {
    let looks = Arc::new(AtomicU64::new(0));
    let clock = Monotonic::new(move || Duration::from_millis(looks.fetch_add(1, Ordering::Relaxed)));
    let options = Options::of(StoreOptions {
        clock,
        queue_wait: Duration::from_secs(3600),
        ..StoreOptions::new(folder)
    });
    Arc::new(SqliteStore::open(&options).unwrap())
}

/// Delivers so many events, with their attempts.
fn deliver(scene: &Scene, tenant: &Tenant, count: usize) {
    for _ in 0..count / 500 {
        let events: Vec<_> = (0..500).map(|_| scene.event(tenant)).collect();
        let accepted = block_on(scene.accept(events.clone()));
        let record = |(event, accepted): (_, &Accepted)| {
            let Accepted::New { first } = accepted else { panic!("not accepted") };
            Record { at: at(first.0), ..scene.delivered(event, *first) }
        };
        block_on(scene.record(events.iter().zip(&accepted).map(record).collect()));
    }
}

fn all(store: &SqliteStore, tenant: &Tenant) -> Vec<ExpiredItem> {
    let end = Some(SettledPosition { at: at(1 << 40), seq: Seq(0) });
    let cut = Cutoff { endpoint: tenant.endpoints[0].id, delivered: end, dead: end, discarded: None };
    block_on(find(store, Search::Deliveries(vec![cut]), 100_000)).0
}

fn remove(store: &SqliteStore, items: Vec<ExpiredItem>) -> Removed {
    remove_counted(store, items, &Arc::default())
}

/// The same, and its commit is counted.
fn remove_counted(store: &SqliteStore, items: Vec<ExpiredItem>, commits: &Arc<AtomicU64>) -> Removed {
    let (told, fate) = mpsc::channel();
    let removal = Removal { items, now: at(1 << 40), event_ids_kept: Duration::ZERO };
    let commits = commits.clone();
    let done = move |result: Result<_, Error>| {
        commits.fetch_add(1, Ordering::SeqCst);
        told.send(result).unwrap();
    };
    store.write(Op::Remove(removal), Reply::Remove(Done::new(done)));
    fate.recv().unwrap().unwrap()
}

fn nth<T: Copy + Ord>(mut all: Vec<T>, percent: usize) -> T {
    all.sort();
    all[(all.len() - 1) * percent / 100]
}

#[test]
fn removing_20_000_deliveries_runs_in_batches_and_does_not_delay_accepting() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scene = Arc::new(Scene::new(store.clone()));
    let tenant = block_on(scene.with_endpoints(1));
    deliver(&scene, &tenant, 20_000);
    let stale = all(&store, &tenant);
    assert_eq!(stale.len(), 20_000);

    let (over, sliced) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (sender, event) = (store.clone(), scene.event(&tenant));
    let (done, ids, slices_so_far) = (over.clone(), scene.clone(), sliced.clone());
    // How many slices each waits for.
    let accepting = std::thread::spawn(move || {
        let mut waits = Vec::new();
        while !done.load(Ordering::Relaxed) {
            let mut event = event.clone();
            event.message.id = ids.id();
            let (told, fate) = mpsc::channel();
            let (begun, sliced) = (slices_so_far.load(Ordering::SeqCst), slices_so_far.clone());
            let accepted = move |result| told.send((result, sliced.load(Ordering::SeqCst))).unwrap();
            sender.accept(vec![event], Done::new(accepted));
            let (result, ended) = fate.recv().unwrap();
            assert!(matches!(result.unwrap()[..], [Accepted::New { .. }]));
            waits.push(ended - begun);
        }
        waits
    });
    let (mut rest, mut counts, mut slices) = (&stale[..], RemovedCounts::default(), Vec::new());
    while !rest.is_empty() {
        // All of it is asked for each time: the time of a slice bounds it, not the number.
        let removed = remove_counted(&store, rest.to_vec(), &sliced);
        rest = &rest[removed.seen..];
        counts += removed.counts;
        slices.push(removed.took);
    }
    over.store(true, Ordering::Relaxed);
    let waits = accepting.join().unwrap();

    assert_eq!((counts.deliveries, counts.attempts, counts.messages), (20_000, 20_000, 20_000));
    assert!(slices.len() > 20, "{} slices", slices.len());
    // The machine may be busy with others, which makes some of them longer and none of them shorter.
    assert!(nth(slices.clone(), 10) < 3 * SLICE, "{:?}", nth(slices, 10));
    assert!(waits.len() > 20, "{} were accepted meanwhile", waits.len());
    // The one that is under way, and the one that shares its commit. Now and then the thread is stopped before it asks.
    assert!(nth(waits.clone(), 90) <= 2, "{waits:?}");
}

#[test]
fn a_delivery_with_very_many_attempts_goes_in_more_than_one_slice() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_slow(folder.path());
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let event = scene.event(&tenant);
    let seq = block_on(scene.accepted(&event));
    for attempts_before in 0..1000 {
        let failed = scene.failed(&event, seq, at(5));
        block_on(scene.record(vec![Record { attempts_before, ..failed }]));
    }
    let last = Record { attempts_before: 1000, ..scene.delivered(&event, seq) };
    block_on(scene.record(vec![last]));
    let (mut slices, mut counts) = (0, RemovedCounts::default());
    loop {
        let removed = remove(&store, all(&store, &tenant));
        counts += removed.counts;
        slices += 1;
        if removed.seen == 1 {
            break;
        }
        assert!(removed.counts.attempts > 0 && slices < 100, "it comes to an end");
    }
    assert!(slices > 1, "{slices}");
    assert_eq!((counts.deliveries, counts.attempts, counts.messages), (1, 1001, 1));
}

/// Attempts by hand, all in one commit or a few.
fn resend(scene: &Scene, store: &SqliteStore, event: &Accept, endpoint: EndpointId, count: usize) {
    let (told, fate) = mpsc::channel();
    for _ in 0..count {
        let attempt = NewAttempt { success: false, trigger: Trigger::Manual, ..scene.attempt() };
        let resent = ManualRecord {
            org: scene.org,
            endpoint,
            message: event.message.id,
            attempt,
            at: at(3),
            audit: None,
            idempotency: None,
        };
        let told = told.clone();
        store.record_manual(resent, Done::new(move |result: Result<_, Error>| told.send(result).unwrap()));
    }
    assert!(fate.iter().take(count).all(|result| result.is_ok()));
}

#[test]
fn attempts_that_no_delivery_is_left_of_go_in_slices_and_their_message_last() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_slow(folder.path());
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let endpoint = tenant.endpoints[0].id;
    let to_nobody = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
    block_on(scene.accepted(&to_nobody));
    resend(&scene, &store, &to_nobody, endpoint, 1000);
    // One that was tried by hand before it was delivered.
    let event = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
    block_on(scene.accepted(&event));
    resend(&scene, &store, &event, endpoint, 1000);
    let attempt = NewAttempt { trigger: Trigger::Manual, ..scene.attempt() };
    let by_hand = ManualRecord {
        org: scene.org,
        endpoint,
        message: event.message.id,
        attempt,
        at: at(4),
        audit: None,
        idempotency: None,
    };
    let (told, fate) = mpsc::channel();
    store.record_manual(by_hand, Done::new(move |result: Result<_, Error>| told.send(result).unwrap()));
    fate.recv().unwrap().unwrap();

    let all_messages = || Search::Messages { after: None, created: (Timestamp::MIN, at(1 << 40)) };
    let lonely = || block_on(find(&*store, all_messages(), 10)).0;
    let settled = || all(&store, &tenant);
    let there = |event: &Accept| block_on(store.message(event.app, event.message.id.to_string())).unwrap();
    for (event, find) in [(&to_nobody, &lonely as &dyn Fn() -> Vec<ExpiredItem>), (&event, &settled)] {
        let (mut slices, mut counts) = (0, RemovedCounts::default());
        while there(event).is_some() {
            let found = find();
            assert_eq!(found.len(), 1, "what a slice has left is found again");
            let removed = remove(&store, found);
            assert!(removed.counts.attempts > 0 && removed.counts.attempts < 1000, "{removed:?}");
            counts += removed.counts;
            slices += 1;
        }
        assert!(slices > 1, "{slices}");
        assert!(counts.attempts >= 1000 && counts.messages == 1, "{counts:?}");
    }
    let database = Connection::open(folder.path().join("aldaba.db")).unwrap();
    let left = database.query_row("SELECT count(*) FROM attempt", [], |row| row.get::<_, i64>(0));
    assert_eq!(left, Ok(0));
}

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "started by the test below"]
fn remove_until_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = open(Path::new(&folder));
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    deliver(&scene, &tenant, 10_000);
    let stale = all(&store, &tenant);
    for slice in stale.chunks(50) {
        assert!(remove(&store, slice.to_vec()).counts.deliveries > 0);
        let _ = std::io::stdout().write_all(b"remove-test slice\n");
    }
}

#[test]
fn a_kill_while_removing_leaves_only_whole_deliveries() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "remove_until_killed", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let slices =
        lines.map_while(Result::ok).filter(|line| line.contains("remove-test slice")).take(20).count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(slices, 20);

    drop(open(folder.path()));
    let database = Connection::open(folder.path().join("aldaba.db")).unwrap();
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    let (deliveries, attempts) =
        (count("SELECT count(*) FROM delivery"), count("SELECT count(*) FROM attempt"));
    assert!((1..=9_900).contains(&deliveries), "{deliveries}");
    assert_eq!((attempts, count("SELECT count(*) FROM message")), (deliveries, deliveries));
    assert_eq!(count("SELECT count(*) FROM attempt WHERE seq NOT IN (SELECT seq FROM delivery)"), 0);
    assert_eq!(count("SELECT count(*) FROM delivery WHERE message NOT IN (SELECT id FROM message)"), 0);
}
