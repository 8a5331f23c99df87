//! Room on the disk: when it runs low, no more is taken in, so that what was accepted can still be
//! delivered and its results written. A reserve file is given up at that moment.

use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const RESERVE_FILE: &str = "aldaba.reserve";
/// How often the disk is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// When room is low, and what is kept for that case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// Below so many free bytes nothing more is accepted.
    pub(super) low: u64,
    /// The size of the reserve file.
    pub(super) reserve: u64,
}

impl Marks {
    /// Whether room is low now. It stays low until the reserve fits again on top of the mark, so that
    /// making the reserve does not bring it back.
    fn is_low(self, available: u64, was_low: bool) -> bool {
        available < if was_low { self.low.saturating_add(self.reserve) } else { self.low }
    }
}

/// Watches the disk of a folder.
#[derive(Debug)]
pub(super) struct Space {
    low: Arc<AtomicBool>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Space {
    pub(super) fn watch(folder: &Path, marks: Marks) -> io::Result<Self> {
        let disk = Disk { folder: folder.to_owned(), marks };
        // The first look comes before the first event.
        let low = Arc::new(AtomicBool::new(disk.look(false)));
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = std::thread::Builder::new().name("aldaba-space".into()).spawn({
            let (low, stop) = (low.clone(), stop.clone());
            move || {
                let mut stopped = stop.0.lock();
                while !*stopped {
                    stop.1.wait_for(&mut stopped, LOOK);
                    low.store(disk.look(low.load(Ordering::Relaxed)), Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self { low, stop, thread: Some(thread) })
    }

    pub(super) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Disk {
    folder: PathBuf,
    marks: Marks,
}

impl Disk {
    /// Looks once and does what follows; returns whether room is low.
    fn look(&self, was_low: bool) -> bool {
        let available = match rustix::fs::statvfs(&self.folder) {
            Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
            Err(error) => {
                tracing::warn!(%error, "cannot tell how much room the disk has");
                return was_low;
            }
        };
        let low = self.marks.is_low(available, was_low);
        if low && !was_low {
            tracing::error!(
                available,
                mark = self.marks.low,
                "room on the disk is low: no more messages are accepted; free some space"
            );
        } else if was_low && !low {
            tracing::info!(available, "there is room on the disk again: messages are accepted");
        }
        let kept = if low { self.give_up_reserve() } else { self.keep_reserve() };
        if let Err(error) = kept {
            tracing::warn!(%error, "cannot change the reserve file");
        }
        low
    }

    fn give_up_reserve(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.join(RESERVE_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn keep_reserve(&self) -> io::Result<()> {
        let path = self.folder.join(RESERVE_FILE);
        if self.marks.reserve == 0 || path.exists() {
            return Ok(());
        }
        let file = File::create(path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.marks.reserve)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MARKS: Marks = Marks { low: 256 * MIB, reserve: 64 * MIB };

    #[test]
    fn room_is_low_below_the_mark_and_until_the_reserve_fits_again() {
        assert!(!MARKS.is_low(256 * MIB, false));
        assert!(MARKS.is_low(256 * MIB - 1, false));
        assert!(MARKS.is_low(319 * MIB, true));
        assert!(!MARKS.is_low(320 * MIB, true));
    }

    #[test]
    fn the_reserve_is_kept_while_there_is_room_and_given_up_when_it_is_low() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = folder.path().join(RESERVE_FILE);
        let roomy = Disk { folder: folder.path().to_owned(), marks: Marks { low: 0, reserve: MIB } };
        assert!(!roomy.look(false));
        assert_eq!(reserve.metadata().unwrap().len(), MIB);
        let cramped = Disk { marks: Marks { low: u64::MAX, reserve: MIB }, ..roomy };
        assert!(cramped.look(false));
        assert!(!reserve.exists());
    }
}
