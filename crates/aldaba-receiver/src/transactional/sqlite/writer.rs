use super::file::File;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

/// A savepoint in the transaction that marked the event. It distinguishes this transaction from one that was begun after
/// its end.
const SET: &str = "SAVEPOINT aldaba_event";
const RELEASE: &str = "RELEASE aldaba_event";

/// Exclusive access to the connection that writes. Dropping it rolls an open transaction back.
pub(super) struct Writer {
    // The connection is `None` before it is opened, and after it was closed because of an error.
    slot: Option<OwnedMutexGuard<Option<Connection>>>,
    /// The handler has changed the connection itself; the next handler must not use it.
    changed: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(slot: OwnedMutexGuard<Option<Connection>>) -> Self {
        Self { slot: Some(slot), changed: Arc::default() }
    }

    /// The connection; opens it if necessary. Blocks.
    pub(super) fn connection(&mut self, file: &File) -> rusqlite::Result<&mut Connection> {
        let Some(slot) = &mut self.slot else { return Err(gone()) };
        match &mut **slot {
            Some(connection) => Ok(connection),
            closed => Ok(closed.insert(file.open()?)),
        }
    }

    /// The connection, if its transaction is still open.
    pub(super) fn begun(&mut self) -> rusqlite::Result<&mut Connection> {
        match self.slot.as_deref_mut() {
            Some(Some(connection)) if connection.is_autocommit() => Err(ended()),
            Some(Some(connection)) => Ok(connection),
            _ => Err(gone()),
        }
    }

    /// Takes the write lock of the file; waits up to `wait`. Blocks.
    pub(super) fn begin(&mut self, file: &Arc<File>, wait: Duration) -> rusqlite::Result<&mut Connection> {
        let connection = self.connection(file)?;
        connection.busy_timeout(wait)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(connection)
    }

    /// Lends the connection to the handler, which cannot end the transaction. SQLite can: after a full disk, `OR ROLLBACK` or
    /// `RAISE(ROLLBACK)`. Later writes would then commit immediately and without the mark; so all commits are refused until
    /// [`Writer::commit`].
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

    /// Commits, if this is still the transaction that marked the event.
    pub(super) fn commit(&mut self, find: &str, event_id: &str) -> rusqlite::Result<()> {
        let connection = self.begun()?;
        // Commits are still refused here, in case this is another transaction. Open savepoints of the handler end too.
        let same = connection.execute_batch(RELEASE).is_ok() && !connection.is_autocommit();
        if !same || !connection.prepare_cached(find)?.exists([event_id])? {
            return Err(ended());
        }
        take_back(connection)?;
        connection.execute_batch("COMMIT")
    }

    /// Blocks briefly.
    pub(super) fn roll_back(mut self) {
        if let Some(slot) = self.slot.take() {
            roll_back(slot, self.changed.load(Relaxed));
        }
    }
}

/// Rolls back. A connection that cannot roll back, or that was changed, is closed.
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
            // Disk access must not block the threads of the runtime.
            Ok(runtime) if !at_rest => drop(runtime.spawn_blocking(move || roll_back(slot, changed))),
            _ => roll_back(slot, changed),
        }
    }
}

/// Allows again what [`Writer::lend`] forbids.
fn take_back(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    connection.commit_hook(None::<fn() -> bool>)
}

/// Whether a statement changes its connection rather than the file.
fn outlives_its_transaction(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Attach { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. } => true,
        // Without a value a pragma only reads; `defer_foreign_keys` ends with the transaction.
        AuthAction::Pragma { pragma_name, pragma_value } => {
            pragma_value.is_some() && !pragma_name.eq_ignore_ascii_case("defer_foreign_keys")
        }
        _ => false,
    }
}

pub(super) fn gone() -> rusqlite::Error {
    aborted("the transaction has ended: an earlier part of the work panicked or was dropped")
}

fn ended() -> rusqlite::Error {
    aborted(
        "the transaction has ended: by an error such as a full disk, OR ROLLBACK or RAISE(ROLLBACK), or because the \
         handler removed the mark of its event; the handler must return errors",
    )
}

fn aborted(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT),
        Some(why.to_owned()),
    )
}
