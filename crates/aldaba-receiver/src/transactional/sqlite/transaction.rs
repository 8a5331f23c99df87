use super::trouble::{lost, stopped};
use super::writer::{Writer, gone};
use crate::transactional::{SqliteStatements, Turn};
use crate::{LedgerError, Work};
use rusqlite::Connection;
use std::fmt;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The transaction in which an event was marked, and in which its handler works. The receiver commits it, once the
/// handler has succeeded; a handler cannot.
///
/// A statement that fails is taken back alone, as a rule of SQLite: a handler that goes on after one commits the rest of
/// its work. Some errors end the whole transaction: a full disk, `OR ROLLBACK`, `RAISE(ROLLBACK)`. After one of those every
/// write and every further part fails, and nothing is committed.
pub struct SqliteTransaction {
    // `None` while a part of the work runs, and for ever if that part does not come back.
    writer: Option<Writer>,
    statements: Arc<SqliteStatements>,
    event_id: String,
    _turn: Turn,
}

impl SqliteTransaction {
    pub(super) fn new(
        writer: Writer,
        statements: Arc<SqliteStatements>,
        event_id: String,
        turn: Turn,
    ) -> Self {
        Self { writer: Some(writer), statements, event_id, _turn: turn }
    }

    /// Does a part of the work, on a thread where it may block. There may be several parts, one after the other.
    ///
    /// ```ignore
    /// work.run(move |connection| {
    ///     connection.execute("UPDATE products SET stock = stock - 1 WHERE id = ?1", [product])
    /// })
    /// .await?;
    /// ```
    ///
    /// A part that panics, and a part whose future is dropped, takes the whole transaction with it.
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
            // If the runtime ends before, the writer is dropped, which rolls back too.
            let _ = spawn_blocking(move || writer.roll_back()).await;
        }
    }
}

impl fmt::Debug for SqliteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTransaction").field("open", &self.writer.is_some()).finish_non_exhaustive()
    }
}
