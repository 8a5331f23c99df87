use super::errors::{lost, stopped};
use super::writer::{Writer, gone};
use crate::transactional::{EventLock, SqliteStatements};
use crate::{LedgerError, Work};
use rusqlite::Connection;
use std::fmt;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The transaction in which an event is marked and its handler works. The receiver commits it when the handler succeeds; a
/// handler cannot.
///
/// In SQLite a failed statement is rolled back alone: a handler that continues commits the rest of its work. Some errors end
/// the whole transaction: a full disk, `OR ROLLBACK`, `RAISE(ROLLBACK)`. After that every write and every further part
/// fails, and nothing is committed.
pub struct SqliteTransaction {
    // `None` while a part of the work runs, and after a part that panicked or was dropped.
    writer: Option<Writer>,
    statements: Arc<SqliteStatements>,
    event_id: String,
    _lock: EventLock,
}

impl SqliteTransaction {
    pub(super) fn new(
        writer: Writer,
        statements: Arc<SqliteStatements>,
        event_id: String,
        lock: EventLock,
    ) -> Self {
        Self { writer: Some(writer), statements, event_id, _lock: lock }
    }

    /// Runs a part of the work on a thread for blocking code. There may be several parts, one after another.
    ///
    /// ```ignore
    /// work.run(move |connection| {
    ///     connection.execute("UPDATE products SET stock = stock - 1 WHERE id = ?1", [product])
    /// })
    /// .await?;
    /// ```
    ///
    /// If a part panics or its future is dropped, the whole transaction is rolled back.
    pub async fn run<T, E>(
        &mut self,
        part: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<rusqlite::Error> + Send + 'static,
    {
        let Some(mut writer) = self.writer.take() else { return Err(gone().into()) };
        let done = spawn_blocking(move || {
            let result = match writer.begun() {
                Ok(connection) => part(connection),
                Err(error) => Err(error.into()),
            };
            (writer, result)
        });
        match done.await {
            Ok((writer, result)) => {
                self.writer = Some(writer);
                result
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(gone().into()),
        }
    }
}

impl Work for SqliteTransaction {
    async fn complete(mut self) -> Result<(), LedgerError> {
        let Some(mut writer) = self.writer.take() else { return Err(lost(&gone())) };
        let (statements, event_id) = (Arc::clone(&self.statements), std::mem::take(&mut self.event_id));
        let committed = spawn_blocking(move || {
            let committed = writer.commit(&statements.find, &event_id);
            writer.roll_back();
            committed
        });
        committed.await.map_err(|error| stopped(&error))?.map_err(|error| lost(&error))
    }

    async fn abandon(mut self) {
        if let Some(writer) = self.writer.take() {
            // If the runtime ends meanwhile, dropping the writer rolls back too.
            let _ = spawn_blocking(move || writer.roll_back()).await;
        }
    }
}

impl fmt::Debug for SqliteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTransaction").field("open", &self.writer.is_some()).finish_non_exhaustive()
    }
}
