use super::*;
use crate::conformance::Scene;
use crate::sqlite::{OpenError, Options, SqliteStore};
use crate::{Change, Changed, Directory, Done, Store};
use aldaba_delivery::Timestamp;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LIMITS: CopyLimits = CopyLimits { log_growth: 1 << 30, free_bytes: 0 };

async fn put(store: &SqliteStore, name: &'static str, value: Vec<u8>) {
    let (answer, answered) = tokio::sync::oneshot::channel();
    let done = Done::new(move |result: Result<Changed, _>| drop(answer.send(result)));
    store.change(Change::PutSetting { name, value }, None, done);
    answered.await.unwrap().unwrap();
}

fn setting(file: &Path, name: &str) -> Option<Vec<u8>> {
    Snapshot::of_copy(file).unwrap().setting(name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_of_the_moment_at_which_it_began_and_commits_go_on_meanwhile() {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    // Enough for several steps.
    for name in ["large", "larger"] {
        put(&store, name, vec![7; 12 << 20]).await;
    }
    put(&store, "a", vec![1]).await;
    let snapshot = Snapshot::begin(folder.path()).unwrap();
    put(&store, "a", vec![2]).await;
    let file = target.path().join("copy.db");
    let mut steps = 0;
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        snapshot
            .copy_to(&file, LIMITS, |CopyProgress { copied, of }| {
                assert!(copied <= of && of > 24 << 20);
                steps += 1;
                runtime.block_on(put(&store, "a", vec![3 + steps]));
                true
            })
            .unwrap();
    });
    assert!(steps > 2, "{steps}");
    assert_eq!(store.setting("a").await.unwrap(), Some(vec![3 + steps]));
    finish_copy(&file, &[("b", &[9])]).unwrap();
    assert_eq!((setting(&file, "a"), setting(&file, "b")), (Some(vec![1]), Some(vec![9])));
    assert_eq!(Snapshot::of_copy(&file).unwrap().commit(), snapshot.commit());
    assert_eq!(Snapshot::of_copy(&file).unwrap().problems(true).unwrap(), [""; 0]);
    let names = std::fs::read_dir(target.path()).unwrap().count();
    assert_eq!(names, 1, "it needs no log");
}

