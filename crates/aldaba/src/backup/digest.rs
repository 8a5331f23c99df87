//! Files of a backup: copied for their owner only, with their sizes and SHA-256 digests.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const PIECE_BYTES: usize = 1 << 20;

/// A file of a backup as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl ListedFile {
    /// Reads a file to its end.
    pub(crate) fn read(folder: &Path, name: &str) -> io::Result<Self> {
        Self::pass(name, File::open(folder.join(name))?, io::sink())
    }

    /// Copies a file. What was written is on disk when this returns.
    pub(crate) fn copy(name: &str, from: &Path, to: &Path) -> io::Result<Self> {
        let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let copied = Self::pass(name, File::open(from)?, &mut target)?;
        target.sync_all()?;
        Ok(copied)
    }

    fn pass(name: &str, mut from: impl Read, mut to: impl Write) -> io::Result<Self> {
        let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
        loop {
            let read = from.read(&mut piece)?;
            if read == 0 {
                break;
            }
            hash.update(&piece[..read]);
            to.write_all(&piece[..read])?;
            bytes += read as u64;
        }
        let mut sha256 = String::with_capacity(64);
        for byte in hash.finalize() {
            let _ = write!(sha256, "{byte:02x}");
        }
        Ok(Self { name: name.to_owned(), bytes, sha256 })
    }
}

/// Writes a small file that only its owner can read. It is on disk when this returns.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_is_private_and_has_the_digest_of_its_source() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "abc").unwrap();
        let copied = ListedFile::copy("a", &folder.path().join("a"), &folder.path().join("b")).unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((copied.bytes, copied.sha256.as_str()), (3, known));
        assert_eq!(ListedFile::read(folder.path(), "a").unwrap(), copied);
        let mode = std::fs::metadata(folder.path().join("b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = ListedFile::copy("a", &folder.path().join("a"), &folder.path().join("b"));
        assert!(again.is_err(), "what is there stays");
    }
}
