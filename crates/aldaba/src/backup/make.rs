//! Makes a backup. Everything is written into a folder with another name, which gets its name at the end: what has the name of a
//! backup is whole.

use super::digest::ListedFile;
use super::keys::KeyPlaces;
use super::manifest::Manifest;
use crate::cli::{NotInstalled, check_database};
use crate::config::Config;
use aldaba_delivery::Timestamp;
use aldaba_engine::{CLOCK_SETTING, ClockRecord, ENCRYPTION_CHECK, FolderError, PAUSE_SETTING, PauseRecord};
use aldaba_store::{CopyError, CopyLimits, CopyProgress, OpenError, Snapshot, finish_copy};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The name of the database in a backup, as in a data folder.
pub(super) const DATABASE: &str = "aldaba.db";
/// What a backup needs besides the database.
const SMALL_FILES: u64 = 1 << 20;
/// How many times the name of what is not finished is tried, while another process removes it.
const TRIES: usize = 8;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(
        "the database in {} has gone back: {loss} A backup of it would lack accepted messages without saying so. \
         `aldaba doctor` says more; see docs/configuration.md, \"The database has gone back\"",
        folder.display()
    )]
    GoneBack { folder: PathBuf, loss: aldaba_store::Loss },
    #[error("{} exists already: name a new folder for the backup. Nothing was changed", target.display())]
    Exists { target: PathBuf },
    #[error("{} is inside of the data folder, and would be lost with it: name a folder elsewhere", target.display())]
    Inside { target: PathBuf },
    #[error("cannot make the backup {}: {source}. Nothing is left of it", target.display())]
    Target { target: PathBuf, source: io::Error },
    #[error(
        "{} exists already, and is not what a backup has left: name another folder for the backup, or move that one away. Nothing \
         was changed",
        folder.display()
    )]
    Foreign { folder: PathBuf },
    #[error("another backup is being written to {}: wait for it, or name another folder", target.display())]
    InUse { target: PathBuf },
    #[error(
        "the disk of {} has {free} bytes free, and the backup needs about {needed}: free some space, or name a folder on \
         another disk. Nothing was written",
        target.display()
    )]
    NoSpace { target: PathBuf, needed: u64, free: u64 },
    #[error(
        "the disk of {} is full: free some space, or name a folder on another disk. Nothing is left of the backup",
        target.display()
    )]
    Full { target: PathBuf },
    #[error("the backup {} was not made: {source}. Nothing is left of it", target.display())]
    Copy { target: PathBuf, source: CopyError },
    #[error(
        "the copy of the database is damaged, and so is probably the database itself: {}. `aldaba doctor --thorough` says more. \
         Nothing is left of the backup",
        problems.join("; ")
    )]
    Damaged { problems: Vec<String> },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl BackupError {
    fn of_target(target: &Path, source: io::Error) -> Self {
        let target = target.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { target },
            _ => Self::Target { target, source },
        }
    }
}

/// A finished backup.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) manifest: Manifest,
    pub(crate) target: PathBuf,
}

/// How a backup is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackupOptions {
    /// Bytes that the server's log may grow meanwhile.
    pub(crate) log_growth: u64,
}

/// Makes a backup of the data folder. `go_on` hears how far it is, and says whether it goes on.
pub(crate) fn make(
    config: &Config,
    target: &Path,
    options: BackupOptions,
    now: impl Fn() -> Timestamp,
    mut go_on: impl FnMut(CopyProgress) -> bool,
) -> Result<Made, BackupError> {
    check_database(config)?;
    let failed = |source| BackupError::of_target(target, source);
    check_target(config.data(), target)?;
    let snapshot = Snapshot::begin(config.data())?;
    let made_at = now();
    if let Some(loss) = snapshot.loss() {
        return Err(BackupError::GoneBack { folder: config.data().to_owned(), loss });
    }
    let check = snapshot.setting(ENCRYPTION_CHECK)?;
    let clock = snapshot.setting(CLOCK_SETTING)?.and_then(|bytes| ClockRecord::from_bytes(&bytes));
    let keys = KeyPlaces::find(config, check.as_deref())?;
    let mut manifest = Manifest {
        written_by: snapshot.program(),
        schema: snapshot.schema(),
        commit: snapshot.commit(),
        clock_trusted: clock.is_none_or(|record| record.would_trust(made_at)),
        waiting: snapshot.pending(made_at)?.waiting,
        ..Manifest::new(made_at, keys)
    };
    let unfinished = Unfinished::make(target)?;
    check_space(target, &unfinished.path, snapshot.bytes()? + SMALL_FILES)?;
    let database = unfinished.path.join(DATABASE);
    let copy_failed = |source| match source {
        CopyError::Full => BackupError::Full { target: target.to_owned() },
        CopyError::Write(source) => BackupError::of_target(target, source),
        source => BackupError::Copy { target: target.to_owned(), source },
    };
    let limits = CopyLimits { log_growth: options.log_growth, free_bytes: config.store.low_space_bytes };
    snapshot.copy_to(&database, limits, &mut go_on).map_err(copy_failed)?;
    // The server's log can start over from here on.
    drop(snapshot);
    // A server that is started on the copy by hand must not send either.
    let pause = PauseRecord { backup_made_at: made_at }.to_bytes();
    if manifest.schema > 0 {
        finish_copy(&database, &[(PAUSE_SETTING, &pause)]).map_err(copy_failed)?;
    }
    let problems = Snapshot::of_copy(&database)?.problems(false)?;
    if !problems.is_empty() {
        return Err(BackupError::Damaged { problems });
    }
    manifest.files.push(ListedFile::read(&unfinished.path, DATABASE).map_err(failed)?);
    for name in manifest.keys.clone().files() {
        let (from, to) = (config.data().join(name), unfinished.path.join(name));
        manifest.files.push(ListedFile::copy(name, &from, &to).map_err(failed)?);
    }
    let bytes = manifest.bytes();
    if !go_on(CopyProgress { copied: bytes, of: bytes }) {
        return Err(copy_failed(CopyError::Stopped));
    }
    manifest.write(&unfinished.path).map_err(failed)?;
    unfinished.finish(target)?;
    Ok(Made { manifest, target: target.to_owned() })
}

