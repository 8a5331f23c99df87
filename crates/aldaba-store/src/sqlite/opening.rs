//! The way to a running store, in two steps: look, then act. Whatever is refused is refused before the folder is
//! changed.

use super::files::{self, NewFiles};
use super::lock::FolderLock;
use super::migrations::Progress;
use super::reader::newest_moment;
use super::transaction::SqliteTransaction;
use super::watermark::{Mark, StoredMark, Watermark};
use super::{OpenError, Options, SqliteStore, commits, connect, migrations, open, program};
use crate::operations::setting;
use aldaba_delivery::Timestamp;
use rusqlite::Connection;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A data folder that is locked and looked at, and not changed yet. Dropped, it leaves everything as it was.
#[derive(Debug)]
pub struct Opening {
    options: Options,
    file: PathBuf,
    // The fields below are dropped in this order: what the connection has made is removed after it is closed, and
    // the lock, which may be new itself, before it is free.
    connection: Option<Connection>,
    /// The commit that the database file has by itself, where that can be told.
    in_file: Option<u64>,
    new_files: NewFiles,
    lock: FolderLock,
}

impl Opening {
    /// Takes the folder, and refuses a database that this version cannot use or that has gone back.
    pub fn begin(options: &Options) -> Result<Self, OpenError> {
        connect::check_version()?;
        let folder = &options.store.folder;
        let failed = |source| OpenError::Folder { folder: folder.clone(), source };
        let mut new_files = NewFiles::default();
        new_files.make_folder(folder).map_err(failed)?;
        new_files.watch(folder.join(files::LOCK));
        let lock = match FolderLock::take(folder) {
            Err(OpenError::Locked { folder }) => {
                // What is there belongs to another one, also where it was made just now.
                new_files.keep();
                return Err(OpenError::Locked { folder });
            }
            taken => taken?,
        };
        if folder.join(files::RESTORING).exists() {
            return Err(OpenError::HalfRestored { folder: folder.clone() });
        }
        let file = folder.join(files::DATABASE);
        let mut opening =
            Self { options: options.clone(), file, connection: None, in_file: None, new_files, lock };
        opening.look()?;
        Ok(opening)
    }

    /// Whether there is no database yet.
    pub fn is_new(&self) -> bool {
        self.connection.is_none()
    }

    /// A setting of the database as it is before it is changed.
    pub fn setting(&self, name: &str) -> Result<Option<Vec<u8>>, OpenError> {
        match &self.connection {
            // One without a schema has been made, and nothing more.
            Some(connection) if migrations::version(connection, &self.file)? > 0 => {
                setting::read(&SqliteTransaction::new(connection), name)
                    .map_err(|error| OpenError::unreadable(&self.file, &error))
            }
            _ => Ok(None),
        }
    }

    /// When something last happened, by the clock of that time.
    pub fn newest_moment(&self) -> Result<Option<Timestamp>, OpenError> {
        match &self.connection {
            Some(connection) if migrations::version(connection, &self.file)? > 0 => {
                newest_moment(connection).map_err(|error| OpenError::unreadable(&self.file, &error))
            }
            _ => Ok(None),
        }
    }

    /// Brings the database to the present schema and starts the threads of the store.
    pub fn finish(self) -> Result<SqliteStore, OpenError> {
        self.finish_with(Watermark::set)
    }

