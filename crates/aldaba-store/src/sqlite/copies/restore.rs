//! Makes a data folder of a copy. Everything is prepared in a folder within it and gets its place at the end, the database last:
//! a restore that is ended midway leaves nothing that looks whole.

use super::copy::{CopyError, alone};
use crate::sqlite::files::{self, NewFiles};
use crate::sqlite::lock::FolderLock;
use crate::sqlite::watermark::{Mark, Watermark};
use crate::sqlite::{OpenError, commits};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a new disk has by itself.
const OF_THE_FILE_SYSTEM: &str = "lost+found";
/// Names that an error lists at most.
const MAX_NAMES: usize = 3;
/// What a restore gives its place: no server starts on these while the folder of the restore is beside them.
const PLACED: [&str; 4] = ["encryption.key", "jwt.secret", files::WATERMARK, files::DATABASE];
/// How many numbers may have been given in each millisecond since the copy was made.
const NUMBERS_PER_MILLISECOND: u64 = 100;
/// How many may have been given besides, whatever the clocks say.
const MORE_NUMBERS: u64 = 1_000_000_000;

#[derive(Debug, thiserror::Error)]
pub enum RestoringError {
    #[error(
        "a server uses {}: stop it, and move its folder away first, or restore into another folder. Nothing was changed",
        folder.display()
    )]
    Running { folder: PathBuf },
    #[error(
        "{} is not empty: it has {names}. Restore into a new folder, or move this one away first: mv {} {}.before. \
         Nothing was changed",
        folder.display(), folder.display(), folder.display()
    )]
    NotEmpty { folder: PathBuf, names: String },
    #[error("cannot write to {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("the database of the backup cannot be used: {0}")]
    Database(String),
}

/// A folder that is being restored: locked, and empty for everybody else. Dropped, it leaves the folder as it was.
#[derive(Debug)]
pub struct Restoring {
    folder: PathBuf,
    staging: Staging,
    new_files: NewFiles,
    _lock: FolderLock,
}

/// The folder in which everything is prepared, removed with all that is in it when it is dropped.
#[derive(Debug)]
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The number of the last commit in the copy.
    pub commit: u64,
}

impl Restoring {
    /// Takes an empty folder, or makes one.
    pub fn begin(folder: &Path) -> Result<Self, RestoringError> {
        let failed = |source| RestoringError::Folder { folder: folder.to_owned(), source };
        if folder.exists() {
            if FolderLock::is_held(folder).map_err(failed)? {
                return Err(RestoringError::Running { folder: folder.to_owned() });
            }
            check_empty(folder, false)?;
        }
        let mut new_files = NewFiles::default();
        new_files.make_folder(folder).map_err(failed)?;
        new_files.watch(folder.join(files::LOCK));
        let lock = FolderLock::take(folder).map_err(|error| match error {
            OpenError::Folder { source, .. } => failed(source),
            _ => RestoringError::Running { folder: folder.to_owned() },
        })?;
        // Another restore may have ended since.
        check_empty(folder, true)?;
        let staging = Staging(folder.join(files::RESTORING));
        remove_leftovers(folder, &staging.0).map_err(failed)?;
        DirBuilder::new().mode(0o700).create(&staging.0).map_err(failed)?;
        Ok(Self { folder: folder.to_owned(), staging, new_files, _lock: lock })
    }

    /// Where a file of the folder is prepared. It must be on disk before [`finish`](Self::finish).
    pub fn path(&self, name: &str) -> PathBuf {
        self.staging.0.join(name)
    }

    /// The file of the database.
    pub fn database(&self) -> PathBuf {
        self.path(files::DATABASE)
    }

    /// Gives the folder its files. `since`: how long ago the copy was made.
    ///
    /// Deliveries were numbered after the copy was made, and the ids that callers have of them are made of these numbers. So
    /// the numbers of the new folder begin far beyond those that can have been given, and a later restore of the same copy begins
    /// beyond those of an earlier one.
    pub fn finish(mut self, settings: &[(&str, &[u8])], since: Duration) -> Result<Restored, RestoringError> {
        let folder = self.folder.clone();
        let failed = |source| RestoringError::Folder { folder: folder.clone(), source };
        let unusable = |error: CopyError| RestoringError::Database(error.to_string());
        let database = self.database();
        super::copy::finish_copy(&database, settings).map_err(unusable)?;
        let commit = prepare(&database, since).map_err(unusable)?;
        File::open(&database).and_then(|file| file.sync_all()).map_err(failed)?;
        let _ = Watermark::set(&self.path(files::WATERMARK), Mark { committed: commit, in_file: commit });
        files::sync_folder_of(&database).map_err(failed)?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.staging.0).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        // The database last: without it the folder is none of a server.
        names.sort_by_key(|name| name == files::DATABASE);
        for name in &names {
            let place = folder.join(name);
            self.new_files.watch(place.clone());
            std::fs::rename(self.staging.0.join(name), &place).map_err(failed)?;
        }
        std::fs::remove_dir(&self.staging.0).map_err(failed)?;
        files::sync_folder_of(&folder.join(files::DATABASE)).map_err(failed)?;
        self.new_files.keep();
        Ok(Restored { commit })
    }
}

/// Removes what an earlier restore has left that was ended midway.
fn remove_leftovers(folder: &Path, staging: &Path) -> io::Result<()> {
    if !staging.exists() {
        return Ok(());
    }
    for name in PLACED {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::remove_dir_all(staging)
}

/// `is_locked`: the lock is this restore's.
fn check_empty(folder: &Path, is_locked: bool) -> Result<(), RestoringError> {
    let failed = |source| RestoringError::Folder { folder: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    // A restore that was ended midway leaves these two together; one alone is of somebody else.
    let was_ended = has(files::LOCK) && has(files::RESTORING);
    names.retain(|name| {
        let name = name.as_str();
        let is_left = name == files::LOCK || name == files::RESTORING || PLACED.contains(&name);
        name != OF_THE_FILE_SYSTEM && !(was_ended && is_left) && !(is_locked && name == files::LOCK)
    });
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    let mut listed = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        listed = format!("{listed} and {} more", names.len() - MAX_NAMES);
    }
    Err(RestoringError::NotEmpty { folder: folder.to_owned(), names: listed })
}

/// Begins new numbers, and returns that of the last commit.
fn prepare(database: &Path, since: Duration) -> Result<u64, CopyError> {
    let connection = alone(database)?;
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let skipped = millis.saturating_mul(NUMBERS_PER_MILLISECOND).saturating_add(MORE_NUMBERS);
    let skipped = i64::try_from(skipped).unwrap_or(i64::MAX / 2);
    let changed =
        connection.execute("UPDATE total SET value = value + ?1 WHERE name = 'numbers'", (skipped,))?;
    if changed == 0 {
        // Of a former schema, in which SQLite numbered.
        connection.execute(
            "UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name IN ('delivery', 'notice')",
            (skipped,),
        )?;
    }
    Ok(commits::last(&connection)?)
}
