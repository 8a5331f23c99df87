//! Room on the disk: when it runs low, no more is taken in, so that what was accepted can still be
//! delivered and its results written. A reserve file is given up at that moment.

use super::files;
use super::threads::Threads;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the disk is looked at.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// After so many looks above the mark messages are accepted again, also without room for the reserve.
const RESUME_LOOKS: u32 = 10;

/// When room is low, and what is kept for that case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// Below so many free bytes nothing more is accepted.
    pub(super) low: u64,
    /// The size of the reserve file.
    pub(super) reserve: u64,
}

impl Marks {
    /// Whether room is low now. `looks_above`: how many looks in a row, this one included, have found as many
    /// bytes as the mark. Room stays low until the reserve fits again on top of the mark, so that making the
    /// reserve does not bring it back; a disk that is too small for that waits for a while instead, so that
    /// accepting does not begin and end every second.
    fn is_low(self, available: u64, was_low: bool, looks_above: u32) -> bool {
        if !was_low {
            return available < self.low;
        }
        looks_above < RESUME_LOOKS && !self.fits_reserve(available)
    }

    /// Whether the reserve can be made without coming below the mark by that.
    fn fits_reserve(self, available: u64) -> bool {
        available >= self.low.saturating_add(self.reserve)
    }
}

/// Watches the disk of a folder.
#[derive(Debug)]
pub(super) struct Space {
    low: Arc<AtomicBool>,
    /// Free bytes by the last look; the largest number if they are not known.
    available: Arc<AtomicU64>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Space {
    pub(super) fn watch(folder: &Path, marks: Marks, threads: &Threads) -> io::Result<Self> {
        let mut disk = Disk::new(folder, marks);
        // The first look comes before the first event.
        let low = Arc::new(AtomicBool::new(disk.look(false)));
        let available = disk.available.clone();
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = threads.spawn("store-disk-space", "aldaba-space".into(), {
            let (low, stop) = (low.clone(), stop.clone());
            move || {
                while !stopped_within(&stop, CHECK_INTERVAL) {
                    low.store(disk.look(low.load(Ordering::Relaxed)), Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self { low, available, stop, thread: Some(thread) })
    }

    pub(super) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Free bytes, a second old at most. `None`: the disk does not say.
    pub(super) fn available(&self) -> Option<u64> {
        Some(self.available.load(Ordering::Relaxed)).filter(|bytes| *bytes < u64::MAX)
    }

    /// Looks no more, and waits for nobody.
    pub(super) fn stop(&self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
    }
}

/// Waits, and says whether it is time to end. The lock is free again when the disk is looked at: that
/// can take long on one that fails, and a stop must not wait for it.
fn stopped_within((stopped, changed): &(Mutex<bool>, Condvar), wait: Duration) -> bool {
    let mut stopped = stopped.lock();
    if !*stopped {
        changed.wait_for(&mut stopped, wait);
    }
    *stopped
}

impl Drop for Space {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Disk {
    folder: PathBuf,
    marks: Marks,
    /// The reserve could not be made. It is not tried again before room has been low.
    without_reserve: bool,
    /// Looks in a row that have found as many free bytes as the mark.
    looks_above: u32,
    available: Arc<AtomicU64>,
}

impl Disk {
    fn new(folder: &Path, marks: Marks) -> Self {
        Self {
            folder: folder.to_owned(),
            marks,
            without_reserve: false,
            looks_above: 0,
            available: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Looks once and does what follows; returns whether room is low.
    fn look(&mut self, was_low: bool) -> bool {
        let available = match rustix::fs::statvfs(&self.folder) {
            Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
            Err(error) => {
                tracing::warn!(%error, "cannot tell how much room the disk has");
                return was_low;
            }
        };
        self.available.store(available, Ordering::Relaxed);
        let low = self.is_low(available, was_low);
        if low && !was_low {
            tracing::error!(
                available,
                mark = self.marks.low,
                "room on the disk is low: no more messages are accepted; free some space"
            );
        } else if was_low && !low {
            let reserve = self.marks.fits_reserve(available);
            tracing::info!(available, reserve, "there is room on the disk again: messages are accepted");
        }
        let kept = if low { self.give_up_reserve() } else { self.keep_reserve(available) };
        match kept {
            Ok(()) => self.without_reserve &= !low,
            Err(error) if !self.without_reserve => {
                self.without_reserve = true;
                tracing::warn!(%error, "cannot change the reserve file");
            }
            Err(_) => {}
        }
        low
    }

    fn is_low(&mut self, available: u64, was_low: bool) -> bool {
        self.looks_above = if available < self.marks.low { 0 } else { self.looks_above.saturating_add(1) };
        self.marks.is_low(available, was_low, self.looks_above)
    }

    fn give_up_reserve(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.join(files::RESERVE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn keep_reserve(&self, available: u64) -> io::Result<()> {
        let path = self.folder.join(files::RESERVE);
        match path.metadata() {
            Ok(file) if file.len() == self.marks.reserve => return Ok(()),
            // Of another size: a crash while it was made, or another setting. Its room counts at the
            // next look.
            Ok(_) => return self.give_up_reserve(),
            Err(_) => {}
        }
        if self.marks.reserve == 0 || self.without_reserve || !self.marks.fits_reserve(available) {
            return Ok(());
        }
        let file = files::open_private(&path)?;
        let made = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.marks.reserve);
        if made.is_err() {
            // What it has got of the disk would be missing elsewhere.
            self.give_up_reserve()?;
        }
        Ok(made?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MARKS: Marks = Marks { low: 256 * MIB, reserve: 64 * MIB };

    #[test]
    fn room_is_low_below_the_mark_and_until_the_reserve_fits_again() {
        assert!(!MARKS.is_low(256 * MIB, false, 1));
        assert!(MARKS.is_low(256 * MIB - 1, false, 0));
        assert!(MARKS.is_low(319 * MIB, true, 1));
        assert!(!MARKS.is_low(320 * MIB, true, 1));
    }

    #[test]
    fn a_disk_too_small_for_the_reserve_resumes_after_a_while_above_the_mark() {
        let mut disk = Disk::new(Path::new("/nowhere"), MARKS);
        assert!(disk.is_low(255 * MIB, false));
        for _ in 1..RESUME_LOOKS {
            assert!(disk.is_low(300 * MIB, true));
        }
        assert!(!disk.is_low(300 * MIB, true));
        assert!(!disk.is_low(256 * MIB, false), "and goes on");
        assert!(disk.is_low(256 * MIB - 1, false));
        // A moment below the mark begins the wait anew.
        for _ in 1..RESUME_LOOKS {
            assert!(disk.is_low(300 * MIB, true));
        }
        assert!(disk.is_low(255 * MIB, true));
        assert!(disk.is_low(300 * MIB, true));
    }

    #[test]
    fn making_the_reserve_never_brings_room_below_the_mark() {
        for available in [0, 256 * MIB, 320 * MIB - 1, 320 * MIB, u64::MAX] {
            let made = MARKS.fits_reserve(available);
            assert_eq!(made, available >= 320 * MIB, "{available}");
            assert!(!made || !MARKS.is_low(available - MARKS.reserve, false, 1), "{available}");
        }
    }

    #[test]
    fn the_reserve_is_kept_while_there_is_room_and_given_up_when_it_is_low() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = folder.path().join(files::RESERVE);
        let mut roomy = Disk::new(folder.path(), Marks { low: 0, reserve: MIB });
        assert!(!roomy.look(false));
        assert_eq!(reserve.metadata().unwrap().len(), MIB);
        let mut cramped = Disk::new(folder.path(), Marks { low: u64::MAX, reserve: MIB });
        assert!(cramped.look(false));
        assert!(!reserve.exists());
    }

    #[test]
    fn a_first_start_with_room_between_mark_and_reserve_accepts_without_a_reserve() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(folder.path(), Marks { low: 1, reserve: u64::MAX - 1 });
        assert!(!disk.look(false));
        assert!(!folder.path().join(files::RESERVE).exists());
        assert!(!disk.look(false), "and stays so");
    }

    #[test]
    fn a_reserve_that_cannot_be_made_leaves_no_file_and_is_not_tried_every_second() {
        let folder = tempfile::tempdir().unwrap();
        // More than any file may have.
        let mut disk = Disk::new(folder.path(), Marks { low: 0, reserve: u64::MAX });
        disk.keep_reserve(u64::MAX).unwrap_err();
        assert!(!folder.path().join(files::RESERVE).exists());
        disk.without_reserve = true;
        disk.keep_reserve(u64::MAX).unwrap();
    }

    #[test]
    fn a_reserve_of_another_size_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = folder.path().join(files::RESERVE);
        std::fs::write(&reserve, "half").unwrap();
        let mut disk = Disk::new(folder.path(), Marks { low: 0, reserve: MIB });
        disk.look(false);
        disk.look(false);
        assert_eq!(reserve.metadata().unwrap().len(), MIB);
    }

    #[test]
    fn a_stop_of_the_watch_does_not_wait_for_the_next_look() {
        let stop = (Mutex::new(true), Condvar::new());
        assert!(stopped_within(&stop, Duration::MAX));
        assert!(!stop.0.is_locked());
    }
}
