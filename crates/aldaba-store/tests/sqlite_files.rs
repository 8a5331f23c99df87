//! What is in the folder: it outlives the process, and nothing wrong is opened in silence.

use aldaba_delivery::{Gate, GateKey, GateScope, Health, Origin};
use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Monotonic, OpenError, Options, SqliteStore};
use aldaba_store::{
    Accept, Accepted, Accepts, Done, Error, GateRecord, History, Lanes, MessagesQuery, Order, Page, Record,
    Store, StoreOptions,
};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn open(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&Options::new(folder)).unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn refusal(folder: &Path) -> OpenError {
    SqliteStore::open(&Options::new(folder)).expect_err("it must not open")
}

#[test]
fn a_reopened_store_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(folder.path()));
    let (tenant, first, second) = block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
        let second = scene.event_due(&tenant, at(9));
        let seq = scene.accepted(&first).await;
        scene.accepted(&second).await;
        let gate = Gate { failures: 3, held_until: Some(at(60)), ..Gate::default() };
        let record = Record {
            health: Some(Health { failure_count: 4, ..Health::default() }),
            gates: vec![GateRecord {
                key: GateKey {
                    org: scene.org,
                    origin: Origin::new("https", "example.com", 443),
                    scope: GateScope::Host,
                },
                gate,
                why: String::new(),
            }],
            ..scene.failed(&first, seq, at(5))
        };
        scene.record(vec![record]).await;
        scene.store.close().await.unwrap();
        (tenant, first, second)
    });
    assert!(!folder.path().join("aldaba.db-wal").exists(), "a closed store leaves no log behind");
    drop(scene);

    let scene = Scene::new(open(folder.path()));
    block_on(async {
        let store = &scene.store;
        let due: Vec<_> =
            scene.due(tenant.endpoints[0].id).await.iter().map(|w| (w.due_at, w.attempts)).collect();
        assert_eq!(due, [(at(5), 1), (at(9), 0)]);
        assert_eq!(store.gates().await.unwrap()[0].gate.failures, 3);
        let endpoints = store.lane_endpoints(vec![tenant.endpoints[0].id]).await.unwrap();
        assert_eq!(endpoints[0].health.failure_count, 4);
        let again = scene.tenant(tenant.application.id).await.unwrap();
        assert_eq!((again.version, &again.application), (tenant.version, &tenant.application));
        let page = Page { after: None, limit: 10 };
        let query = MessagesQuery::all(tenant.application.id, page, Order::Ascending);
        let messages = store.messages(query).await.unwrap();
        let ids: Vec<_> = messages.items.iter().map(|message| message.id).collect();
        assert_eq!(ids, [first.message.id, second.message.id]);
        let mut repeated = second.clone();
        repeated.message.id = aldaba_delivery::MessageId::new(at(1), [9; 15]);
        repeated.idempotency = first.idempotency;
        assert_eq!(scene.accept(vec![repeated]).await, [Accepted::Repeated { message: first.message.id }]);
    });
}

#[test]
fn numbers_of_deliveries_are_never_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let first = Scene::new(open(folder.path()));
    let (tenant, event, seq) = block_on(async {
        let tenant = first.with_endpoints(1).await;
        let event = first.event(&tenant);
        let seq = first.accepted(&event).await;
        first.store.close().await.unwrap();
        (tenant, event, seq)
    });
    let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
    file.execute_batch("DELETE FROM delivery; DELETE FROM message").unwrap();
    drop((first, file));
    let second = Scene::new(open(folder.path()));
    block_on(async {
        assert_eq!(second.tenant(tenant.application.id).await.unwrap().version, tenant.version);
        assert!(second.accepted(&event).await > seq);
    });
}

#[test]
fn a_dropped_store_has_written_what_was_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(folder.path()));
    let tenant = block_on(scene.with_endpoints(1));
    for _ in 0..100 {
        scene.store.accept(vec![scene.event(&tenant)], Done::new(|_| ()));
    }
    drop(scene);
    let store = open(folder.path());
    assert_eq!(block_on(store.waiting()).unwrap(), 100);
}