    fn finish_with(self, watermark: impl FnOnce(&Path, Mark) -> Watermark) -> Result<SqliteStore, OpenError> {
        let (options, file) = (&self.options, &self.file);
        // Held until what is new has been kept or removed.
        let lock = Arc::new(self.lock);
        let mut new_files = self.new_files;
        let folder = &options.store.folder;
        for name in [files::DATABASE, files::LOG, files::LOG_INDEX, files::RESERVE, files::WATERMARK] {
            new_files.watch(folder.join(name));
        }
        let failed = |source| OpenError::Folder { folder: folder.clone(), source };
        // SQLite gives its other files the mode of this one.
        drop(files::open_private(file).map_err(failed)?);
        files::close_to_others(folder);
        let connection = match self.connection {
            Some(connection) => connection,
            None => connect::unchanging(file)?,
        };
        connect::writer(&connection, file, options.largest_file_pages)?;
        let (clock, begun) = (&options.store.clock, options.store.clock.now());
        let report = |Progress { step, of }| {
            let elapsed = clock.now().saturating_sub(begun);
            tracing::info!(step, of, ?elapsed, "bringing the database to the schema of this version");
        };
        migrations::migrate(&connection, file, migrations::REPORT_INTERVAL, report)?;
        program::note(&connection).map_err(|error| OpenError::database(file, &error))?;
        let committed = commits::begin(&connection)
            .and_then(|()| commits::last(&connection))
            .map_err(|error| OpenError::database(file, &error))?;
        // After a crash the last commits may have been read from a log that is not on disk yet.
        sync(file).and_then(|()| sync(&folder.join(files::LOG))).map_err(failed)?;
        let mark = Mark { committed, in_file: self.in_file.unwrap_or(0) };
        let watermark = watermark(&folder.join(files::WATERMARK), mark);
        let store = open::start(options, connection, file, watermark, &lock)?;
        new_files.keep();
        Ok(store)
    }

    /// Compares the database with the watermark.
    fn look(&mut self) -> Result<(), OpenError> {
        let folder = self.options.store.folder.clone();
        let failed = |source| OpenError::Folder { folder: folder.clone(), source };
        let watermark = Watermark::read(&folder.join(files::WATERMARK)).map_err(failed)?;
        let committed = match size(&self.file).map_err(failed)? {
            0 => None,
            _ => match self.last_commit() {
                Ok(committed) => Some(committed),
                // A log that does not belong to the file may make it unreadable.
                Err(error) => {
                    let mixed = is_mixed(watermark, self.in_file);
                    return Err(mixed.map_or(error, |(found, expected)| OpenError::Mixed {
                        folder,
                        found,
                        expected,
                    }));
                }
            },
        };
        let has_log = size(&folder.join(files::LOG)).map_err(failed)? > 0;
        match judge(watermark, committed, self.in_file, has_log) {
            // Nothing good comes of both together.
            Err(Loss::Mixed { found, expected }) => Err(OpenError::Mixed { folder, found, expected }),
            Err(loss) if !self.options.store.accept_older_data => Err(OpenError::GoneBack { folder, loss }),
            Err(loss) => {
                tracing::warn!("the database has gone back: {loss} Older data is accepted, as was asked for");
                Ok(())
            }
            Ok(()) => {
                if self.options.store.accept_older_data {
                    tracing::warn!(
                        "older data may be accepted, and there is none: take that out again, or a loss goes unnoticed"
                    );
                }
                Ok(())
            }
        }
    }

    fn last_commit(&mut self) -> Result<u64, OpenError> {
        // SQLite makes these where they are missing.
        for name in [files::LOG, files::LOG_INDEX] {
            self.new_files.watch(self.options.store.folder.join(name));
        }
        // Closed before the next one is opened.
        self.in_file = connect::file_alone(&self.file).ok().and_then(|alone| commits::in_file(&alone));
        let connection = connect::unchanging(&self.file)?;
        let connection = self.connection.insert(connection);
        migrations::version(connection, &self.file)?;
        commits::last(connection).map_err(|error| OpenError::database(&self.file, &error))
    }
}

/// How a database has gone back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    #[error("its last commit is number {found}, and number {expected} was on disk.")]
    Commits { found: u64, expected: u64 },
    #[error("aldaba.db is missing or empty, and commit number {expected} was on disk.")]
    Database { expected: u64 },
    #[error("aldaba.db is missing or empty, and its log aldaba.db-wal is there.")]
    LogAlone,
    #[error("aldaba.db ends with commit number {found}, and number {expected} had been copied into it.")]
    Mixed { found: u64, expected: u64 },
}

