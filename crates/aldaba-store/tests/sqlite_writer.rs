//! The writer: its bounds, its errors, its counters.

use aldaba_delivery::{Reason, Timestamp};
use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Monotonic, Options, SqliteStore};
use aldaba_store::{
    Accepted, Accepts, Changed, Content, Directory, Done, Error, History, Record, Recorded, Records, Store,
    StoreOptions,
};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

fn open(options: &Options) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(options).unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join("aldaba.db")).unwrap()
}

/// Keeps the writer busy until the sender is dropped: inside a `Done`, after its commit.
fn hold_writer(store: &SqliteStore) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (told, holding) = mpsc::channel();
    store.record(
        Vec::new(),
        Done::new(move |_| {
            told.send(()).unwrap();
            let _ = held.recv();
        }),
    );
    holding.recv().unwrap();
    release
}

/// Submits an event; the result comes through the channel.
fn hand_in(scene: &Scene, tenant: &aldaba_store::Tenant) -> mpsc::Receiver<Result<Vec<Accepted>, Error>> {
    let (told, fate) = mpsc::channel();
    scene.store.accept(vec![scene.event(tenant)], Done::new(move |result| told.send(result).unwrap()));
    fate
}

#[test]
fn a_full_queue_refuses_events_at_once_and_takes_every_result() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&Options::of(StoreOptions { queue_operations: 10, ..StoreOptions::new(folder.path()) }));
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let event = scene.event(&tenant);
    let seq = block_on(scene.accepted(&event));
    let release = hold_writer(&store);
    let waiting: Vec<_> = (0..10).map(|_| hand_in(&scene, &tenant)).collect();
    assert_eq!(hand_in(&scene, &tenant).try_recv(), Ok(Err(Error::Busy)));
    let (told, fate) = mpsc::channel();
    store.settle_setting("s", vec![1], Done::new(move |result| told.send(result).unwrap()));
    assert_eq!(fate.try_recv(), Ok(Err(Error::Busy)));
    let (told, fate) = mpsc::channel();
    store.record(vec![scene.delivered(&event, seq)], Done::new(move |result| told.send(result).unwrap()));
    assert!(fate.try_recv().is_err(), "it waits");
    drop(release);
    assert_eq!(fate.recv().unwrap(), Ok(vec![Recorded::Applied]));
    for accepted in waiting {
        assert!(matches!(accepted.recv().unwrap().unwrap()[..], [Accepted::New { .. }]));
    }
    assert!(hand_in(&scene, &tenant).recv().unwrap().is_ok());
}

#[test]
fn a_queue_full_of_bytes_refuses_events() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&Options::of(StoreOptions { queue_bytes: 5000, ..StoreOptions::new(folder.path()) }));
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let release = hold_writer(&store);
    let mut event = scene.event(&tenant);
    event.message.content = Arc::new(Content::new("big", vec![0; 9000]));
    let (told, fate) = mpsc::channel();
    // Larger than the whole queue: it is taken while nothing else waits.
    store.accept(vec![event], Done::new(move |result| told.send(result).unwrap()));
    assert_eq!(hand_in(&scene, &tenant).try_recv(), Ok(Err(Error::Busy)));
    drop(release);
    assert!(fate.recv().unwrap().is_ok());
}

#[test]
fn a_queue_that_does_not_move_refuses_events_after_a_while_and_takes_every_result() {
    let folder = tempfile::tempdir().unwrap();
    let millis = Arc::<AtomicU64>::default();
    let clock = millis.clone();
    let store = open(&Options::of(StoreOptions {
        queue_wait: Duration::from_millis(500),
        clock: Monotonic::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))),
        ..StoreOptions::new(folder.path())
    }));
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let event = scene.event(&tenant);
    let seq = block_on(scene.accepted(&event));
    // As on a disk that takes seconds for a commit.
    let release = hold_writer(&store);
    let waiting = [hand_in(&scene, &tenant), hand_in(&scene, &tenant)];
    millis.store(501, Ordering::Relaxed);
    assert_eq!(hand_in(&scene, &tenant).try_recv(), Ok(Err(Error::Busy)));
    let (told, fate) = mpsc::channel();
    store.record(vec![scene.delivered(&event, seq)], Done::new(move |result| told.send(result).unwrap()));
    assert!(fate.try_recv().is_err(), "it waits");
    drop(release);
    assert_eq!(fate.recv().unwrap(), Ok(vec![Recorded::Applied]));
    for accepted in waiting {
        assert!(matches!(accepted.recv().unwrap().unwrap()[..], [Accepted::New { .. }]));
    }
    assert!(hand_in(&scene, &tenant).recv().unwrap().is_ok(), "it moves again");
}

#[test]
fn an_event_for_many_endpoints_is_not_kept_waiting_by_a_stream_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&Options { batch_operations: 8, ..Options::new(folder.path()) });
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(20));
    let release = hold_writer(&store);
    let (told, news) = mpsc::channel();
    for _ in 0..20 {
        let told = told.clone();
        store.record(Vec::new(), Done::new(move |_| told.send('r').unwrap()));
    }
    for _ in 0..2 {
        let told = told.clone();
        store.accept(vec![scene.event(&tenant)], Done::new(move |_| told.send('a').unwrap()));
    }
    drop((release, told));
    let order: String = news.iter().collect();
    // Each is in the next commit. That is larger for its many deliveries, and half of it is for results.
    assert_eq!(order, "rrrrrrrrrrrrrrrra".to_owned() + "rrrra");
}