/// Copies a new store of 12 MiB, which writes 40 MiB more as soon as the copy has begun.
async fn copy_beside_a_writer(limits: CopyLimits, go_on: bool) -> Result<(), CopyError> {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    put(&store, "large", vec![7; 12 << 20]).await;
    let snapshot = Snapshot::begin(folder.path()).unwrap();
    let runtime = tokio::runtime::Handle::current();
    let mut has_written = false;
    tokio::task::block_in_place(|| {
        snapshot.copy_to(&target.path().join("copy.db"), limits, |_| {
            if !std::mem::replace(&mut has_written, true) {
                runtime.block_on(put(&store, "more", vec![7; 40 << 20]));
            }
            go_on
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_ends_when_it_is_told_to_or_the_log_grows_too_much_or_room_runs_low() {
    assert!(matches!(copy_beside_a_writer(LIMITS, false).await, Err(CopyError::Stopped)));
    let little = CopyLimits { log_growth: 1 << 20, ..LIMITS };
    let ended = copy_beside_a_writer(little, true).await;
    assert!(matches!(ended, Err(CopyError::LogGrew { limit, .. }) if limit == 1 << 20), "{ended:?}");
    let low = CopyLimits { free_bytes: u64::MAX, ..LIMITS };
    let ended = copy_beside_a_writer(low, true).await;
    assert!(matches!(ended, Err(CopyError::LowSpace { .. })), "{ended:?}");
    copy_beside_a_writer(LIMITS, true).await.unwrap();
}

#[tokio::test]
async fn one_copy_of_a_folder_is_made_at_a_time() {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    put(&store, "large", vec![7; 4 << 20]).await;
    let copy = |name: &str, go_on: &mut dyn FnMut() -> bool| {
        let snapshot = Snapshot::begin(folder.path()).unwrap();
        snapshot.copy_to(&target.path().join(name), LIMITS, |_| go_on())
    };
    let mut refused = 0;
    copy("first", &mut || {
        assert!(is_being_copied(folder.path()));
        refused += usize::from(matches!(copy("again", &mut || true), Err(CopyError::Another)));
        true
    })
    .unwrap();
    assert!(refused > 0);
    assert!(!is_being_copied(folder.path()));
    copy("later", &mut || true).unwrap();
}

#[tokio::test]
async fn what_waits_is_counted_by_whether_it_would_be_sent() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
    let scene = Scene::new(store.clone());
    let tenant = scene.with_endpoints(2).await;
    scene.accepted(&scene.event(&tenant)).await;
    let pending = |change: &str, now: i64| {
        let connection = Connection::open(folder.path().join("aldaba.db")).unwrap();
        connection.execute_batch(change).unwrap();
        Snapshot::begin(folder.path()).unwrap().pending(Timestamp::from_millis(now)).unwrap()
    };
    let all = pending("", i64::MAX);
    assert_eq!((all.waiting, all.sendable, all.due), (2, 2, 2));
    assert!(all.first_due.is_some());
    let early = pending("", 0);
    assert_eq!((early.waiting, early.sendable, early.due, early.first_due), (2, 2, 0, None));
    let one = "id IN (SELECT id FROM endpoint LIMIT 1)";
    for column in ["disabled", "health_status", "deleted"] {
        let held = pending(&format!("UPDATE endpoint SET {column} = 1 WHERE {one}"), i64::MAX);
        assert_eq!((held.waiting, held.sendable, held.due), (2, 1, 1), "{column}");
        pending(&format!("UPDATE endpoint SET {column} = 0 WHERE {one}"), 0);
    }
}

#[tokio::test]
async fn a_folder_says_whether_somebody_holds_it_and_a_look_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let state = || FolderState::of(folder.path()).unwrap();
    assert!(!state().is_locked);
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    assert!(state().is_locked && state().database_bytes > 0);
    assert!(matches!(SqliteStore::open(&Options::new(folder.path())), Err(OpenError::Locked { .. })));
    store.close().await.unwrap();
    drop(store);
    assert!(!state().is_locked);
    let looking = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while looking.load(std::sync::atomic::Ordering::Relaxed) {
                state();
            }
        });
        for _ in 0..20 {
            drop(SqliteStore::open(&Options::new(folder.path())).unwrap());
        }
        looking.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}

fn last_number(database: &Path) -> i64 {
    let connection = Connection::open(database).unwrap();
    connection.query_row("SELECT value FROM total WHERE name = 'numbers'", (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn numbers_of_a_restored_folder_begin_beyond_those_that_were_given_since_its_copy() {
    let (folder, outer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = outer.path().join("copy.db");
    let store = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
    let scene = Scene::new(store.clone());
    let tenant = scene.with_endpoints(1).await;
    scene.accepted(&scene.event(&tenant)).await;
    Snapshot::begin(folder.path()).unwrap().copy_to(&copy, LIMITS, |_| true).unwrap();
    let before = last_number(&copy);
    for (name, since, skipped) in
        [("soon", Duration::ZERO, 1_000_000_000), ("later", Duration::from_secs(86_400), 9_640_000_000)]
    {
        let restored = outer.path().join(name);
        let restoring = Restoring::begin(&restored).unwrap();
        std::fs::copy(&copy, restoring.database()).unwrap();
        restoring.finish(&[("paused", b"x")], since).unwrap();
        let store = SqliteStore::open(&Options::new(&restored)).unwrap();
        assert_eq!(store.setting("paused").await.unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(last_number(&restored.join("aldaba.db")), before + skipped, "{name}");
    }
}

#[test]
fn a_restore_that_is_dropped_leaves_the_folder_as_it_was() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/b");
    drop(Restoring::begin(&folder).unwrap());
    assert!(!outer.path().join("a").exists());
    std::fs::create_dir_all(folder.join("lost+found")).unwrap();
    let restoring = Restoring::begin(&folder).unwrap();
    std::fs::write(restoring.path("file"), "half").unwrap();
    assert!(matches!(Restoring::begin(&folder), Err(RestoringError::Running { .. })));
    // It is no database.
    std::fs::write(restoring.database(), "half").unwrap();
    assert!(matches!(restoring.finish(&[], Duration::ZERO), Err(RestoringError::Database(_))));
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lost+found"]);
}
