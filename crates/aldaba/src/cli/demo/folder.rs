//! The data folder of the demo: a temporary one that is removed at the end, or a given one.

use aldaba_engine::{Entropy, SystemEntropy};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The demo's data folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Removed when dropped.
    temporary: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error(
        "the folder {} is not empty. The demo lets deliveries go to this machine, so it never \
         touches data that is there already: name a new folder, or leave --data out", .0.display()
    )]
    NotEmpty(PathBuf),
    #[error("cannot use the folder {}: {source}", path.display())]
    Unusable { path: PathBuf, source: io::Error },
}

impl Folder {
    /// A new folder in `parent`, for its owner only.
    pub(super) fn temporary(parent: &Path) -> Result<Self, FolderError> {
        let entropy: &dyn Entropy = &SystemEntropy::new();
        let path = parent.join(format!("aldaba-demo-{:08x}", u32::from_le_bytes(entropy.bytes())));
        // It must be new: a link of another user could lead anywhere.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| FolderError::Unusable { path: path.clone(), source })?;
        Ok(Self { path, temporary: true })
    }

    /// A folder that stays. It must be missing or empty.
    pub(super) fn given(path: &Path) -> Result<Self, FolderError> {
        let unusable = |source| FolderError::Unusable { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        if fs::read_dir(path).map_err(unusable)?.next().is_some() {
            return Err(FolderError::NotEmpty(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), temporary: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn stays(&self) -> bool {
        !self.temporary
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("aldaba: cannot remove {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_goes_with_what_is_in_it_and_a_given_one_stays() {
        let outer = tempfile::tempdir().unwrap();
        let temporary = Folder::temporary(outer.path()).unwrap();
        let path = temporary.path().to_owned();
        fs::write(path.join("file"), "text").unwrap();
        drop(temporary);
        assert!(!path.exists());
        let given = Folder::given(&outer.path().join("a/b")).unwrap();
        let path = given.path().to_owned();
        drop(given);
        assert!(path.exists());
    }

    #[test]
    fn a_folder_with_data_in_it_is_refused_and_left_alone() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("aldaba.db"), "precious").unwrap();
        assert!(matches!(Folder::given(outer.path()), Err(FolderError::NotEmpty(_))));
        assert_eq!(fs::read(outer.path().join("aldaba.db")).unwrap(), b"precious");
    }
}
