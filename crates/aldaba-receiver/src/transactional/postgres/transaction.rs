use super::connection::Connection;
use super::errors::lost;
use super::savepoint::Savepoint;
use crate::transactional::{EventLock, PostgresStatements};
use crate::{LedgerError, Work};
use std::ops::Deref;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

/// The transaction in which an event is marked and its handler works. It dereferences to a client of tokio-postgres:
/// `query`, `execute`, `query_opt`, `prepare`, `batch_execute`, `copy_in` and the others.
///
/// The receiver commits it when the handler succeeds. As always in PostgreSQL, a failed statement aborts the transaction:
/// then nothing is committed, even if the handler succeeds. Use a [`savepoint`](Self::savepoint) for statements that may
/// fail.
#[derive(Debug)]
pub struct PostgresTransaction {
    connection: Connection,
    number: i64,
    _lock: EventLock,
}

impl PostgresTransaction {
    pub(super) fn new(connection: Connection, number: i64, lock: EventLock) -> Self {
        Self { connection, number, _lock: lock }
    }

    /// Sets a savepoint for work that may fail.
    pub async fn savepoint(&mut self) -> Result<Savepoint<'_>, Error> {
        Savepoint::set(&self.connection, 1).await
    }

    /// Prepares a statement, once for each connection of the pool.
    pub async fn prepare_cached(&self, statement: &str) -> Result<Statement, Error> {
        self.connection.prepare_cached(statement).await
    }
}

impl Deref for PostgresTransaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.connection
    }
}

impl Work for PostgresTransaction {
    async fn complete(self) -> Result<(), LedgerError> {
        // In one message: if the first fails, the second is not executed.
        let commit = format!("{}; COMMIT", PostgresStatements::before_commit(self.number));
        match self.connection.batch_execute(&commit).await {
            Ok(()) => {
                self.connection.give_back();
                Ok(())
            }
            Err(error) => {
                let failure = match error.code() {
                    Some(&SqlState::DIVISION_BY_ZERO) => LedgerError::Lost(
                        "the handler ended the transaction; only the receiver may end it".into(),
                    ),
                    Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => LedgerError::Lost(
                        "a statement of the handler failed and aborted the transaction; use a savepoint for \
                         statements that may fail"
                            .into(),
                    ),
                    _ => lost(&error),
                };
                self.connection.roll_back().await;
                Err(failure)
            }
        }
    }

    async fn abandon(self) {
        self.connection.roll_back().await;
    }
}