#[test]
fn a_store_may_be_dropped_by_its_own_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scene = Scene::new(store.clone());
    let event = scene.event(&block_on(scene.with_endpoints(1)));
    let (told, news) = std::sync::mpsc::channel();
    let last = store.clone();
    store.accept(
        vec![event],
        Done::new(move |_| {
            // Waits until the others are gone, so that this is the last one.
            let _ = news.recv();
            drop(last);
        }),
    );
    drop((store, scene));
    told.send(()).unwrap();
    // The lock is free once the thread has ended.
    let reopened = loop {
        match SqliteStore::open(&Options::new(folder.path())) {
            Ok(store) => break store,
            Err(OpenError::Locked { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(block_on(reopened.waiting()).unwrap(), 1);
}

#[test]
fn a_second_store_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let refused = refusal(folder.path());
    assert!(matches!(refused, OpenError::Locked { .. }));
    let text = refused.to_string();
    assert!(text.contains(&folder.path().display().to_string()) && text.contains("stop that one"), "{text}");
    block_on(store.close()).unwrap();
    open(folder.path());
}

#[test]
fn the_folder_is_made_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    open(&inner);
    assert_eq!(std::fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_database_from_the_future_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
    file.pragma_update(None, "user_version", 1000).unwrap();
    drop(file);
    let refused = refusal(folder.path());
    assert!(matches!(refused, OpenError::FromTheFuture { found: 1000, .. }));
    assert!(refused.to_string().contains("newer version"), "{refused}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("aldaba.db"), vec![b'x'; 8192]).unwrap();
    let refused = refusal(folder.path());
    assert!(matches!(refused, OpenError::Database { .. }));
    assert!(refused.to_string().contains("aldaba.db"), "{refused}");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(refusal(&file.join("inner")), OpenError::Folder { .. }));
}

#[test]
fn a_damaged_page_stops_the_store_loudly() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(open(folder.path()));
    let event = block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let event = scene.event(&tenant);
        scene.accept((0..500).map(|_| scene.event(&tenant)).collect()).await;
        scene.accepted(&event).await;
        scene.store.close().await.unwrap();
        event
    });
    drop(scene);
    let path = folder.path().join("aldaba.db");
    let page: usize = Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'message_app'", (), |row| row.get(0))
        .map(|page: u32| page as usize)
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();

    let store = open(folder.path());
    let scene = Scene::new(store.clone());
    block_on(async {
        let read = store.contents(vec![(event.app, event.message.id)]).await;
        assert!(matches!(read, Err(Error::Failed(_))), "{read:?}");
        let message = store.failed().await;
        assert!(message.contains("malformed"), "{message}");
        assert_eq!(store.check().await, Err(Error::Failed(message.clone())));
        let (told, fate) = tokio::sync::oneshot::channel();
        store.accept(
            vec![Accept { app: scene.id(), ..event }],
            Done::new(|result| told.send(result).unwrap()),
        );
        assert_eq!(fate.await.unwrap(), Err(Error::Failed(message)));
    });
}

#[test]
fn a_writer_that_panics_fails_the_store_and_every_waiting_caller() {
    let folder = tempfile::tempdir().unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let clock = Monotonic::new({
        let panics = panics.clone();
        move || {
            let is_writer = std::thread::current().name() == Some("aldaba-writer");
            assert!(!is_writer || !panics.swap(false, Ordering::Relaxed), "on purpose");
            Duration::ZERO
        }
    });
    let options = Options::of(StoreOptions { clock, ..StoreOptions::new(folder.path()) });
    let store = Arc::new(SqliteStore::open(&options).unwrap());
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        panics.store(true, Ordering::Relaxed);
        let accept = async |event| {
            let (told, fate) = tokio::sync::oneshot::channel();
            store.accept(vec![event], Done::new(|result| told.send(result).unwrap()));
            fate.await.unwrap()
        };
        // It panics before this one, or after it.
        let _ = accept(scene.event(&tenant)).await;
        let message = store.failed().await;
        assert_eq!(message, "a bug: the writer panicked: on purpose");
        assert_eq!(accept(scene.event(&tenant)).await, Err(Error::Failed(message)));
        let _ = store.close().await;
    });
    drop((scene, store));
    open(folder.path());
}

#[test]
fn a_value_of_a_newer_version_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scene = Scene::new(store.clone());
    block_on(async {
        let event = scene.event(&scene.with_endpoints(1).await);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, aldaba_delivery::Reason::Expired)]).await;
        let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
        file.execute_batch("UPDATE delivery SET reason = 99").unwrap();
        let Err(Error::Refused(text)) = store.deliveries(event.message.id).await else { panic!("no error") };
        assert!(text.contains("reason") && text.contains("99"), "{text}");
        // The others can still be read and written.
        assert_eq!(store.check().await, Ok(()));
    });
}