/// `in_file`: the commit that the database file has by itself. `has_log`: there is a log, whatever there is of the database.
pub(super) fn judge(
    watermark: StoredMark,
    committed: Option<u64>,
    in_file: Option<u64>,
    has_log: bool,
) -> Result<(), Loss> {
    match (watermark, committed) {
        (StoredMark::Mark(Mark { committed: expected, .. }), Some(found)) if found < expected => {
            Err(Loss::Commits { found, expected })
        }
        (StoredMark::Mark(Mark { committed: expected, .. }), None) => Err(Loss::Database { expected }),
        (_, None) if has_log => Err(Loss::LogAlone),
        (StoredMark::Unreadable, Some(_)) => {
            tracing::warn!("{} cannot be read; a new one is made", files::WATERMARK);
            Ok(())
        }
        _ => is_mixed(watermark, in_file)
            .map_or(Ok(()), |(found, expected)| Err(Loss::Mixed { found, expected })),
    }
}

/// Whether the database file has less than had been copied into it: what it has, and what it should have.
fn is_mixed(watermark: StoredMark, in_file: Option<u64>) -> Option<(u64, u64)> {
    match (watermark, in_file) {
        (StoredMark::Mark(Mark { in_file: expected, .. }), Some(found)) if found < expected => {
            Some((found, expected))
        }
        _ => None,
    }
}

pub(super) fn size(path: &Path) -> io::Result<u64> {
    match path.metadata() {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

pub(super) fn sync(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Changed, Directory, Done, Error, Store};

    /// What a change of the store is answered.
    async fn put(store: &SqliteStore, value: u8) -> Result<Changed, Error> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        store.change(Change::PutSetting { name: "a", value: vec![value] }, None, done);
        answered.await.unwrap()
    }

    #[tokio::test]
    async fn a_commit_whose_watermark_meets_a_failed_file_system_is_answered_to_nobody_as_done() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        let store = Opening::begin(&options).unwrap().finish().unwrap();
        put(&store, 1).await.unwrap();
        store.close().await.unwrap();
        drop(store);

        let opening = Opening::begin(&options).unwrap();
        let store = opening.finish_with(|_, mark| Watermark::on_failed_file_system(mark)).unwrap();
        for value in 2..5 {
            let answer = put(&store, value).await;
            let Err(Error::Failed(why)) = &answer else { panic!("{answer:?}") };
            assert!(why.contains("takes no more writes"), "{why}");
        }
        assert!(matches!(store.check().await, Err(Error::Failed(_))), "the process ends");
        let _ = store.close().await;
        drop(store);
        // What was not answered may be there or not; nothing after it is.
        let store = Opening::begin(&options).unwrap().finish().unwrap();
        let kept = store.setting("a").await.unwrap().unwrap();
        assert!(kept == [1] || kept == [2], "{kept:?}");
    }

    #[test]
    fn only_what_was_on_disk_and_is_missing_is_a_loss() {
        let lost = |found, expected| Err(Loss::Commits { found, expected });
        let mark = |committed, in_file| StoredMark::Mark(Mark { committed, in_file });
        for (watermark, committed, in_file, has_log, expected) in [
            (StoredMark::Nothing, None, None, false, Ok(())),
            (StoredMark::Nothing, None, None, true, Err(Loss::LogAlone)),
            (StoredMark::Nothing, Some(0), Some(0), false, Ok(())),
            (StoredMark::Unreadable, None, None, false, Ok(())),
            (StoredMark::Unreadable, Some(9), Some(3), true, Ok(())),
            (mark(5, 5), Some(5), Some(5), false, Ok(())),
            (mark(5, 3), Some(6), Some(3), true, Ok(())),
            (mark(5, 3), Some(6), Some(4), true, Ok(())),
            (mark(5, 3), Some(6), None, true, Ok(())),
            (mark(5, 3), Some(6), Some(2), true, Err(Loss::Mixed { found: 2, expected: 3 })),
            (mark(5, 3), Some(4), Some(2), true, lost(4, 5)),
            (mark(5, 5), Some(4), Some(4), false, lost(4, 5)),
            (mark(5, 5), Some(0), None, false, lost(0, 5)),
            (mark(0, 0), None, None, false, Err(Loss::Database { expected: 0 })),
            (mark(5, 3), None, None, true, Err(Loss::Database { expected: 5 })),
        ] {
            assert_eq!(
                judge(watermark, committed, in_file, has_log),
                expected,
                "{watermark:?} {committed:?}"
            );
        }
    }
}
