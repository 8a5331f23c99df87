use crate::StoreOptions;
use std::path::PathBuf;

/// How a [`SqliteStore`](super::SqliteStore) is opened. Everything that can grow has a limit here.
#[derive(Clone, Debug)]
pub struct Options {
    /// What every store is told.
    pub store: StoreOptions,
    /// Operations in one commit; a single call with more is still one commit.
    pub batch_operations: usize,
    /// Bytes in one commit; a single call with more is still one commit.
    pub batch_bytes: usize,
    /// Pages in the write-ahead log that are not in the database file yet, before they are copied
    /// over. Commits wait for that, and most of its time is not the pages: a page is in the log as
    /// often as it was changed and is copied once.
    pub checkpoint_pages: u32,
    /// Pages in the write-ahead log before the writer waits for readers in order to start it over.
    pub longest_log_pages: u32,
    /// Pages of 4 KiB that the database file may have; `None`: as many as the disk can hold. Beyond:
    /// [`Error::Full`](crate::Error::Full).
    pub largest_file_pages: Option<u32>,
}

impl Options {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::of(StoreOptions::new(folder))
    }

    /// SQLite's own limits beside what every store is told.
    pub fn of(store: StoreOptions) -> Self {
        Self {
            store,
            batch_operations: 128,
            batch_bytes: 8 << 20,
            checkpoint_pages: 16_384,
            longest_log_pages: 65_536,
            largest_file_pages: None,
        }
    }
}
