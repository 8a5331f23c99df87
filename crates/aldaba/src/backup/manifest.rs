//! `manifest.json`: what a backup holds. It is written last, so a folder without it is no backup.

use super::digest::{ListedFile, write_private};
use super::keys::KeyPlaces;
use aldaba_delivery::Timestamp;
use aldaba_store::known_schema;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const MANIFEST: &str = "manifest.json";
/// What this version writes and reads.
const FORMAT: u32 = 1;
/// A manifest has less than this.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// The moment that the copy shows, by the clock of the machine.
    #[serde(with = "as_text")]
    pub(crate) made_at: jiff::Timestamp,
    /// The version that made the backup.
    pub(crate) made_by: String,
    /// The version that last wrote the database, where it says so.
    pub(crate) written_by: Option<String>,
    pub(crate) schema: i64,
    /// The number of the last commit in it.
    pub(crate) commit: u64,
    /// Whether the machine's clock was trusted.
    pub(crate) clock_trusted: bool,
    /// Deliveries that waited.
    pub(crate) waiting: u64,
    pub(crate) keys: KeyPlaces,
    pub(crate) files: Vec<ListedFile>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error(
        "{} is no backup: it has no {MANIFEST}. A backup that was not finished has none, and its name ends with .unfinished",
        folder.display()
    )]
    Missing { folder: PathBuf },
    #[error("cannot read {}: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{} is damaged: {why}. Use another backup", file.display())]
    Damaged { file: PathBuf, why: String },
    #[error(
        "the backup was made by Aldaba {made_by} in format {found}; this is Aldaba {}, which reads format {FORMAT}: run Aldaba \
         {made_by} or newer",
        env!("CARGO_PKG_VERSION")
    )]
    Format { made_by: String, found: u32 },
    #[error(
        "the backup has schema {found}; this is Aldaba {}, which knows schemas up to {known}: run Aldaba {version} or newer",
        env!("CARGO_PKG_VERSION")
    )]
    Schema { version: String, found: i64, known: i64 },
}

impl Manifest {
    pub(crate) fn new(made_at: Timestamp, keys: KeyPlaces) -> Self {
        Self {
            format: FORMAT,
            made_at: shown(made_at),
            made_by: env!("CARGO_PKG_VERSION").into(),
            written_by: None,
            schema: 0,
            commit: 0,
            clock_trusted: true,
            waiting: 0,
            keys,
            files: Vec::new(),
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        write_private(&folder.join(MANIFEST), text.as_bytes())
    }

    /// Reads the manifest of a backup that this version can restore.
    pub(crate) fn read(folder: &Path) -> Result<Self, ManifestError> {
        let file = folder.join(MANIFEST);
        let damaged = |why: String| ManifestError::Damaged { file: file.clone(), why };
        let unreadable = |source| ManifestError::Unreadable { file: file.clone(), source };
        match file.metadata() {
            Ok(found) if found.len() > MAX_BYTES => return Err(damaged("it is too long".into())),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(ManifestError::Missing { folder: folder.to_owned() });
            }
            Err(error) => return Err(unreadable(error)),
        }
        let text = std::fs::read(&file).map_err(unreadable)?;
        // A newer format may have other fields.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            made_by: String,
        }
        let head: Head = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if head.format != FORMAT {
            return Err(ManifestError::Format { made_by: head.made_by, found: head.format });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let known = known_schema();
        if manifest.schema > known {
            let version = manifest.written_by.unwrap_or(manifest.made_by);
            return Err(ManifestError::Schema { version, found: manifest.schema, known });
        }
        // A name from elsewhere must not lead out of the folder.
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        if let Some(file) = manifest.files.iter().find(|file| !is_plain(&file.name)) {
            return Err(damaged(format!("{:?} is no name of a file", file.name)));
        }
        Ok(manifest)
    }

    pub(crate) fn made_at(&self) -> Timestamp {
        Timestamp::from_millis(self.made_at.as_millisecond())
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// As in the API: RFC 3339.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &jiff::Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<jiff::Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

pub(crate) fn shown(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::MAX)
}
