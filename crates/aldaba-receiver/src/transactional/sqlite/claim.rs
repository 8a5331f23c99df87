//! Claims an event by marking it.

use super::errors::{in_table, is_busy, stopped, unavailable};
use super::ledger::SqliteLedger;
use super::transaction::SqliteTransaction;
use super::writer::Writer;
use crate::transactional::{Deadline, Payload, SqliteStatements, Table};
use crate::{Claim, Event, LedgerError};
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Concurrent lookups of marks. More wait; lookups are short.
pub(super) const READERS: usize = 4;

/// The payload of a mark. A mark of another program may have none; then the id decides.
struct Mark(Option<String>);

impl Mark {
    fn is_of(&self, payload: &Payload) -> bool {
        self.0.as_ref().is_none_or(|stored| payload.is_kept_as(stored))
    }
}

/// The result of marking an event.
enum MarkResult {
    New(Writer),
    Same,
    Other,
    /// Another process has the write lock.
    Busy,
}

impl SqliteLedger {
    pub(super) async fn claim_locked(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<SqliteTransaction>, LedgerError> {
        Table::holds(&event.id).map_err(|error| LedgerError::Unavailable(error.into()))?;
        let deadline = Deadline::after(wait_timeout);
        let Some(lock) = self.locks.take(&event.id, &deadline).await else { return Ok(Claim::InProgress) };
        let payload = Payload::new(&event.body, self.keep);
        // Duplicates are found without the write lock, which a handler may hold.
        if let Some(mark) = self.find(&event.id).await? {
            return Ok(if mark.is_of(&payload) { Claim::Duplicate } else { Claim::OtherBody });
        }
        let writer = self.writer(&deadline).await?;
        match self.mark(writer, event, payload, deadline.left()).await? {
            MarkResult::New(writer) => {
                let statements = Arc::clone(&self.statements);
                Ok(Claim::New(SqliteTransaction::new(writer, statements, event.id.clone(), lock)))
            }
            MarkResult::Same => Ok(Claim::Duplicate),
            MarkResult::Other => Ok(Claim::OtherBody),
            MarkResult::Busy => Ok(Claim::InProgress),
        }
    }

    async fn find(&self, event_id: &str) -> Result<Option<Mark>, LedgerError> {
        let _few = self.readers.acquire().await;
        let (file, statements, event_id) =
            (Arc::clone(&self.file), Arc::clone(&self.statements), event_id.to_owned());
        let found =
            spawn_blocking(move || file.read(|connection| find(connection, &statements, &event_id))).await;
        found.map_err(|error| stopped(&error))?.map_err(|error| in_table(&error))
    }

    async fn mark(
        &self,
        mut writer: Writer,
        event: &Event,
        payload: Payload,
        wait: Duration,
    ) -> Result<MarkResult, LedgerError> {
        let (file, statements) = (Arc::clone(&self.file), Arc::clone(&self.statements));
        let (event_id, event_type) = (event.id.clone(), Table::event_type(&event.event_type).to_owned());
        let marked = spawn_blocking(move || {
            let connection = match writer.begin(&file, wait) {
                Ok(connection) => connection,
                Err(error) if is_busy(&error) => return Ok(MarkResult::Busy),
                Err(error) => return Err(error),
            };
            let mark = (&event_id, &event_type, &*payload.kept());
            if connection.prepare_cached(&statements.mark)?.execute(mark)? == 1 {
                writer.lend()?;
                return Ok(MarkResult::New(writer));
            }
            let mark = find(connection, &statements, &event_id)?;
            writer.roll_back();
            Ok(if mark.is_some_and(|mark| mark.is_of(&payload)) {
                MarkResult::Same
            } else {
                MarkResult::Other
            })
        });
        marked.await.map_err(|error| stopped(&error))?.map_err(|error| in_table(&error))
    }

    /// Waits for the connection that writes.
    pub(super) async fn writer(&self, deadline: &Deadline) -> Result<Writer, LedgerError> {
        let slot = Arc::clone(&self.writer).lock_owned();
        match tokio::time::timeout_at(deadline.at(), slot).await {
            Ok(slot) => Ok(Writer::new(slot)),
            Err(_) => Err(LedgerError::Unavailable(
                "the handler of another event holds the write lock; a handler should be short".into(),
            )),
        }
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        mut writer: Writer,
        what: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let file = Arc::clone(&self.file);
        let written = spawn_blocking(move || what(writer.connection(&file)?)).await;
        written.map_err(|error| stopped(&error))?.map_err(|error| unavailable(&error))
    }
}

fn find(
    connection: &Connection,
    statements: &SqliteStatements,
    event_id: &str,
) -> rusqlite::Result<Option<Mark>> {
    connection.prepare_cached(&statements.find)?.query_row([event_id], |row| row.get(0).map(Mark)).optional()
}
