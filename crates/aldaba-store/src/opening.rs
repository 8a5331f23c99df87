//! The way to a running store. Only this file chooses a backend and names it.

use crate::operations::Monotonic;
use crate::sqlite;
use crate::{OpenError, Store};
use aldaba_delivery::Timestamp;
use aldaba_delivery::alert::AlertRules;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a store is and how much it may take, for every backend. Everything that can grow has a limit here.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The data folder; made when it is missing.
    pub folder: PathBuf,
    /// Open a database that has gone back or is missing with what there is.
    pub accept_older_data: bool,
    /// Operations that may wait for the writer. Beyond: [`Error::Busy`](crate::Error::Busy).
    pub queue_operations: usize,
    /// Bytes of payload and the like that may wait for the writer. Beyond: `Busy`.
    pub queue_bytes: usize,
    /// How long an event or a command may have to wait for the writer. Beyond: `Busy`. Results are never refused.
    pub queue_wait: Duration,
    /// What waiting is measured by.
    pub clock: Monotonic,
    /// Reads at once.
    pub readers: usize,
    /// Reads that may wait for others. Beyond: `Busy`.
    pub queue_reads: usize,
    /// How long one read may take. Beyond: [`Error::Timeout`](crate::Error::Timeout).
    pub read_limit: Duration,
    /// Beyond: [`Changed::TooMany`](crate::Changed::TooMany).
    pub endpoints_per_application: usize,
    /// An endpoint with more failures in a row has an alert; `None`: none has one.
    pub endpoint_failures: Option<u32>,
    /// Free bytes on the disk below which no more events are accepted: [`Error::Full`](crate::Error::Full). Results are
    /// still written.
    pub low_space_bytes: u64,
    /// The size of a file that is given up when the mark is reached, to write results with.
    pub reserve_bytes: u64,
}

impl StoreOptions {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            accept_older_data: false,
            queue_operations: 65_536,
            queue_bytes: 64 << 20,
            queue_wait: Duration::from_millis(500),
            clock: Monotonic::default(),
            readers: 4,
            queue_reads: 4096,
            read_limit: Duration::from_secs(1),
            endpoints_per_application: 10_000,
            endpoint_failures: AlertRules::default().endpoint_failures(),
            low_space_bytes: 256 << 20,
            reserve_bytes: 64 << 20,
        }
    }
}

/// Whether there is a database.
pub fn has_database(folder: &Path) -> io::Result<bool> {
    sqlite::has_database(folder)
}

/// Opens a store, and brings its database to the present schema.
pub fn open(options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Opening::begin(options)?.finish()
}

/// A store that nobody else can open meanwhile, looked at and not changed yet. Dropped, it leaves everything as it was.
#[derive(Debug)]
pub struct Opening(sqlite::Opening);

impl Opening {
    /// Refuses a database that this version cannot use or that has gone back.
    pub fn begin(options: &StoreOptions) -> Result<Self, OpenError> {
        sqlite::Opening::begin(&sqlite::Options::of(options.clone())).map(Self)
    }

    /// Whether there is no database yet.
    pub fn is_new(&self) -> bool {
        self.0.is_new()
    }

    /// A setting of the database as it is before it is changed.
    pub fn setting(&self, name: &str) -> Result<Option<Vec<u8>>, OpenError> {
        self.0.setting(name)
    }

    /// When something last happened, by the clock of that time.
    pub fn newest_moment(&self) -> Result<Option<Timestamp>, OpenError> {
        self.0.newest_moment()
    }

    /// Brings the database to the present schema and starts the store.
    pub fn finish(self) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(self.0.finish()?))
    }
}
