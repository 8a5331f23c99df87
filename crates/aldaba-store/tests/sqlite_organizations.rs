//! Counts of organizations are written once a second, and windows survive a restart and a crash.

use aldaba_delivery::OrgId;
use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Monotonic, Options, SqliteStore};
use aldaba_store::{
    CountKind, CountedSpans, OrganizationCounts, OrganizationCountsQuery, OrganizationStatistics, Record,
    Store, StoreOptions, Tenant,
};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
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

fn window(store: &SqliteStore, org: Option<OrgId>) -> OrganizationCounts {
    store.live_counts().window(org, at(60), HOUR)
}

fn written(folder: &Path, table: &str) -> (i64, i64) {
    let file = Connection::open(folder.join("aldaba.db")).unwrap();
    let query = format!("SELECT count(*), coalesce(sum(delivered), 0) FROM {table}");
    file.query_row(&query, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
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
fn windows_survive_a_clean_end_and_a_crash_but_for_its_last_second() {
    let folder = tempfile::tempdir().unwrap();
    let (store, seconds) = with_clock(folder.path());
    let scene = Scene::new(store.clone());
    let tenant = block_on(scene.with_endpoints(1));
    block_on(deliver(&scene, &tenant, 3));
    seconds.store(10, Ordering::Relaxed);
    block_on(deliver(&scene, &tenant, 2));
    assert_eq!(window(&store, Some(scene.org)).get(CountKind::Delivered), 5);
    let late = crashed(folder.path());
    let again = open(late.path());
    let after = window(&again, Some(scene.org)).get(CountKind::Delivered);
    assert!((3..=5).contains(&after), "{after}: only what was counted last may be lost");
    assert_eq!(again.live_counts().waiting(None), 0, "what waits is exact");
    drop(again);
    let (org, whole) = (scene.org, window(&store, None));
    drop((scene, store));
    assert_eq!(written(folder.path(), "organization_minute"), (1, 5));
    assert_eq!(written(folder.path(), "organization_hour"), (1, 5));
    let store = open(folder.path());
    assert_eq!((window(&store, None), window(&store, Some(org))), (whole.clone(), whole));
    let query = OrganizationCountsQuery { org, spans: CountedSpans::Minutes(0..=i64::MAX) };
    let rows = block_on(store.organization_counts(query)).unwrap();
    assert_eq!(rows.iter().map(|(minute, _)| *minute).collect::<Vec<_>>(), [at(0).millis() / 60_000]);
    assert_eq!(rows[0].1, window(&store, Some(org)));
}

#[test]
fn counts_are_written_within_a_second_also_when_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scene = Scene::new(store);
    let tenant = block_on(scene.with_endpoints(1));
    block_on(deliver(&scene, &tenant, 4));
    for _ in 0..100 {
        if written(folder.path(), "organization_minute") == (1, 4) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{:?}", written(folder.path(), "organization_minute"));
}

#[test]
fn a_database_of_an_earlier_version_counts_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(folder.path()));
    let tenant = block_on(scene.with_endpoints(2));
    let event = scene.event(&tenant);
    let seq = block_on(scene.accepted(&event));
    block_on(scene.record(vec![scene.delivered(&event, seq)]));
    block_on(scene.store.close()).unwrap();
    let org = scene.org;
    drop(scene);
    let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
    // The tables of later versions go, with their indexes.
    let later = "SELECT group_concat('DROP TABLE ' || name, ';') FROM sqlite_schema
        WHERE type = 'table' AND (name LIKE 'mail%' OR name LIKE '%alert%' OR name = 'erasure')";
    let drop_later: String = file.query_row(later, (), |row| row.get(0)).unwrap();
    let columns = ["no_answer", "status_1xx", "status_2xx", "status_3xx", "status_4xx", "status_5xx"];
    let columns = columns.iter().flat_map(|column| {
        ["endpoint_minute", "endpoint_hour"].map(|table| format!("ALTER TABLE {table} DROP COLUMN {column};"))
    });
    file.execute_batch(&format!(
        "{drop_later}; DROP TABLE organization_minute; DROP TABLE organization_hour; DROP INDEX endpoint_given_up;
         DROP INDEX replay_of_application; DROP INDEX endpoint_certificate;
         ALTER TABLE endpoint DROP COLUMN certificate_expires_at; {}
         DELETE FROM total WHERE name LIKE 'waiting%'; INSERT INTO total VALUES ('waiting', 1);
         PRAGMA user_version = 31;",
        columns.collect::<String>()
    ))
    .unwrap();
    drop(file);
    let store = open(folder.path());
    assert_eq!((store.live_counts().waiting(Some(org)), store.live_counts().waiting(None)), (1, 1));
}

#[test]
fn old_minutes_are_removed_as_new_ones_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (store, seconds) = with_clock(folder.path());
    let scene = Scene::new(store);
    let tenant = block_on(scene.with_endpoints(1));
    let minutes = |day: i64| (0..20).map(move |minute| at(day * 86_400 + minute * 60));
    for (second, moment) in minutes(0).chain(minutes(8)).enumerate() {
        seconds.store(second as u64 * 10, Ordering::Relaxed);
        block_on(async {
            let event = scene.event(&tenant);
            let seq = scene.accepted(&event).await;
            scene.record(vec![Record { at: moment, ..scene.delivered(&event, seq) }]).await;
        });
    }
    block_on(scene.store.close()).unwrap();
    let (rows, _) = written(folder.path(), "organization_minute");
    assert!((20..=22).contains(&rows), "{rows}");
}
