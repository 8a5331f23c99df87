//! Backups: a folder with a copy of the database, the keys and a manifest, made while the server runs, and made a data folder again.

mod digest;
mod keys;
mod make;
mod manifest;
mod restore;

pub(crate) use keys::KeyPlace;
pub(crate) use make::{BackupError, BackupOptions, Made, make};
pub(crate) use manifest::MANIFEST;
pub(crate) use restore::{Report, RestoreError, check, restore};
