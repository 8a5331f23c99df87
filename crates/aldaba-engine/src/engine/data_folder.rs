//! The data folder and its secrets.

use crate::Entropy;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const ADDRESS_FILE: &str = "aldaba.address";
/// The file with the folder's own encryption key.
pub const ENCRYPTION_FILE: &str = "encryption.key";

/// A folder that only its owner can read.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot create the data folder {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot create the secret {path}: {source}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot read the secret {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the database was encrypted with the key in {path}, which is missing: put the file back, or set \
         ALDABA_ENCRYPTION_KEY or ALDABA_JWT_SECRET to what it was"
    )]
    KeyMissing { path: PathBuf },
    #[error(
        "there is no database beside the key {path}, which an earlier start has made: put aldaba.db back. To begin \
         anew with this key: `aldaba serve --accept-older-data`, once (in a program: `Builder::accept_older_data`)"
    )]
    DatabaseMissing { path: PathBuf },
    #[error("the secret {path} is damaged: expected 64 hexadecimal digits. Put the original back")]
    Damaged { path: PathBuf },
}

impl DataFolder {
    /// Refers to the folder without creating it.
    pub fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Creates the folder if it is missing. Takes no lock: `token create` works while a server runs.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| FolderError::Folder { path: path.into(), source })?;
        Ok(Self { path: path.into() })
    }

    /// The 64 hexadecimal digits of a secret, created if it does not exist.
    pub fn secret(&self, name: &str, entropy: &dyn Entropy) -> Result<String, FolderError> {
        if let Some(secret) = self.existing_secret(name)? {
            self.close_to_others(name);
            return Ok(secret);
        }
        let path = self.path.join(name);
        self.make(&path, entropy).map_err(|source| FolderError::Make { path: path.clone(), source })?;
        let gone = || FolderError::Read { path, source: ErrorKind::NotFound.into() };
        self.existing_secret(name)?.ok_or_else(gone)
    }

    /// The 64 hexadecimal digits of a secret, if it exists.
    pub fn existing_secret(&self, name: &str) -> Result<Option<String>, FolderError> {
        let path = self.path.join(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(FolderError::Read { path, source }),
        };
        match key_from_hex(&text) {
            Some(_) => Ok(Some(text)),
            None => Err(FolderError::Damaged { path }),
        }
    }

    /// Older versions only warned about a file that others can read.
    fn close_to_others(&self, name: &str) {
        let path = self.path.join(name);
        let Ok(mode) = fs::metadata(&path).map(|found| found.permissions().mode()) else { return };
        if mode & 0o077 != 0
            && let Err(error) = fs::set_permissions(&path, Permissions::from_mode(mode & 0o7700))
        {
            tracing::warn!(%error, path = %path.display(), "other users can read this file; set its mode to 0600");
        }
    }

    /// The folder's own encryption key for secrets, created if it does not exist.
    pub fn encryption_key(&self, entropy: &dyn Entropy) -> Result<[u8; 32], FolderError> {
        let text = self.secret(ENCRYPTION_FILE, entropy)?;
        Ok(key_from_hex(&text).expect("the folder has checked it"))
    }

    /// The folder's encryption key, if it exists.
    pub fn existing_encryption_key(&self) -> Result<Option<[u8; 32]>, FolderError> {
        Ok(self.existing_secret(ENCRYPTION_FILE)?.and_then(|text| key_from_hex(&text)))
    }

    pub(crate) fn has_encryption_key(&self) -> bool {
        self.path.join(ENCRYPTION_FILE).exists()
    }

    pub(crate) fn key_missing(&self) -> FolderError {
        FolderError::KeyMissing { path: self.path.join(ENCRYPTION_FILE) }
    }

    pub(crate) fn database_missing(&self) -> FolderError {
        FolderError::DatabaseMissing { path: self.path.join(ENCRYPTION_FILE) }
    }

    /// Stores the server's address for commands on the same machine.
    pub fn set_address(&self, address: SocketAddr) {
        let path = self.path.join(ADDRESS_FILE);
        let open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
        // Without the file, commands use the configured address.
        if let Err(error) = open.and_then(|mut file| writeln!(file, "{address}")) {
            tracing::warn!(%error, "cannot store the server's address for local commands");
        }
        self.close_to_others(ADDRESS_FILE);
    }

    /// The address of the last server that used the folder.
    pub fn address(&self) -> Option<SocketAddr> {
        fs::read_to_string(self.path.join(ADDRESS_FILE)).ok()?.trim().parse().ok()
    }

    /// Creates a secret. It gets its name only when it is complete and on disk. If another process was
    /// faster, its secret stays.
    fn make(&self, path: &Path, entropy: &dyn Entropy) -> io::Result<()> {
        let draft = self.path.join(format!(".draft-{}", hex(&entropy.bytes::<8>())));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = writeln!(file, "{}", hex(&entropy.bytes::<32>())).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| fs::hard_link(&draft, path));
        fs::remove_file(&draft)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        File::open(&self.path)?.sync_all()
    }
}

/// Parses 64 hexadecimal digits into 32 bytes.
pub fn key_from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        *byte = u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folder_and_secrets_are_private_and_a_secret_is_kept() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("a/b");
        let entropy = SystemEntropy::new();
        let folder = DataFolder::open(&path).unwrap();
        let first = folder.secret("jwt.secret", &entropy).unwrap();
        let again = DataFolder::open(&path).unwrap().secret("jwt.secret", &entropy).unwrap();
        assert_eq!(first, again);
        assert_eq!((mode(&path), mode(&path.join("jwt.secret"))), (0o700, 0o600));
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["jwt.secret"]);
    }

    #[test]
    fn concurrent_starts_agree_on_the_secret() {
        let outer = tempfile::tempdir().unwrap();
        let secret = || DataFolder::open(outer.path()).unwrap().secret("s", &SystemEntropy::new()).unwrap();
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(secret)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn a_secret_that_others_can_read_is_made_private() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, entropy) = (DataFolder::open(outer.path()).unwrap(), SystemEntropy::new());
        folder.secret("s", &entropy).unwrap();
        let path = outer.path().join("s");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        folder.secret("s", &entropy).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn reading_a_secret_creates_none() {
        let outer = tempfile::tempdir().unwrap();
        let folder = DataFolder::at(&outer.path().join("a"));
        assert_eq!(folder.existing_secret("s").unwrap(), None);
        assert_eq!(folder.existing_encryption_key().unwrap(), None);
        assert!(!outer.path().join("a").exists());
    }

    #[test]
    fn a_damaged_secret_is_not_replaced() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("s"), "half a sec").unwrap();
        let folder = DataFolder::open(outer.path()).unwrap();
        assert!(matches!(folder.secret("s", &SystemEntropy::new()), Err(FolderError::Damaged { .. })));
    }
}
