//! The last commit that is known to be on disk, and the last one in the database file itself, written down outside the
//! database.
//!
//! A write-ahead log that was removed, emptied or damaged looks to SQLite like one that was never written: the
//! database goes back to an earlier commit without an error. So does an older database file beside the present log, whose pages
//! hide how old it is. The watermark tells the difference. It is only written after a commit is on disk, or a whole log is
//! copied and the file synced, so it can lag behind the database and can never be ahead of it
//! (docs/adr/0017-a-store-that-has-gone-back-is-refused.md).

use super::files;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: [u8; 8] = *b"aldabaW2";
const SLOT_BYTES: usize = 32;
/// Of former versions, which did not know what is in the database file alone.
const FORMER_MAGIC: [u8; 8] = *b"aldabaW1";
const FORMER_SLOT_BYTES: usize = 24;
/// The slots are written by turns and lie in different blocks of the disk: a torn write damages one of them at most.
const SLOT_OFFSETS: [u64; 2] = [0, 4096];
const FILE_BYTES: u64 = 8192;

#[derive(Debug)]
pub(super) struct Watermark {
    /// `None`: it cannot be written.
    file: Option<File>,
    mark: Mark,
    /// Which slot is written next.
    next_slot: usize,
}

/// What is certain. Each number is true for itself, from whichever slot it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// This commit was on disk.
    pub(super) committed: u64,
    /// This commit was in the database file, without its log.
    pub(super) in_file: u64,
}

/// What a watermark file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredMark {
    /// There is none: a new folder, or one of a former version.
    Nothing,
    /// There is one that cannot be read, as after a loss of power just when it was made.
    Unreadable,
    Mark(Mark),
}

impl Watermark {
    pub(super) fn read(path: &Path) -> io::Result<StoredMark> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredMark::Nothing),
            Err(error) => return Err(error),
        };
        let slots = SLOT_OFFSETS.iter().filter_map(|&offset| decode(bytes.get(offset as usize..)?));
        let newest = slots.reduce(|one, other| Mark {
            committed: one.committed.max(other.committed),
            in_file: one.in_file.max(other.in_file),
        });
        Ok(newest.map_or(StoredMark::Unreadable, StoredMark::Mark))
    }

    /// Makes the file, or overwrites all that it says. Where that fails, on a disk without any room for example,
    /// the store runs without it: what an old one says stays true.
    pub(super) fn set(path: &Path, mark: Mark) -> Self {
        let file = Self::write(path, mark).inspect_err(Self::report).ok();
        Self { file, mark, next_slot: 0 }
    }

    fn write(path: &Path, mark: Mark) -> io::Result<File> {
        let file = files::open_private(path)?;
        file.set_len(FILE_BYTES)?;
        for offset in SLOT_OFFSETS {
            file.write_all_at(&encode(mark), offset)?;
        }
        file.sync_all()?;
        files::sync_folder_of(path)?;
        Ok(file)
    }

    /// One more commit is on disk. The kernel writes this down when it sees fit: no commit waits for it.
    ///
    /// An error says that the file system has given up. ext4 can report a commit as synced that is gone after an
    /// abort of its journal, but it refuses the next write to any file: so this write is also the check that the
    /// commit before it was kept (docs/adr/0018-a-file-system-that-gives-up.md).
    pub(super) fn advance(&mut self) -> io::Result<()> {
        self.mark.committed += 1;
        self.write_slot()
    }

    /// All commits until now are in the database file, which is synced.
    pub(super) fn copied(&mut self) -> io::Result<()> {
        if self.mark.in_file == self.mark.committed {
            return Ok(());
        }
        self.mark.in_file = self.mark.committed;
        self.write_slot()
    }

    fn write_slot(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let offset = SLOT_OFFSETS[self.next_slot];
        self.next_slot = (self.next_slot + 1) % SLOT_OFFSETS.len();
        match file.write_all_at(&encode(self.mark), offset) {
            Err(error) if has_given_up(&error) => Err(error),
            Err(error) => {
                Self::report(&error);
                self.file = None;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Waits until it is on disk.
    pub(super) fn sync(&self) {
        if let Some(Err(error)) = self.file.as_ref().map(File::sync_data) {
            Self::report(&error);
        }
    }

    /// Writes to it end with EIO: nothing is mapped at these addresses of this process.
    #[cfg(test)]
    pub(super) fn on_failed_file_system(mark: Mark) -> Self {
        let file = File::options().write(true).open("/proc/self/mem").expect("it is there on Linux");
        Self { file: Some(file), mark, next_slot: 0 }
    }

    fn report(error: &io::Error) {
        let file = files::WATERMARK;
        tracing::warn!(%error, "cannot write {file}: if commits are lost from here on, nobody notices");
    }
}

/// A full disk is none of these: where a file system never overwrites, even this file may need room.
fn has_given_up(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::IO, Errno::ROFS].iter().any(|errno| Some(errno.raw_os_error()) == code)
}

fn encode(mark: Mark) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&MAGIC);
    slot[8..16].copy_from_slice(&mark.committed.to_le_bytes());
    slot[16..24].copy_from_slice(&mark.in_file.to_le_bytes());
    let sum = checksum(&slot[..24]);
    slot[24..].copy_from_slice(&sum.to_le_bytes());
    slot
}

