//! A disk that is full, and one that fails.

use aldaba_store::conformance::Scene;
use aldaba_store::sqlite::{Options, SqliteStore};
use aldaba_store::{
    Accept, Accepted, Content, Done, Error, History, Lanes, Recorded, Store, StoreOptions, Tenant,
};
use std::process::Command;
use std::sync::Arc;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn large(scene: &Scene, tenant: &Tenant, bytes: usize) -> Accept {
    let mut event = scene.event(tenant);
    event.message.content = Arc::new(Content::new("big", vec![7; bytes]));
    event
}

async fn hand_in(scene: &Scene, batch: Vec<Accept>) -> Result<Vec<Accepted>, Error> {
    let (told, fate) = tokio::sync::oneshot::channel();
    scene.store.accept(batch, Done::new(|result| told.send(result).unwrap()));
    fate.await.unwrap()
}

#[test]
fn a_full_disk_keeps_nothing_of_the_write_and_the_store_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { largest_file_pages: Some(128), ..Options::new(folder.path()) };
    let store = Arc::new(SqliteStore::open(&options).unwrap());
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let (first, second) = (scene.event(&tenant), scene.event(&tenant));
        let seq = scene.accepted(&first).await;
        let full = hand_in(&scene, vec![second.clone(), large(&scene, &tenant, 1 << 20)]).await;
        assert_eq!(full, Err(Error::Full));
        assert_eq!(store.contents(vec![(second.app, second.message.id)]).await.unwrap(), [None]);
        assert_eq!(store.check().await, Ok(()));
        let recorded = scene.record(vec![scene.delivered(&first, seq)]).await;
        assert_eq!(recorded, [Recorded::Applied]);
        assert!(matches!(hand_in(&scene, vec![second]).await.unwrap()[..], [Accepted::New { .. }]));
    });
}

const FOLDER: &str = "ALDABA_TEST_DISK_FOLDER";

/// Not a test of its own: a process whose files may not grow, so that a write ends in an error of
/// the system which is not "full".
#[test]
#[ignore = "started by the test below"]
fn write_until_the_disk_fails() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = Arc::new(
        SqliteStore::open(&Options::of(StoreOptions { reserve_bytes: 0, ..StoreOptions::new(&folder) }))
            .unwrap(),
    );
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let mut accepted = 0;
        let error = loop {
            match hand_in(&scene, vec![large(&scene, &tenant, 100_000)]).await {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert!(accepted > 0);
        let Error::Failed(message) = error else { panic!("{error:?}") };
        assert_eq!(store.failed().await, message);
        assert_eq!(store.check().await, Err(Error::Failed(message.clone())));
        // A small one might fit; it is not even tried.
        let later = hand_in(&scene, vec![scene.event(&tenant)]).await;
        assert_eq!(later, Err(Error::Failed(message.clone())));
        assert_eq!(store.close().await, Err(Error::Failed(message)));
        std::fs::write(std::path::Path::new(&folder).join("accepted"), accepted.to_string()).unwrap();
    });
}

#[test]
fn an_error_of_the_disk_ends_the_store_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --exact write_until_the_disk_fails --ignored";
    let ended = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    let accepted: u64 = std::fs::read_to_string(folder.path().join("accepted")).unwrap().parse().unwrap();
    // A fresh start reads what is on the disk: all that was accepted, and nothing else.
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    assert_eq!(block_on(store.waiting()).unwrap(), accepted);
}

/// A small disk of its own, for as long as this lives. `None`: only root may have one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[test]
fn at_the_low_mark_intake_stops_results_continue_and_free_space_resumes_it() {
    const MIB: u64 = 1 << 20;
    let Some(disk) = SmallDisk::new(48) else {
        return eprintln!("skipped: a small disk needs the right to mount");
    };
    let filler = disk.0.path().join("filler");
    let options = Options::of(StoreOptions {
        low_space_bytes: 16 * MIB,
        reserve_bytes: 4 * MIB,
        ..StoreOptions::new(disk.0.path().join("data"))
    });
    let store = Arc::new(SqliteStore::open(&options).unwrap());
    let scene = Scene::new(store.clone());
    block_on(async {
        let tenant = scene.with_endpoints(1).await;
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        std::fs::write(&filler, vec![0; 36 << 20]).unwrap();
        let mut tries = 0;
        while hand_in(&scene, vec![scene.event(&tenant)]).await != Err(Error::Full) {
            tries += 1;
            assert!(tries < 100, "room is low and events are still accepted");
            tokio::task::spawn_blocking(|| std::thread::sleep(std::time::Duration::from_millis(50)))
                .await
                .unwrap();
        }
        assert!(!options.store.folder.join("aldaba.reserve").exists(), "the reserve is given up");
        let recorded = scene.record(vec![scene.delivered(&event, seq)]).await;
        assert_eq!(recorded, [Recorded::Applied], "results are still written");
        std::fs::remove_file(&filler).unwrap();
        tries = 0;
        while hand_in(&scene, vec![scene.event(&tenant)]).await == Err(Error::Full) {
            tries += 1;
            assert!(tries < 100, "there is room again and events are refused");
            tokio::task::spawn_blocking(|| std::thread::sleep(std::time::Duration::from_millis(50)))
                .await
                .unwrap();
        }
        assert!(options.store.folder.join("aldaba.reserve").exists(), "the reserve is kept again");
    });
}
