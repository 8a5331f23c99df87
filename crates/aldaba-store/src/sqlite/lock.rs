use super::{OpenError, files};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How often the lock is looked for again when a start that failed has just removed it.
const MAX_TRIES: usize = 16;
/// How often, and after which time, it is tried again where it is held: somebody may only have looked.
pub(super) const MAX_POLLS: usize = 3;
pub(super) const POLL_DELAY: Duration = Duration::from_millis(10);

/// Keeps every other process, and every other store in this one, out of the data folder. It ends
/// with the value or with the process, however that dies.
#[derive(Debug)]
pub(super) struct FolderLock(#[expect(dead_code, reason = "held, never read")] File);

impl FolderLock {
    pub(super) fn take(folder: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let path = folder.join(files::LOCK);
        let mut polls = 0;
        for _ in 0..MAX_TRIES {
            let file = files::open_private(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path).map_err(failed)? => return Ok(Self(file)),
                // A start that failed has removed it in between. The next process would make another one.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if polls < MAX_POLLS => {
                    polls += 1;
                    std::thread::sleep(POLL_DELAY);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(OpenError::Locked { folder: folder.to_owned() });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        Err(OpenError::Locked { folder: folder.to_owned() })
    }

    /// Whether another process holds the folder. Takes nothing but for a moment, and makes nothing.
    pub(super) fn is_held(folder: &Path) -> io::Result<bool> {
        is_locked(&folder.join(files::LOCK))
    }
}

/// Whether another process holds a lock on a file. The lock that this takes for a moment is shared by all who look.
pub(super) fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