fn decode(bytes: &[u8]) -> Option<Mark> {
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if bytes.starts_with(&FORMER_MAGIC) {
        let is_whole = number(16)? == checksum(&bytes[..FORMER_SLOT_BYTES - 8]);
        return is_whole.then_some(Mark { committed: number(8)?, in_file: 0 });
    }
    let slot: &[u8; SLOT_BYTES] = bytes.first_chunk()?;
    let mark = Mark { committed: number(8)?, in_file: number(16)? };
    (encode(mark) == *slot).then_some(mark)
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(committed: u64, in_file: u64) -> Mark {
        Mark { committed, in_file }
    }

    #[test]
    fn the_newest_commit_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Nothing);
        let mut watermark = Watermark::set(&path, mark(7, 5));
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Mark(mark(7, 5)));
        for number in 8..30 {
            watermark.advance().unwrap();
            assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Mark(mark(number, 5)));
        }
        watermark.copied().unwrap();
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Mark(mark(29, 29)));
        watermark.advance().unwrap();
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Mark(mark(30, 29)));
        assert_eq!(path.metadata().unwrap().len(), FILE_BYTES);
        Watermark::set(&path, mark(3, 2));
        assert_eq!(
            Watermark::read(&path).unwrap(),
            StoredMark::Mark(mark(3, 2)),
            "neither slot says 29 any more"
        );
    }

    #[test]
    fn a_torn_write_leaves_the_commit_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        let mut watermark = Watermark::set(&path, mark(0xfe, 0xfe));
        watermark.advance().unwrap();
        let before = std::fs::read(&path).unwrap();
        watermark.advance().unwrap();
        let after = std::fs::read(&path).unwrap();
        let changed: Vec<usize> = (0..after.len()).filter(|&at| before[at] != after[at]).collect();
        for torn in 0..=changed.len() {
            let mut bytes = before.clone();
            changed[..torn].iter().for_each(|&at| bytes[at] = after[at]);
            std::fs::write(&path, bytes).unwrap();
            let expected = if torn == changed.len() { 0x100 } else { 0xff };
            assert_eq!(
                Watermark::read(&path).unwrap(),
                StoredMark::Mark(mark(expected, 0xfe)),
                "{torn} bytes"
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_fails_the_commit_only_where_the_file_system_has_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        let mut watermark = Watermark::set(&path, mark(1, 0));
        // Opened for reading only: an error, but none of the disk.
        watermark.file = Some(File::open(&path).unwrap());
        watermark.advance().unwrap();
        assert!(watermark.file.is_none(), "it is not tried again");
        watermark.advance().unwrap();
        for (errno, expected) in
            [(Errno::IO, true), (Errno::ROFS, true), (Errno::NOSPC, false), (Errno::DQUOT, false)]
        {
            assert_eq!(has_given_up(&errno.into()), expected, "{errno}");
        }
    }

    #[test]
    fn a_file_of_a_former_version_says_which_commit_was_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        let mut slot = FORMER_MAGIC.to_vec();
        slot.extend_from_slice(&9u64.to_le_bytes());
        slot.extend_from_slice(&checksum(&slot).to_le_bytes());
        std::fs::write(&path, &slot).unwrap();
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Mark(mark(9, 0)));
        slot[8] ^= 1;
        std::fs::write(&path, &slot).unwrap();
        assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Unreadable);
    }

    #[test]
    fn a_file_without_content_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        for bytes in [&[][..], &[0; 8192], b"aldabaW1", b"aldabaW2", &[0xff; 5000]] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Watermark::read(&path).unwrap(), StoredMark::Unreadable);
        }
    }
}
