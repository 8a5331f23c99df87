//! The files of the data folder: for their owner only, and gone again when a start fails that made them.

use rustix::fs::Access;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(super) const DATABASE: &str = "aldaba.db";
pub(super) const LOG: &str = "aldaba.db-wal";
pub(super) const LOG_INDEX: &str = "aldaba.db-shm";
pub(super) const LOCK: &str = "aldaba.lock";
pub(super) const RESERVE: &str = "aldaba.reserve";
pub(super) const WATERMARK: &str = "aldaba.watermark";
/// Locked while a copy of the database is made.
pub(super) const COPYING: &str = "aldaba.copying";
/// The folder in which a restore prepares the others.
pub(super) const RESTORING: &str = ".restoring";
const ALL: [&str; 7] = [DATABASE, LOG, LOG_INDEX, LOCK, RESERVE, WATERMARK, COPYING];

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Everybody but the owner.
const OTHERS: u32 = 0o077;

/// Whether a folder holds a database. Opens and makes nothing. Fails where this process may not look into the folder, or
/// may not read the database.
pub fn has_database(folder: &Path) -> io::Result<bool> {
    let path = folder.join(DATABASE);
    match path.metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Ok(false),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    // Not by opening it: closing a file drops the locks that this process has on it.
    rustix::fs::access(&path, Access::READ_OK)?;
    Ok(true)
}

/// Opens a file for writing, or makes it, for its owner only whatever the umask is. What it holds stays.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(FILE_MODE).open(path)
}

/// A new name in a folder survives a loss of power only once the folder is synced.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// Takes the rights of others away from files that a former version, or another program, has left open to them.
pub(super) fn close_to_others(folder: &Path) {
    for name in ALL {
        let path = folder.join(name);
        if let Ok(mode) = mode(&path)
            && mode & OTHERS != 0
            && let Err(error) = std::fs::set_permissions(&path, Permissions::from_mode(mode & !OTHERS))
        {
            tracing::warn!(%error, path = %path.display(), "this file is open to others: give it mode 0600");
        }
    }
    if let Ok(mode) = mode(folder)
        && mode & OTHERS != 0
    {
        tracing::warn!(
            folder = %folder.display(),
            mode = format_args!("{mode:04o}"),
            "the data folder is open to others: give it mode 0700 (with systemd: StateDirectoryMode=0700)"
        );
    }
}

fn mode(path: &Path) -> io::Result<u32> {
    Ok(path.metadata()?.permissions().mode() & 0o7777)
}

/// Files and folders that were not there before this start. They are removed when it is dropped, unless they
/// are kept: a start that fails changes nothing.
#[derive(Debug, Default)]
pub(super) struct NewFiles {
    files: Vec<PathBuf>,
    /// The innermost first.
    folders: Vec<PathBuf>,
}

impl NewFiles {
    /// Makes a folder and those around it, for their owner only.
    pub(super) fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let around = folder.ancestors().filter(|path| !path.as_os_str().is_empty());
        let missing: Vec<_> = around.take_while(|path| is_missing(path)).map(Path::to_owned).collect();
        std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
        self.folders = missing;
        for made in self.folders.iter().rev() {
            sync_folder_of(made)?;
        }
        Ok(())
    }

    /// To be called before the file may be made. One that is there already is left alone.
    pub(super) fn watch(&mut self, path: PathBuf) {
        if is_missing(&path) {
            self.files.push(path);
        }
    }

    pub(super) fn keep(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
        for folder in &self.folders {
            // Somebody else may have put something there.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_goes_again_unless_it_is_kept_and_nothing_else_does() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        let make = || {
            let mut new = NewFiles::default();
            new.make_folder(&inner).unwrap();
            new.watch(inner.join("new"));
            new.watch(inner.join("never made"));
            open_private(&inner.join("new")).unwrap();
            new
        };
        drop(make());
        assert!(!outer.path().join("a").exists());
        make().keep();
        assert!(inner.join("new").exists());
        drop(make());
        assert!(inner.join("new").exists(), "it was there before");
        std::fs::remove_dir_all(outer.path().join("a")).unwrap();
        let new = make();
        std::fs::write(inner.join("of somebody else"), "").unwrap();
        drop(new);
        assert!(inner.join("of somebody else").exists() && !inner.join("new").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_is_not_taken_for_one_without_a_database() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_database(folder.path()).unwrap());
        assert!(!has_database(&folder.path().join("missing")).unwrap());
        std::fs::write(folder.path().join(DATABASE), "").unwrap();
        assert!(has_database(folder.path()).unwrap());
        assert!(!has_database(&folder.path().join(DATABASE)).unwrap(), "a file is no folder");
        // A loop stops root too, which no mode of a folder does.
        let loops = folder.path().join("loop");
        std::os::unix::fs::symlink(&loops, &loops).unwrap();
        assert!(has_database(&loops).is_err());
    }

    #[test]
    fn files_are_closed_to_others_and_the_owner_keeps_his_rights() {
        let folder = tempfile::tempdir().unwrap();
        for (name, before, after) in
            [(DATABASE, 0o644, 0o600), (LOG, 0o666, 0o600), (LOCK, 0o400, 0o400), (RESERVE, 0o777, 0o700)]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            close_to_others(folder.path());
            assert_eq!(mode(&path).unwrap(), after, "{name}");
        }
    }
}
