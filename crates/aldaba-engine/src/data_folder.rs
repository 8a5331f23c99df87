//! The data folder and the secrets in it.

use crate::Entropy;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const ADDRESS_FILE: &str = "aldaba.address";
const ENCRYPTION_FILE: &str = "encryption.key";

/// A folder that only its owner can look into.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot make the data folder {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot make the secret {path}: {source}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot read the secret {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the secret {path} is damaged: expected 64 hexadecimal digits. Put the original back")]
    Damaged { path: PathBuf },
}

impl DataFolder {
    /// Makes the folder when it is missing. Takes no lock: `token create` works beside a server.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| FolderError::Folder { path: path.into(), source })?;
        Ok(Self { path: path.into() })
    }

    /// The 64 hexadecimal digits of a secret, made now if it is not there yet.
    pub fn secret(&self, name: &str, entropy: &dyn Entropy) -> Result<String, FolderError> {
        let path = self.path.join(name);
        let wrong = |source| FolderError::Read { path: path.clone(), source };
        if !path.try_exists().map_err(wrong)? {
            self.make(&path, entropy).map_err(|source| FolderError::Make { path: path.clone(), source })?;
        }
        let open = fs::metadata(&path).map_err(wrong)?.permissions().mode() & 0o077 != 0;
        if open {
            tracing::warn!(path = %path.display(), "this secret can be read by others: give it mode 0600");
        }
        let text = fs::read_to_string(&path).map_err(wrong)?.trim().to_owned();
        match key_from_hex(&text) {
            Some(_) => Ok(text),
            None => Err(FolderError::Damaged { path }),
        }
    }

    /// The key of the folder's own that seals secrets, made now if it is not there yet.
    pub fn encryption_key(&self, entropy: &dyn Entropy) -> Result<[u8; 32], FolderError> {
        let text = self.secret(ENCRYPTION_FILE, entropy)?;
        Ok(key_from_hex(&text).expect("the folder has checked it"))
    }

    /// Says where the server is that has the folder, for commands on the same machine.
    pub fn set_address(&self, address: SocketAddr) {
        // Without it they ask where the settings say.
        if let Err(error) = fs::write(self.path.join(ADDRESS_FILE), format!("{address}\n")) {
            tracing::warn!(%error, "cannot write down the address for commands on this machine");
        }
    }

    /// Where the server was that had the folder last.
    pub fn address(&self) -> Option<SocketAddr> {
        fs::read_to_string(self.path.join(ADDRESS_FILE)).ok()?.trim().parse().ok()
    }

    /// The secret appears under its name only when it is whole and on disk. If another process was
    /// quicker, its secret stays.
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

/// The 32 bytes that 64 hexadecimal digits stand for.
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
    fn folder_and_secrets_are_for_their_owner_only_and_a_secret_stays() {
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
    fn two_that_start_at_once_agree_on_the_secret() {
        let outer = tempfile::tempdir().unwrap();
        let secret = || DataFolder::open(outer.path()).unwrap().secret("s", &SystemEntropy::new()).unwrap();
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(secret)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn a_damaged_secret_is_not_replaced() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("s"), "half a sec").unwrap();
        let folder = DataFolder::open(outer.path()).unwrap();
        assert!(matches!(folder.secret("s", &SystemEntropy::new()), Err(FolderError::Damaged { .. })));
    }
}
