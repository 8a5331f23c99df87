use super::OpenError;
use std::fs::{File, TryLockError};
use std::path::Path;

const LOCK_FILE: &str = "aldaba.lock";

/// Keeps every other process, and every other store in this one, out of the data folder. It ends
/// with the value or with the process, however that dies.
#[derive(Debug)]
pub(super) struct FolderLock(#[expect(dead_code, reason = "held, never read")] File);

impl FolderLock {
    pub(super) fn take(folder: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(LOCK_FILE))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { folder: folder.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