fn check_target(data: &Path, target: &Path) -> Result<(), BackupError> {
    let failed = |source| BackupError::of_target(target, source);
    if target.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { target: target.to_owned() });
    }
    let parent = parent(target).canonicalize().map_err(failed)?;
    let data = data.canonicalize().map_err(failed)?;
    if parent.starts_with(data) {
        return Err(BackupError::Inside { target: target.to_owned() });
    }
    Ok(())
}

fn check_space(target: &Path, folder: &Path, needed: u64) -> Result<(), BackupError> {
    // A disk that does not say is tried.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < needed {
        return Err(BackupError::NoSpace { target: target.to_owned(), needed, free });
    }
    Ok(())
}

fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file in the folder of a backup that is not finished.
const MARK: &str = ".aldaba-unfinished-backup";

/// The folder of a backup that is not finished. Dropped, it is removed with all that is in it.
struct Unfinished {
    /// Empty: it has the name of the backup now.
    path: PathBuf,
    /// Locked: another process removes what nobody works on.
    _lock: File,
}

impl Unfinished {
    fn make(target: &Path) -> Result<Self, BackupError> {
        let failed = |source| BackupError::of_target(target, source);
        let name = target.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut unfinished = name.to_owned();
        unfinished.push(".unfinished");
        let path = parent(target).join(unfinished);
        for _ in 0..TRIES {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let lock = File::open(&path).map_err(failed)?;
                    if lock.try_lock().is_err() {
                        break;
                    }
                    File::create_new(path.join(MARK)).map_err(failed)?;
                    return Ok(Self { path, _lock: lock });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            if !is_of_a_backup(&path).map_err(failed)? {
                return Err(BackupError::Foreign { folder: path });
            }
            let lock = File::open(&path).map_err(failed)?;
            if lock.try_lock().is_err() {
                break;
            }
            // What a backup has left that was killed.
            std::fs::remove_dir_all(&path).map_err(failed)?;
        }
        Err(BackupError::InUse { target: target.to_owned() })
    }

    /// Gives the backup its name.
    fn finish(mut self, target: &Path) -> Result<(), BackupError> {
        let failed = |source| BackupError::of_target(target, source);
        std::fs::remove_file(self.path.join(MARK)).map_err(failed)?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                return Err(BackupError::Exists { target: target.to_owned() });
            }
            // Some network file systems cannot refuse to replace. An empty folder is all that could be replaced.
            Err(Errno::INVAL | Errno::NOSYS) => std::fs::rename(&self.path, target).map_err(failed)?,
            Err(error) => return Err(failed(error.into())),
        }
        // Somebody else may use the name from here on.
        self.path = PathBuf::new();
        File::open(parent(target)).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// Whether a folder is what a backup has left: only that is removed. A folder of somebody else, or a link, is not.
fn is_of_a_backup(path: &Path) -> io::Result<bool> {
    let folder = path.symlink_metadata()?;
    if !folder.is_dir() || folder.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    let mut is_empty = true;
    for entry in std::fs::read_dir(path)? {
        if entry?.file_name() == MARK {
            return Ok(true);
        }
        is_empty = false;
    }
    // One that was killed before it could mark its folder.
    Ok(is_empty && folder.mode() & 0o777 == 0o700)
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
