use super::file::File;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

/// Set in the transaction in which an event was marked, and in no other: it tells that one from another that was begun
/// after its end.
const SET: &str = "SAVEPOINT aldaba_event";
const RELEASE: &str = "RELEASE aldaba_event";

/// The one connection that writes, in the hands of one. Whatever is open in it when it is dropped is rolled back.
pub(super) struct Writer {
    // `None`: not opened yet, or closed because something was wrong with it.
    slot: Option<OwnedMutexGuard<Option<Connection>>>,
    /// The handler has set something that outlives its transaction: it is not for the next one.
    changed: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(slot: OwnedMutexGuard<Option<Connection>>) -> Self {
        Self { slot: Some(slot), changed: Arc::default() }
    }

    /// The connection, opened if it is not. Blocks.
    pub(super) fn connection(&mut self, file: &File) -> rusqlite::Result<&mut Connection> {
        let Some(slot) = &mut self.slot else { return Err(gone()) };
        match &mut **slot {
            Some(connection) => Ok(connection),
            closed => Ok(closed.insert(file.open()?)),
        }
    }

    /// The connection of a transaction that was begun, and has not ended by itself.
    pub(super) fn begun(&mut self) -> rusqlite::Result<&mut Connection> {
        match self.slot.as_deref_mut() {
            Some(Some(connection)) if connection.is_autocommit() => Err(ended()),
            Some(Some(connection)) => Ok(connection),
            _ => Err(gone()),
        }
    }

    /// Takes the write lock of the file, for which it waits this long. Blocks.
    pub(super) fn begin(&mut self, file: &Arc<File>, wait: Duration) -> rusqlite::Result<&mut Connection> {
        let connection = self.connection(file)?;
        connection.busy_timeout(wait)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(connection)
    }

    /// From here on it is the handler's, who may do anything but end the transaction. SQLite itself may: a full disk, `OR
    /// ROLLBACK` and `RAISE(ROLLBACK)` do it. What the handler wrote after that would be committed at once and without the
    /// mark, so nothing is, until the writer says so.
    pub(super) fn lend(&mut self) -> rusqlite::Result<()> {
        let changed = Arc::clone(&self.changed);
        let connection = self.begun()?;
        connection.execute_batch(SET)?;
        connection.commit_hook(Some(|| true))?;
        connection.authorizer(Some(move |context: AuthContext<'_>| match context.action {
            AuthAction::Transaction { .. } => Authorization::Deny,
            action => {
                changed.fetch_or(outlives_its_transaction(&action), Relaxed);
                Authorization::Allow
            }
        }))
    }

    /// Commits, if this is still the transaction in which the event was marked.
    pub(super) fn commit(&mut self, find: &str, event_id: &str) -> rusqlite::Result<()> {
        let connection = self.begun()?;
        // While nothing can be committed: in another transaction this might. A handler may have savepoints of its own open: they
        // end with it.
        let same = connection.execute_batch(RELEASE).is_ok() && !connection.is_autocommit();
        if !same || !connection.prepare_cached(find)?.exists([event_id])? {
            return Err(ended());
        }
        take_back(connection)?;
        connection.execute_batch("COMMIT")
    }

    /// Blocks, if not for long.
    pub(super) fn roll_back(mut self) {
        if let Some(slot) = self.slot.take() {
            roll_back(slot, self.changed.load(Relaxed));
        }
    }
}

/// A connection that cannot even roll back is closed, which does it too; and so is one that was changed.
fn roll_back(mut slot: OwnedMutexGuard<Option<Connection>>, changed: bool) {
    let Some(connection) = &mut *slot else { return };
    let at_rest = take_back(connection).is_ok()
        && (connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok());
    if changed || !at_rest {
        *slot = None;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        let changed = self.changed.load(Relaxed);
        let at_rest = !changed && slot.as_ref().is_none_or(Connection::is_autocommit);
        match Handle::try_current() {
            // The disk is not for the threads of the runtime.
            Ok(runtime) if !at_rest => drop(runtime.spawn_blocking(move || roll_back(slot, changed))),
            _ => roll_back(slot, changed),
        }
    }
}

/// What [`Writer::lend`] forbids is allowed again.
fn take_back(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    connection.commit_hook(None::<fn() -> bool>)
}

/// What a statement does to its connection rather than to the file.
fn outlives_its_transaction(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Attach { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. } => true,
        // Without a value it only asks; and this one is for the transaction.
        AuthAction::Pragma { pragma_name, pragma_value } => {
            pragma_value.is_some() && !pragma_name.eq_ignore_ascii_case("defer_foreign_keys")
        }
        _ => false,
    }
}

pub(super) fn gone() -> rusqlite::Error {
    aborted("the transaction is gone: an earlier part of the work panicked, or was dropped")
}

fn ended() -> rusqlite::Error {
    aborted(
        "the transaction is gone: an error has ended it, such as a full disk, OR ROLLBACK or RAISE(ROLLBACK), or the \
         handler has removed the mark of its event; pass errors on",
    )
}

fn aborted(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT),
        Some(why.to_owned()),
    )
}
