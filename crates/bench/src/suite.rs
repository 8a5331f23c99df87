//! What every case uses: scale and rounds, the runtime of the load, servers and folders.

use crate::Result;
use crate::api::Api;
use crate::background::{free_address, runtime};
use crate::receiver::Receiver;
use crate::report::Sheet;
use crate::server::Launch;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct Suite {
    binary: PathBuf,
    rounds: usize,
    scale: f64,
    folder: TempDir,
    /// Runs the load, on the thread that waits for it.
    pub(crate) load: Runtime,
}

impl Suite {
    pub(crate) fn new(binary: PathBuf, rounds: usize, scale: f64) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("aldaba-bench-").tempdir()?;
        Ok(Self { binary, rounds, scale, folder, load: runtime()? })
    }

    /// The parent folder of everything that is written to disk.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A count at the scale of this run.
    pub(crate) fn count(&self, full: usize, least: usize) -> usize {
        ((full as f64 * self.scale).round() as usize).max(least)
    }

    /// A duration at the scale of this run.
    pub(crate) fn seconds(&self, full: f64, least: f64) -> f64 {
        (full * self.scale).max(least)
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// The number of rounds, limited for cases that vary little or take long.
    pub(crate) fn rounds_up_to(&self, most: usize) -> usize {
        self.rounds.min(most)
    }

    /// Prints a line on standard error after every round.
    pub(crate) fn progress(&self, case: &str, round: usize, sheet: &Sheet) {
        eprintln!("{case}: round {}: {}", round + 1, sheet.latest());
    }

    pub(crate) fn say(&self, case: &str, what: &str) {
        eprintln!("{case}: {what}");
    }

    pub(crate) fn receiver(&self) -> Result<Receiver> {
        Ok(Receiver::start(free_address()?)?)
    }

    pub(crate) fn launch(&self, data: &TempDir) -> Launch {
        Launch::new(&self.binary, data.path())
    }

    pub(crate) fn empty_folder(&self) -> Result<TempDir> {
        Ok(tempfile::tempdir_in(&self.folder)?)
    }

    /// Starts a server on a folder, fills it, and stops the server so that everything is in the database file. Deliveries
    /// that were in flight then count as not sent.
    pub(crate) fn fill(&self, data: &TempDir, fill: impl AsyncFnOnce(&Api) -> Result<()>) -> Result<()> {
        self.fill_with(self.launch(data), fill)
    }

    /// The same with another launch of the server.
    pub(crate) fn fill_with(&self, launch: Launch, fill: impl AsyncFnOnce(&Api) -> Result<()>) -> Result<()> {
        let server = launch.with("ALDABA_SHUTDOWN_SECONDS", 0).start()?;
        self.load.block_on(fill(server.api()?))?;
        server.stop()
    }

    /// Copies a folder that no server uses, and syncs the copy: its writes must not disturb the measurement.
    pub(crate) fn copy(&self, of: &TempDir) -> Result<TempDir> {
        let copy = self.empty_folder()?;
        for entry in fs::read_dir(of)? {
            let entry = entry?;
            let target = copy.path().join(entry.file_name());
            fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
        Ok(copy)
    }
}

/// The two sides of a comparison. Rounds alternate which comes first, so that drift in a run (heat, other tenants of the
/// machine) affects both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

pub(crate) fn alternating(round: usize) -> [Side; 2] {
    if round.is_multiple_of(2) { [Side::A, Side::B] } else { [Side::B, Side::A] }
}