#[test]
fn results_have_priority_and_other_writes_proceed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&Options { batch_operations: 8, ..Options::new(folder.path()) });
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let release = hold_writer(&store);
    let (told, news) = mpsc::channel();
    for _ in 0..4 {
        let told = told.clone();
        store.settle_setting("s", vec![1], Done::new(move |_| told.send('c').unwrap()));
    }
    for _ in 0..8 {
        let told = told.clone();
        store.accept(vec![scene.event(&tenant)], Done::new(move |_| told.send('a').unwrap()));
    }
    for _ in 0..12 {
        let told = told.clone();
        store.record(Vec::new(), Done::new(move |_| told.send('r').unwrap()));
    }
    drop((release, told));
    let order: String = news.iter().collect();
    assert_eq!(order, "rrrraaac".to_owned() + "rrrraaac" + "rrrraacc");
}

#[test]
fn a_panic_in_one_done_does_not_affect_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&Options::new(folder.path()));
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        store.accept(vec![scene.event(&tenant)], Done::new(|_| panic!("meant to be")));
        scene.accepted(&scene.event(&tenant)).await;
        assert_eq!(store.waiting().await.unwrap(), 2);
        assert_eq!(store.check().await, Ok(()));
    });
}

#[test]
fn an_application_has_a_limit_of_endpoints() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        open(&Options::of(StoreOptions { endpoints_per_application: 2, ..StoreOptions::new(folder.path()) }));
    let scene = Scene::new(store);
    block_on(async {
        let tenant = scene.with_endpoints(2).await;
        let app = tenant.application.id;
        assert_eq!(scene.create_endpoint(&scene.new_endpoint(app)).await, Changed::TooMany);
        let endpoint = tenant.endpoints[0].id;
        scene
            .change(aldaba_store::Change::DeleteEndpoint { app, endpoint, at: at(1), notices: Vec::new() })
            .await;
        let made = Changed::Done { removed: Vec::new() };
        assert_eq!(scene.create_endpoint(&scene.new_endpoint(app)).await, made);
    });
}

#[test]
fn a_batch_is_counted_once_for_each_endpoint_and_minute() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(&Options::new(folder.path())));
    let minute = |minutes: i64| Timestamp::from_millis(at(0).millis() / 60_000 * 60_000 + minutes * 60_000);
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let events = [scene.event(&tenant), scene.event(&tenant), scene.event(&tenant)];
        let mut numbers = Vec::new();
        for event in &events {
            numbers.push(scene.accepted(event).await);
        }
        let fenced = Record { attempts_before: 5, at: minute(0), ..scene.delivered(&events[0], numbers[0]) };
        scene
            .record(vec![
                Record { at: minute(0), ..scene.failed(&events[0], numbers[0], at(5)) },
                Record { at: minute(0), ..scene.delivered(&events[1], numbers[1]) },
                fenced,
            ])
            .await;
        scene
            .record(vec![
                Record { at: minute(0), attempts_before: 1, ..scene.delivered(&events[0], numbers[0]) },
                Record { at: minute(1), ..scene.dead(&events[2], numbers[2], Reason::Expired) },
            ])
            .await;
    });
    let counted: Vec<[i64; 6]> = database(folder.path())
        .prepare(
            "SELECT attempts, successes, retries, delivered, dead, within_25 FROM endpoint_minute
             ORDER BY minute",
        )
        .unwrap()
        .query_map((), |row| {
            let mut counts = [0; 6];
            for (column, count) in counts.iter_mut().enumerate() {
                *count = row.get(column)?;
            }
            Ok(counts)
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(counted, [[3, 2, 1, 2, 0, 3], [0, 0, 0, 0, 1, 0]]);
}

#[test]
fn a_read_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::of(StoreOptions {
        read_limit: Duration::from_millis(40),
        readers: 1,
        ..StoreOptions::new(folder.path())
    });
    let store = open(&options);
    let scene = Scene::new(store.clone());
    block_on(async {
        scene.with_endpoints(0).await;
        // A view in the table's place, that never comes to an end.
        let file = database(folder.path());
        file.execute_batch(
            "ALTER TABLE setting RENAME TO setting_before;
             CREATE VIEW setting (name, value) AS
                 WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n;",
        )
        .unwrap();
        assert_eq!(store.setting("s").await, Err(Error::Timeout));
        // The next read on the same thread is not touched by it.
        assert_eq!(store.waiting().await, Ok(0));
        assert_eq!(scene.store.waiting().await, Ok(0));
    });
}

#[test]
fn the_log_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        open(&Options { checkpoint_pages: 64, longest_log_pages: 256, ..Options::new(folder.path()) });
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        for _ in 0..500 {
            scene.accepted(&scene.event(&tenant)).await;
            assert!(store.log_pages() <= 256);
        }
    });
    let log = std::fs::metadata(folder.path().join("aldaba.db-wal")).unwrap().len();
    assert!(log < 300 * 4200, "{log} bytes");
}
