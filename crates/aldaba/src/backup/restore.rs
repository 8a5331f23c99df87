//! Makes a data folder of a backup. Everything is checked before anything is written.

use super::digest::ListedFile;
use super::keys::KeyProblem;
use super::make::DATABASE;
use super::manifest::{Manifest, ManifestError, shown};
use crate::config::Config;
use aldaba_delivery::Timestamp;
use aldaba_engine::{DataFolder, ENCRYPTION_CHECK, PAUSE_SETTING, PauseRecord};
use aldaba_store::{OpenError, PendingCounts, Restoring, RestoringError, Snapshot};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a restored folder needs besides the files of the backup.
const SMALL_FILES: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{} is damaged: {why}. Use another backup; nothing was changed", file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("cannot read {}: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("the database of the backup cannot be used: {0}")]
    Database(#[from] OpenError),
    #[error(transparent)]
    Key(#[from] KeyProblem),
    #[error("{} is inside of the backup: name a folder elsewhere. Nothing was changed", folder.display())]
    Inside { folder: PathBuf },
    #[error("the disk of {} has {free} bytes free, and the backup needs {needed}: free some space. Nothing was changed", folder.display())]
    NoSpace { folder: PathBuf, needed: u64, free: u64 },
    #[error(transparent)]
    Restoring(#[from] RestoringError),
    #[error("cannot write {} to {}: {source}. Nothing is left there", name, folder.display())]
    Write { name: String, folder: PathBuf, source: io::Error },
}

impl RestoreError {
    /// The backup is at fault, not the machine.
    pub(crate) fn is_of_backup(&self) -> bool {
        matches!(self, Self::Manifest(_) | Self::Damaged { .. } | Self::Database(_))
    }
}

/// A backup that is whole and can be restored here.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) manifest: Manifest,
    pub(crate) pending: PendingCounts,
}

/// Checks a backup: its files, its version, and that its keys are there.
pub(crate) fn check(backup: &Path, config: &Config, now: Timestamp) -> Result<Checked, RestoreError> {
    let manifest = Manifest::read(backup)?;
    for listed in &manifest.files {
        check_file(backup, listed)?;
    }
    let database = backup.join(DATABASE);
    if !manifest.files.iter().any(|file| file.name == DATABASE) {
        return Err(RestoreError::Damaged { file: database, why: "the manifest does not list it".into() });
    }
    let copy = Snapshot::of_copy(&database)?;
    manifest.keys.check(config, &DataFolder::at(backup), copy.setting(ENCRYPTION_CHECK)?.as_deref())?;
    let pending = copy.pending(now)?;
    Ok(Checked { manifest, pending })
}

fn check_file(backup: &Path, listed: &ListedFile) -> Result<(), RestoreError> {
    let file = backup.join(&listed.name);
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RestoreError::Damaged { file: file.clone(), why: "it is missing".into() },
        _ => RestoreError::Unreadable { file: file.clone(), source },
    };
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes != listed.bytes {
        let why = format!("it has {bytes} bytes, and had {} when the backup was made", listed.bytes);
        return Err(RestoreError::Damaged { file, why });
    }
    if ListedFile::read(backup, &listed.name).map_err(unreadable)? != *listed {
        let why = "its content is not what it was when the backup was made (SHA-256)".into();
        return Err(RestoreError::Damaged { file, why });
    }
    Ok(())
}

/// Makes the data folder of a checked backup.
pub(crate) fn restore(
    backup: &Path,
    checked: &Checked,
    folder: &Path,
    now: Timestamp,
) -> Result<(), RestoreError> {
    if is_within(folder, backup) {
        return Err(RestoreError::Inside { folder: folder.to_owned() });
    }
    let restoring = Restoring::begin(folder)?;
    check_space(folder, checked.manifest.bytes() + SMALL_FILES)?;
    for listed in &checked.manifest.files {
        let to = restoring.path(&listed.name);
        let failed = |source| {
            let (name, folder) = (listed.name.clone(), folder.to_owned());
            RestoreError::Write { name, folder, source }
        };
        let copied = ListedFile::copy(&listed.name, &backup.join(&listed.name), &to).map_err(failed)?;
        if copied != *listed {
            let why = "it changed while it was read".into();
            return Err(RestoreError::Damaged { file: backup.join(&listed.name), why });
        }
    }
    let made_at = checked.manifest.made_at();
    let pause = PauseRecord { backup_made_at: made_at }.to_bytes();
    restoring.finish(&[(PAUSE_SETTING, &pause)], now.since(made_at))?;
    Ok(())
}

/// Whether a folder, which need not exist, is or would be within another.
fn is_within(folder: &Path, other: &Path) -> bool {
    let Ok(other) = other.canonicalize() else { return false };
    let existing = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let existing = existing.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    existing.is_some_and(|existing| existing.starts_with(other))
}

fn check_space(folder: &Path, needed: u64) -> Result<(), RestoreError> {
    // A disk that does not say is tried.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < needed {
        return Err(RestoreError::NoSpace { folder: folder.to_owned(), needed, free });
    }
    Ok(())
}

/// What a resume would send, for people.
pub(crate) struct Report<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) now: Timestamp,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checked { manifest, pending } = self.checked;
        let PendingCounts { waiting, sendable, due, first_due } = *pending;
        let age = Age(self.now.since(manifest.made_at()));
        writeln!(
            f,
            "The backup shows {}, {age} ago. What was accepted after that is not in it.",
            manifest.made_at
        )?;
        match (due, first_due) {
            (0, _) => writeln!(f, "No delivery is due.")?,
            (1, Some(first)) => writeln!(f, "1 delivery is due, since {}.", shown(first))?,
            (due, first) => {
                writeln!(
                    f,
                    "{due} deliveries are due, the first since {}.",
                    shown(first.unwrap_or(self.now))
                )?;
            }
        }
        let later = sendable.saturating_sub(due);
        let held = waiting.saturating_sub(sendable);
        if later + held > 0 {
            let kept_back = "for endpoints that are off, blocked or given up";
            writeln!(f, "{later} wait for a later time, and {held} {kept_back}.")?;
        }
        if waiting > 0 {
            writeln!(
                f,
                "Those that were delivered after the backup are sent again: receivers find them by their id (`webhook-id`)."
            )?;
        }
        if self.now < manifest.made_at() {
            writeln!(
                f,
                "Warning: this machine's clock shows a time before the backup. Set it before you resume."
            )?;
        }
        if !manifest.clock_trusted {
            writeln!(
                f,
                "Warning: the clock was not trusted when the backup was made, so its times may be wrong."
            )?;
        }
        Ok(())
    }
}

/// How long something took, for people.
struct Age(Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0..120 => write!(f, "{seconds} s"),
            120..7200 => write!(f, "{} min", seconds / 60),
            7200..172_800 => write!(f, "{} h {} min", seconds / 3600, seconds % 3600 / 60),
            _ => write!(f, "{} days", seconds / 86_400),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_that_fits() {
        for (seconds, text) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7199, "119 min"),
            (11_520, "3 h 12 min"),
            (172_800, "2 days"),
        ] {
            assert_eq!(Age(Duration::from_secs(seconds)).to_string(), text);
        }
    }
}
