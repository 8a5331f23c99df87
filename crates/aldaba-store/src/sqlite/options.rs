use super::Monotonic;
use crate::StoreOptions;
use std::path::PathBuf;
use std::time::Duration;

/// How a [`SqliteStore`](super::SqliteStore) is opened. Everything that can grow has a limit here.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data folder; made when it is missing.
    pub folder: PathBuf,
    /// Open a database that has gone back behind the watermark beside it, or is missing, with what there is.
    pub accept_older_data: bool,
    /// Operations that may wait for the writer. Beyond: [`Error::Busy`](crate::Error::Busy).
    pub queue_operations: usize,
    /// Bytes of payload and the like that may wait for the writer. Beyond: `Busy`.
    pub queue_bytes: usize,
    /// How long an event or a command may have to wait for the writer. Beyond: `Busy`. Results are never
    /// refused.
    pub queue_wait: Duration,
    /// What waiting is measured by.
    pub clock: Monotonic,
    /// Operations in one commit; a single call with more is still one commit.
    pub batch_operations: usize,
    /// Bytes in one commit; a single call with more is still one commit.
    pub batch_bytes: usize,
    /// Threads that read, each with a connection of its own.
    pub readers: usize,
    /// Reads that may wait for a thread. Beyond: `Busy`.
    pub queue_reads: usize,
    /// How long one read may take. Beyond: [`Error::Timeout`](crate::Error::Timeout).
    pub read_limit: Duration,
    /// Beyond: [`Changed::TooMany`](crate::Changed::TooMany).
    pub endpoints_per_application: usize,
    /// Pages in the write-ahead log that are not in the database file yet, before they are copied
    /// over. Commits wait for that, and most of its time is not the pages: a page is in the log as
    /// often as it was changed and is copied once.
    pub checkpoint_pages: u32,
    /// Pages in the write-ahead log before the writer waits for readers in order to start it over.
    pub longest_log_pages: u32,
    /// Pages of 4 KiB that the database file may have; `None`: as many as the disk can hold. Beyond:
    /// [`Error::Full`](crate::Error::Full).
    pub largest_file_pages: Option<u32>,
    /// Free bytes on the disk below which no more events are accepted:
    /// [`Error::Full`](crate::Error::Full). Results are still written.
    pub low_space_bytes: u64,
    /// The size of a file that is given up when the mark is reached, to write results with.
    pub reserve_bytes: u64,
}

impl Options {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::of(StoreOptions::new(folder))
    }

    /// What every store is told, with SQLite's own limits beside it.
    pub fn of(options: StoreOptions) -> Self {
        // All of them are named, so that a new one cannot be forgotten here.
        let StoreOptions {
            folder,
            accept_older_data,
            queue_operations,
            queue_bytes,
            queue_wait,
            clock,
            readers,
            queue_reads,
            read_limit,
            endpoints_per_application,
            low_space_bytes,
            reserve_bytes,
        } = options;
        Self {
            folder,
            accept_older_data,
            queue_operations,
            queue_bytes,
            queue_wait,
            clock,
            batch_operations: 128,
            batch_bytes: 8 << 20,
            readers,
            queue_reads,
            read_limit,
            endpoints_per_application,
            checkpoint_pages: 16_384,
            longest_log_pages: 65_536,
            largest_file_pages: None,
            low_space_bytes,
            reserve_bytes,
        }
    }
}
