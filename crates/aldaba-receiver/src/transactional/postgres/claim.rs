//! Claims an event by marking it.

use super::connection::Connection;
use super::errors::{in_table, unavailable};
use super::ledger::PostgresLedger;
use super::transaction::PostgresTransaction;
use crate::transactional::{Deadline, EventLock, Payload, Table};
use crate::{Claim, Event, LedgerError};
use futures_util::future::join;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, SimpleQueryMessage};

/// The time limit of a claim besides the wait for other copies: a connection and three short statements.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The delay before a claim is retried after a concurrent change. A trigger or a policy may hide a mark forever.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The result of marking an event.
enum MarkResult {
    /// The event was marked in this transaction.
    New(Connection, i64),
    Same,
    Other,
    /// Another copy is being handled.
    Held,
    /// The mark was created or removed concurrently.
    Changed,
}

impl PostgresLedger {
    pub(super) async fn claim_locked(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<PostgresTransaction>, LedgerError> {
        Table::holds(&event.id).map_err(|error| LedgerError::Unavailable(error.into()))?;
        let deadline = Deadline::after(wait_timeout);
        let Some(lock) = self.locks.take(&event.id, &deadline).await else { return Ok(Claim::InProgress) };
        loop {
            let found =
                tokio::time::timeout(deadline.left() + STATEMENT_TIMEOUT, self.find(event, &deadline)).await;
            match found.map_err(|_| no_answer())?? {
                MarkResult::New(connection, number) => return Ok(new(connection, number, lock)),
                MarkResult::Same => return Ok(Claim::Duplicate),
                MarkResult::Other => return Ok(Claim::OtherBody),
                MarkResult::Held => return Ok(Claim::InProgress),
                MarkResult::Changed if deadline.is_over() => return Ok(Claim::InProgress),
                MarkResult::Changed => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn find(&self, event: &Event, deadline: &Deadline) -> Result<MarkResult, LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        let usual = self.begin(&connection, deadline.left()).await?;
        match self.mark(&connection, event, &usual).await {
            Ok(Some(number)) => return Ok(MarkResult::New(connection, number)),
            Ok(None) => {}
            Err(error) => {
                connection.roll_back().await;
                return match error.code() {
                    Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(MarkResult::Held),
                    Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                        Ok(MarkResult::Changed)
                    }
                    _ => Err(in_table(&error)),
                };
            }
        }
        let same = self.compare(&connection, event).await;
        connection.roll_back().await;
        Ok(match same.map_err(|error| in_table(&error))? {
            Some(true) => MarkResult::Same,
            Some(false) => MarkResult::Other,
            None => MarkResult::Changed,
        })
    }

    /// Begins a transaction; returns the connection's own `lock_timeout`.
    async fn begin(&self, connection: &Connection, wait: Duration) -> Result<String, LedgerError> {
        let answers = connection
            .simple_query(&begin(self.isolation, wait))
            .await
            .map_err(|error| unavailable(&error))?;
        let shown = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(shown.unwrap_or("0").to_owned())
    }

    /// Marks the event and returns the number of the transaction. `None` if it was marked before.
    async fn mark(
        &self,
        connection: &Connection,
        event: &Event,
        usual: &str,
    ) -> Result<Option<i64>, tokio_postgres::Error> {
        let payload = Payload::new(&event.body, self.keep);
        let (event_type, kept) = (Table::event_type(&event.event_type), payload.kept());
        let wait_again = wait_again_for(usual);
        // Typed, without a prepared statement: some proxies do not support those.
        let parameters =
            [(&event.id as _, Type::TEXT), (&event_type as _, Type::TEXT), (&kept as _, Type::TEXT)];
        let mark = connection.query_typed_opt(&self.statements.mark, &parameters);
        // Sent as a pipeline.
        let (marked, set) = join(mark, connection.batch_execute(&wait_again)).await;
        let marked = marked?;
        set?;
        Ok(marked.map(|row| row.get(0)))
    }

    /// Whether the mark has the same body; `None` if the mark was removed.
    async fn compare(
        &self,
        connection: &Connection,
        event: &Event,
    ) -> Result<Option<bool>, tokio_postgres::Error> {
        let payload = Payload::new(&event.body, self.keep);
        let [one, other] = payload.forms();
        let parameters = [(&event.id as _, Type::TEXT), (&one as _, Type::TEXT), (&other as _, Type::TEXT)];
        let row = connection.query_typed_opt(&self.statements.compare, &parameters).await?;
        Ok(row.map(|row| row.get(0)))
    }
}

/// Begins a transaction with this `lock_timeout`, and shows the session's own.
fn begin(isolation: IsolationLevel, wait: Duration) -> String {
    let isolation = match isolation {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        _ => "SERIALIZABLE",
    };
    // Zero would mean forever.
    let wait = wait.as_millis().max(1);
    format!(
        "BEGIN ISOLATION LEVEL {isolation} READ WRITE; SHOW lock_timeout; SET LOCAL lock_timeout = {wait}"
    )
}

/// Restores the session's own `lock_timeout` for the handler.
fn wait_again_for(usual: &str) -> String {
    format!("SET LOCAL lock_timeout = '{}'", usual.replace('\'', "''"))
}

fn new(connection: Connection, number: i64, lock: EventLock) -> Claim<PostgresTransaction> {
    Claim::New(PostgresTransaction::new(connection, number, lock))
}

fn no_answer() -> LedgerError {
    LedgerError::Unavailable("no connection is free, or the database does not answer in time".into())
}
