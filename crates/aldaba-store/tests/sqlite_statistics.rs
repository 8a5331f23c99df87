//! Counters of event types stay in memory for a while, and are right all the same; and a walk ends by the clock.

use aldaba_delivery::AppId;
use aldaba_store::conformance::{Scene, at, find, remove_slice};
use aldaba_store::operations::{ExpiredItem, Search};
use aldaba_store::sqlite::{Monotonic, Options, SqliteStore};
use aldaba_store::{
    ApplicationAttemptsQuery, AttemptCounts, Hour, ListRange, MessageFilter, MessagesQuery, NewAttempt,
    Order, Page, Payloads, Record, Statistics, StoreOptions, Tenant,
};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn open(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&Options::new(folder)).unwrap())
}

/// A store whose clock moves when it is told to, in seconds.
fn with_clock(folder: &Path) -> (Arc<SqliteStore>, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let read = seconds.clone();
    let clock = Monotonic::new(move || Duration::from_secs(read.load(Ordering::Relaxed)));
    let options = Options::of(StoreOptions { clock, ..StoreOptions::new(folder) });
    (Arc::new(SqliteStore::open(&options).unwrap()), seconds)
}

async fn deliver(scene: &Scene, tenant: &Tenant, times: usize) {
    for _ in 0..times {
        let event = scene.event(tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.delivered(&event, seq)]).await;
    }
}

/// Successes of the one type there is.
fn counted(store: &SqliteStore, app: AppId) -> u64 {
    let hour = Hour::of(at(0));
    let query = ApplicationAttemptsQuery { app, first: hour, last: hour, event_types: Vec::new(), most: 100 };
    let types = block_on(store.application_attempts(query)).unwrap().expect("few");
    let counts = types.get("invoice.paid").copied().unwrap_or_default();
    assert_eq!(counts, AttemptCounts { successes: counts.successes, failures: 0 });
    counts.successes
}

fn written(folder: &Path) -> i64 {
    let file = Connection::open(folder.join("aldaba.db")).unwrap();
    file.query_row("SELECT coalesce(sum(attempts), 0) FROM application_hour", (), |row| row.get(0)).unwrap()
}

/// The folder as a crash would leave it.
fn crashed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["aldaba.db", "aldaba.db-wal"] {
        std::fs::copy(folder.join(file), copy.path().join(file)).unwrap();
    }
    copy
}

#[test]
fn attempts_by_type_are_counted_once_over_crashes_and_clean_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (store, seconds) = with_clock(folder.path());
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    let app = tenant.application.id;
    block_on(deliver(&scene, &tenant, 3));
    assert_eq!((counted(&store, app), written(folder.path())), (3, 0), "they are in memory");
    let early = crashed(folder.path());
    assert_eq!(counted(&open(early.path()), app), 3, "they are counted anew");
    seconds.store(60, Ordering::Relaxed);
    block_on(deliver(&scene, &tenant, 2));
    assert_eq!((counted(&store, app), written(folder.path())), (5, 3), "the first ones are written");
    let late = crashed(folder.path());
    let again = open(late.path());
    assert_eq!(counted(&again, app), 5);
    drop(again);
    assert_eq!(counted(&open(late.path()), app), 5, "and stay so");
    drop((scene, store));
    assert_eq!(written(folder.path()), 5, "a clean end writes them all");
    assert_eq!(counted(&open(folder.path()), app), 5);
}

#[test]
fn counters_go_after_their_time_however_many_types_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(2));
    let (app, hour) = (tenant.application.id, Hour::of(at(0)));
    let types: Vec<String> = (0..200).map(|number| format!("type-{number}")).collect();
    block_on(async {
        for (event_type, moment) in types.iter().map(|name| (name, at(0))).chain([(&types[0], at(3600))]) {
            let event = scene.event(&tenant);
            let seq = scene.accepted(&event).await;
            let mut record = Record { at: moment, ..scene.delivered(&event, seq) };
            let attempt = record.attempt.take();
            record.attempt =
                attempt.map(|made| NewAttempt { event_type: event_type.as_str().into(), ..made });
            scene.record(vec![record]).await;
        }
        scene.store.close().await.unwrap();
    });
    drop((scene, store));
    let store = open(folder.path());
    let old = |before| block_on(find(&*store, Search::ApplicationCounters(vec![app], before), 10)).0;
    assert_eq!(old(hour.start()), []);
    let stale = old(hour.next().start());
    assert_eq!(stale, [ExpiredItem::ApplicationCounters(app, hour)]);
    let removed = block_on(remove_slice(&*store, stale, at(9999), Duration::ZERO));
    assert_eq!(removed.counts.counters, 200);
    assert_eq!(written(folder.path()), 1);
    assert_eq!(old(hour.next().start()), []);
}

#[test]
fn attempts_from_before_the_counters_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(folder.path()));
    let tenant = block_on(scene.with_endpoints(1));
    block_on(deliver(&scene, &tenant, 2));
    block_on(scene.store.close()).unwrap();
    drop(scene);
    // As if an older version had written the attempts.
    let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
    file.execute_batch(
        "DELETE FROM application_hour;
         UPDATE total SET value = (SELECT max(rowid) FROM attempt) WHERE name = 'types_counted';",
    )
    .unwrap();
    drop(file);
    assert_eq!(counted(&open(folder.path()), tenant.application.id), 0);
}

#[test]
fn a_long_walk_is_interrupted_and_still_advances() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = AtomicU64::new(0);
    // Every look at this clock takes a second.
    let clock = Monotonic::new(move || Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
    let options =
        Options::of(StoreOptions { clock, queue_wait: Duration::MAX, ..StoreOptions::new(folder.path()) });
    let store = Arc::new(SqliteStore::open(&options).unwrap());
    let scene = Scene::new(store);
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        for number in 0..150 {
            let mut event = scene.event(&tenant);
            event.message.channels = if number % 50 == 0 { vec!["rare".into()] } else { Vec::new() };
            scene.accepted(&event).await;
        }
        let all =
            MessagesQuery::all(tenant.application.id, Page { after: None, limit: 250 }, Order::Ascending);
        let all = scene.store.messages(all).await.unwrap();
        assert_eq!((all.items.len(), all.stopped), (150, None), "what finds all ends with its page");
        let (mut after, mut pages, mut found) = (None, 0, 0);
        loop {
            let query = MessagesQuery {
                app: tenant.application.id,
                filter: MessageFilter { channel: Some("rare".into()), ..MessageFilter::default() },
                part: ListRange::page(Page { after, limit: 250 }, Order::Descending),
                payloads: Payloads::Without,
            };
            let page = scene.store.messages(query).await.unwrap();
            (pages, found) = (pages + 1, found + page.items.len());
            let Some(stopped) = page.stopped else { break };
            after = Some(stopped);
        }
        assert_eq!((found, pages), (3, 3));
    });
}
