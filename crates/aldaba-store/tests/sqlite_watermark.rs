//! A database that has gone back is noticed, and one that has not is never accused of it.

use aldaba_store::conformance::Scene;
use aldaba_store::sqlite::{Loss, OpenError, Options, SqliteStore};
use aldaba_store::{Accepted, Directory, Done, History, StoreOptions, Tenant};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DATABASE: &str = "aldaba.db";
const LOG: &str = "aldaba.db-wal";
const WATERMARK: &str = "aldaba.watermark";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The files of a folder, without the reserve and the lock.
type Image = BTreeMap<String, Vec<u8>>;

fn image(folder: &Path) -> Image {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}

/// Without the index of the log, which SQLite makes anew whenever it begins.
fn durable(mut image: Image) -> Image {
    image.remove("aldaba.db-shm");
    image
}

fn folder_of(image: &Image) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in image {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn options(folder: &Path) -> Options {
    Options::of(StoreOptions { reserve_bytes: 0, low_space_bytes: 0, ..StoreOptions::new(folder) })
}

fn open(folder: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(&options(folder))
}

fn accepting(accept_older_data: bool, folder: &Path) -> Options {
    let options = options(folder);
    Options { store: StoreOptions { accept_older_data, ..options.store.clone() }, ..options }
}

fn accept_older(folder: &Path) -> SqliteStore {
    SqliteStore::open(&accepting(true, folder)).unwrap()
}

fn loss(folder: &Path) -> Loss {
    match open(folder) {
        Err(OpenError::GoneBack { loss, .. }) => loss,
        other => panic!("{other:?}"),
    }
}

/// A store at work, and what a `kill -9` would leave of it after every commit.
struct AtWork {
    scene: Scene,
    tenant: Tenant,
    folder: tempfile::TempDir,
}

impl AtWork {
    fn begin(options: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(self::options(folder.path()));
        let scene = Scene::new(Arc::new(SqliteStore::open(&options).unwrap()));
        let tenant = block_on(scene.with_endpoints(1));
        Self { scene, tenant, folder }
    }

    fn accept(&self, messages: usize) {
        for _ in 0..messages {
            block_on(self.scene.accepted(&self.scene.event(&self.tenant)));
        }
    }

    /// Accepts, and takes an image after each commit: while its `Done` runs nothing else is written.
    fn images(&self, commits: usize) -> Vec<Image> {
        let mut images = Vec::new();
        for _ in 0..commits {
            let (told, taken) = std::sync::mpsc::channel();
            let folder = self.folder.path().to_owned();
            let done = Done::new(move |result: Result<_, _>| {
                result.unwrap();
                told.send(durable(image(&folder))).unwrap();
            });
            self.scene.store.accept(vec![self.scene.event(&self.tenant)], done);
            images.push(taken.recv().unwrap());
        }
        images
    }

    fn killed(&self) -> Image {
        image(self.folder.path())
    }
}

fn waiting(store: &SqliteStore) -> u64 {
    block_on(store.waiting()).unwrap()
}

#[test]
fn a_store_that_was_killed_opens_with_everything() {
    let work = AtWork::begin(|options| options);
    work.accept(20);
    let folder = folder_of(&work.killed());
    assert_eq!(waiting(&open(folder.path()).unwrap()), 20);
    assert_eq!(waiting(&open(folder.path()).unwrap()), 20, "and after a clean stop");
}

#[test]
fn a_log_that_was_deleted_emptied_cut_or_damaged_after_a_kill_is_refused_and_nothing_is_changed() {
    let work = AtWork::begin(|options| options);
    work.accept(20);
    let killed = work.killed();
    let log = killed[LOG].clone();
    let flipped = |at: usize| {
        let mut log = log.clone();
        log[at] ^= 0x10;
        Some(log)
    };
    let cut = |bytes: usize| Some(log[..bytes].to_vec());
    let damages = [
        ("deleted", None),
        ("emptied", cut(0)),
        ("cut in its head", cut(20)),
        ("cut in the middle", cut(log.len() / 2)),
        ("without its last byte", cut(log.len() - 1)),
        ("flipped in its head", flipped(9)),
        ("flipped in the middle", flipped(log.len() / 2)),
        ("flipped at its end", flipped(log.len() - 1)),
    ];
    for (what, damaged) in damages {
        let mut image = killed.clone();
        match damaged {
            Some(bytes) => image.insert(LOG.into(), bytes),
            None => image.remove(LOG),
        };
        let folder = folder_of(&image);
        let before = self::image(folder.path());
        let refused = open(folder.path()).expect_err(what);
        let text = refused.to_string();
        let OpenError::GoneBack { loss: Loss::Commits { found, expected }, .. } = refused else {
            panic!("{what}: {text}");
        };
        assert!(found < expected, "{what}: {text}");
        assert!(text.contains("--accept-older-data") && text.contains("Put back"), "{text}");
        assert_eq!(durable(self::image(folder.path())), durable(before), "{what}");
        // The right log, put back, has everything.
        std::fs::write(folder.path().join(LOG), &log).unwrap();
        assert_eq!(waiting(&open(folder.path()).unwrap()), 20, "{what}");
    }
}

#[test]
fn a_log_that_is_lost_after_part_of_it_was_copied_is_refused() {
    let work = AtWork::begin(|options| Options { checkpoint_pages: 40, ..options });
    work.accept(60);
    let mut killed = work.killed();
    assert!(killed[DATABASE].len() > 4096 * 10, "part of it was copied");
    killed.remove(LOG);
    loss(folder_of(&killed).path());
}

#[test]
fn a_log_that_was_copied_whole_may_go() {
    let work = AtWork::begin(|options| Options { checkpoint_pages: 1, ..options });
    work.accept(20);
    // The copy is made after the answer; the next commit waits for it.
    let (told, copied) = std::sync::mpsc::channel();
    work.scene.store.record(Vec::new(), Done::new(move |_| told.send(()).unwrap()));
    copied.recv().unwrap();
    block_on(work.scene.store.close()).unwrap();
    let closed = work.killed();
    assert!(!closed.contains_key(LOG), "a clean stop leaves no log");
    assert_eq!(waiting(&open(folder_of(&closed).path()).unwrap()), 20);
}

#[test]
fn a_database_that_is_gone_is_refused() {
    let work = AtWork::begin(|options| options);
    work.accept(5);
    let killed = work.killed();
    block_on(work.scene.store.close()).unwrap();
    for (what, image, kept) in [
        ("after a kill", killed.clone(), &[][..]),
        ("after a clean stop", work.killed(), &[][..]),
        ("emptied", killed.clone(), &[DATABASE][..]),
    ] {
        let folder = folder_of(&image);
        std::fs::remove_file(folder.path().join(DATABASE)).unwrap();
        for name in kept {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let before = self::image(folder.path());
        assert!(matches!(loss(folder.path()), Loss::Database { .. }), "{what}");
        assert_eq!(self::image(folder.path()), before, "{what}");
        drop(accept_older(folder.path()));
        assert_eq!(waiting(&open(folder.path()).unwrap()), 0, "accepted once, it is the truth: {what}");
    }
    // A former version left no watermark, but a log alone tells it too.
    let folder = folder_of(&killed);
    std::fs::remove_file(folder.path().join(DATABASE)).unwrap();
    std::fs::remove_file(folder.path().join(WATERMARK)).unwrap();
    assert_eq!(loss(folder.path()), Loss::LogAlone);
}

#[test]
fn a_batch_that_changes_nothing_writes_nothing() {
    let work = AtWork::begin(|options| options);
    work.accept(2);
    let before = work.killed();
    for _ in 0..5 {
        let (told, done) = std::sync::mpsc::channel();
        work.scene.store.record(Vec::new(), Done::new(move |_| told.send(()).unwrap()));
        done.recv().unwrap();
    }
    assert_eq!(durable(work.killed()), durable(before));
    work.accept(1);
    let folder = folder_of(&work.killed());
    assert_eq!(waiting(&open(folder.path()).unwrap()), 3, "database and watermark still agree");
    let mut killed = work.killed();
    killed.remove(LOG);
    loss(folder_of(&killed).path());
}

#[test]
fn an_older_copy_is_refused_until_it_is_accepted_once() {
    let work = AtWork::begin(|options| options);
    work.accept(3);
    let copy = work.killed();
    work.accept(4);
    block_on(work.scene.store.close()).unwrap();
    let mut restored = work.killed();
    for name in [DATABASE, LOG] {
        restored.insert(name.into(), copy[name].clone());
    }
    let folder = folder_of(&restored);
    assert!(matches!(loss(folder.path()), Loss::Commits { .. }));
    let store = accept_older(folder.path());
    assert_eq!(waiting(&store), 3);
    drop(store);
    assert_eq!(waiting(&open(folder.path()).unwrap()), 3);
}

/// The database as it is after a clean stop, with more messages in the log after the next start.
fn stopped_and_started(work: AtWork, messages: usize) -> (AtWork, Image) {
    block_on(work.scene.store.close()).unwrap();
    let stopped = work.killed();
    let AtWork { scene, tenant, folder } = work;
    drop(scene);
    let scene = Scene::new(Arc::new(open(folder.path()).unwrap()));
    let work = AtWork { scene, tenant, folder };
    // The ids of a new scene begin anew: those that are taken are passed over.
    let mut left = messages;
    while left > 0 {
        match block_on(work.scene.accept(vec![work.scene.event(&work.tenant)]))[..] {
            [Accepted::New { .. }] => left -= 1,
            [Accepted::Repeated { .. }] => {}
            ref other => panic!("not accepted: {other:?}"),
        }
    }
    (work, stopped)
}

fn mixed(image: &Image, what: &str) {
    let folder = folder_of(image);
    let before = self::image(folder.path());
    for accept_older_data in [false, true] {
        let options = accepting(accept_older_data, folder.path());
        let refused = SqliteStore::open(&options).expect_err(what);
        let text = refused.to_string();
        let OpenError::Mixed { found, expected, .. } = refused else { panic!("{what}: {text}") };
        assert!(found < expected, "{what}: {text}");
        assert!(text.contains("Put back") && text.contains("move aldaba.db-wal away"), "{text}");
        assert_eq!(durable(self::image(folder.path())), durable(before.clone()), "{what}");
    }
}

#[test]
fn an_older_database_beside_the_present_log_is_refused() {
    let work = AtWork::begin(|options| options);
    work.accept(40);
    let (work, backup) = stopped_and_started(work, 30);
    let (work, _) = stopped_and_started(work, 1);
    let killed = work.killed();
    assert_eq!(waiting(&open(folder_of(&killed).path()).unwrap()), 71, "its own database is right");
    let mut older = killed.clone();
    older.insert(DATABASE.into(), backup[DATABASE].clone());
    older.remove("aldaba.db-shm");
    mixed(&older, "the log holds the newest number");
    // Without the log it is an older copy, which may be accepted.
    older.remove(LOG);
    let folder = folder_of(&older);
    assert!(matches!(loss(folder.path()), Loss::Commits { .. }));
    assert_eq!(waiting(&accept_older(folder.path())), 40);
}

#[test]
fn an_older_database_beside_a_log_that_has_started_over_is_refused() {
    let work = AtWork::begin(|options| Options { checkpoint_pages: 30, longest_log_pages: 100, ..options });
    work.accept(5);
    let early = work.killed();
    let mut logs = vec![early[LOG][..24].to_vec()];
    for _ in 0..60 {
        work.accept(1);
        let head = work.killed()[LOG][..24].to_vec();
        if logs.last() != Some(&head) {
            logs.push(head);
        }
    }
    assert!(logs.len() > 2, "the log has started over");
    let mut older = work.killed();
    older.insert(DATABASE.into(), early[DATABASE].clone());
    older.remove("aldaba.db-shm");
    match open(folder_of(&older).path()) {
        Err(OpenError::Mixed { .. } | OpenError::GoneBack { .. }) => {}
        // Its own log was never copied as a whole then.
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_database_file_that_is_newer_than_the_watermark_opens() {
    // As after a look with the shell of SQLite at what a kill has left: that copies the log and removes it.
    let work = AtWork::begin(|options| options);
    work.accept(9);
    let folder = folder_of(&work.killed());
    let shell = Connection::open(folder.path().join(DATABASE)).unwrap();
    shell.query_row("SELECT count(*) FROM message", (), |row| row.get::<_, i64>(0)).unwrap();
    drop(shell);
    assert!(!folder.path().join(LOG).exists());
    assert_eq!(waiting(&open(folder.path()).unwrap()), 9);
}

#[test]
fn a_folder_of_a_former_version_opens_and_gets_a_watermark() {
    let work = AtWork::begin(|options| options);
    work.accept(2);
    block_on(work.scene.store.close()).unwrap();
    let mut former = work.killed();
    former.remove(WATERMARK);
    let folder = folder_of(&former);
    let file = Connection::open(folder.path().join(DATABASE)).unwrap();
    file.execute_batch("DELETE FROM total WHERE name = 'commits'").unwrap();
    drop(file);
    let store = open(folder.path()).unwrap();
    let (told, written) = std::sync::mpsc::channel();
    store.settle_setting("s", vec![1], Done::new(move |_| told.send(()).unwrap()));
    written.recv().unwrap();
    let mut killed = image(folder.path());
    drop(open(folder_of(&killed).path()).unwrap());
    killed.remove(LOG);
    loss(folder_of(&killed).path());
}

#[test]
fn an_unreadable_watermark_is_written_again() {
    let work = AtWork::begin(|options| options);
    work.accept(2);
    for bytes in [&[][..], &[0; 8192], b"no watermark"] {
        let mut killed = work.killed();
        killed.insert(WATERMARK.into(), bytes.to_vec());
        let folder = folder_of(&killed);
        drop(open(folder.path()).unwrap());
        std::fs::remove_file(folder.path().join(DATABASE)).unwrap();
        loss(folder.path());
    }
}

/// What a loss of power may leave: everything that was synced, any part of what was not, in any order, and a
/// watermark of any age. Images are taken after each commit; what lies between two of them was not synced yet. Pages of the
/// database that were being copied may be torn: only the log makes them whole.
#[test]
fn every_image_after_a_power_failure_is_accepted() {
    const SECTOR: usize = 512;
    /// A torn page may be torn anywhere.
    const SPLINTER: usize = 8;
    let work = AtWork::begin(|options| Options { checkpoint_pages: 30, longest_log_pages: 100, ..options });
    let images = work.images(80);
    assert!(
        images.windows(2).any(|pair| pair[0][DATABASE] != pair[1][DATABASE]),
        "the log is copied in between"
    );
    let logs_begun_anew = images.windows(2).filter(|pair| pair[0][LOG][..24] != pair[1][LOG][..24]).count();
    assert!(logs_begun_anew > 0, "the log starts over in between");
    let mut random = Random(17);
    let mut tried = 0;
    for (at, pair) in images.windows(2).enumerate() {
        let (synced, next) = (&pair[0], &pair[1]);
        for _ in 0..4 {
            let mut image = synced.clone();
            let begun_anew = synced[LOG][..24] != next[LOG][..24];
            // The database is synced before the log begins anew; until then any of its pages may be there.
            let database = if begun_anew {
                next[DATABASE].clone()
            } else {
                let block = [4096, SECTOR, SPLINTER][random.below(3)];
                random.mixed(&synced[DATABASE], &next[DATABASE], block)
            };
            image.insert(DATABASE.into(), database);
            let mut log = random.mixed(&synced[LOG], &next[LOG], SECTOR);
            if begun_anew {
                // SQLite syncs a new head before it writes the first page.
                log[..32].copy_from_slice(&next[LOG][..32]);
            }
            image.insert(LOG.into(), log);
            // The kernel may have written each of its blocks at any time.
            let mut watermark = Vec::new();
            for block in [0..4096, 4096..8192] {
                let old = &images[random.below(at + 1)][WATERMARK][block];
                watermark.extend_from_slice(old);
            }
            if random.below(8) == 0 {
                let torn = random.below(2) * 4096;
                watermark[torn + random.below(32)] ^= 0xff;
            }
            image.insert(WATERMARK.into(), watermark);
            let folder = folder_of(&image);
            let store =
                open(folder.path()).unwrap_or_else(|error| panic!("image after commit {at}: {error}"));
            // Two of the scene's commits come before the messages.
            assert!(waiting(&store) > at as u64, "image after commit {at}");
            tried += 1;
        }
    }
    assert!(tried >= 300, "{tried} images");
    let claims: std::collections::BTreeSet<_> =
        images.iter().flat_map(|image| [&image[WATERMARK][16..24], &image[WATERMARK][4112..4120]]).collect();
    assert!(claims.len() > 3, "the watermark says what is in the database file alone: {claims:?}");
    // The other way round it would be seen: a watermark that was there before its commit.
    let mut ahead = images[0].clone();
    ahead.insert(WATERMARK.into(), images[1][WATERMARK].clone());
    loss(folder_of(&ahead).path());
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % bound
    }

    /// The old bytes with some of the new blocks among them, and some of what was added to the end.
    fn mixed(&mut self, old: &[u8], new: &[u8], block: usize) -> Vec<u8> {
        let length = match new.len().checked_sub(old.len()) {
            Some(added) if added > 0 => old.len() + self.below(added + 1),
            _ => old.len(),
        };
        let mut bytes = old.to_vec();
        bytes.resize(length, 0);
        for start in (0..length.min(new.len())).step_by(block) {
            if self.below(2) == 0 {
                let end = (start + block).min(length).min(new.len());
                bytes[start..end].copy_from_slice(&new[start..end]);
            }
        }
        bytes
    }
}
