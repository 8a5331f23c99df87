//! What the server uses, read again and again while the load runs.

use crate::Result;
use crate::clock::{self, Nanos, SECOND, seconds};
use parking_lot::{Condvar, Mutex};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What is measured, in the order of the table.
pub(super) const SERIES: [&str; 5] = ["memory", "descriptors", "threads", "log", "disk"];

/// The values at one moment, in the order of [`SERIES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Seconds since the begin of the load.
    pub(super) at: f64,
    pub(super) values: [f64; SERIES.len()],
}

/// Reads the values on a thread of its own.
pub(super) struct Sampler {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: JoinHandle<Result<Vec<Sample>>>,
}

impl Sampler {
    pub(super) fn start(pid: u32, folder: &Path, minutes: f64) -> Result<Self> {
        let stop = Arc::<(Mutex<bool>, Condvar)>::default();
        let (shared, folder, begin) = (Arc::clone(&stop), folder.to_owned(), clock::now());
        let interval = interval(minutes);
        let work = move || sample(pid, &folder, begin, interval, &shared);
        Ok(Self { stop, thread: std::thread::Builder::new().name("sampler".into()).spawn(work)? })
    }

    /// All samples so far.
    pub(super) fn stop(self) -> Result<Vec<Sample>> {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        self.thread.join().map_err(|_| "the sampler has panicked")?
    }
}

/// Some hundred samples in a long run, one a second in a short one.
fn interval(minutes: f64) -> Duration {
    if minutes < 5.0 { Duration::from_secs(1) } else { Duration::from_secs(5) }
}

fn sample(
    pid: u32,
    folder: &Path,
    begin: Nanos,
    interval: Duration,
    stop: &(Mutex<bool>, Condvar),
) -> Result<Vec<Sample>> {
    let (mut samples, mut told) = (Vec::new(), 0);
    loop {
        let at = clock::now() - begin;
        let values = values(pid, folder)?;
        samples.push(Sample { at: seconds(at), values });
        if at / (60 * SECOND) > told {
            told = at / (60 * SECOND);
            eprintln!("soak: minute {told}: {}", line(&values));
        }
        let mut stopped = stop.0.lock();
        if !*stopped {
            stop.1.wait_for(&mut stopped, interval);
        }
        if *stopped {
            return Ok(samples);
        }
    }
}

fn line(values: &[f64]) -> String {
    let pairs = SERIES.iter().zip(values);
    let cells: Vec<_> =
        pairs.map(|(name, value)| format!("{name} {}", super::verdict::readable(name, *value))).collect();
    cells.join(", ")
}

fn values(pid: u32, folder: &Path) -> Result<[f64; SERIES.len()]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> Result<f64> {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such field in status")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64;
    let (log, disk) = files(folder)?;
    Ok([field("VmRSS:")? * 1024.0, descriptors, field("Threads:")?, log, disk])
}

/// The bytes of the write-ahead log, and of all other files but the reserve, whose size is a setting.
fn files(folder: &Path) -> Result<(f64, f64)> {
    let (mut log, mut disk) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        // A file may have gone meanwhile.
        let Ok(found) = path.metadata() else { continue };
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("db-wal") => log += found.len(),
            Some("reserve" | "db-shm") => {}
            _ => disk += found.len(),
        }
    }
    Ok((log as f64, disk as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_process_and_its_folder_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("aldaba.db", 7), ("aldaba.watermark", 2), ("aldaba.db-wal", 5), ("aldaba.reserve", 100)]
        {
            fs::write(folder.path().join(name), vec![0; bytes]).unwrap();
        }
        let [memory, descriptors, threads, log, disk] = values(std::process::id(), folder.path()).unwrap();
        assert!(memory > 1e6 && descriptors >= 3.0 && threads >= 1.0, "{memory} {descriptors} {threads}");
        assert_eq!((log, disk), (5.0, 9.0));
    }

    #[test]
    fn a_sampler_ends_when_it_is_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let sampler = Sampler::start(std::process::id(), folder.path(), 60.0).unwrap();
        assert_eq!(sampler.stop().unwrap().len(), 1);
    }
}
