use super::connection::Connection;
use super::savepoint::Savepoint;
use super::trouble::lost;
use crate::transactional::{PostgresStatements, Turn};
use crate::{LedgerError, Work};
use std::ops::Deref;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

/// The transaction in which an event was marked, and in which its handler works. It reads as a client of
/// tokio-postgres: `query`, `execute`, `query_opt`, `prepare`, `batch_execute`, `copy_in` and the others.
///
/// The receiver commits it, once the handler has succeeded. A statement that fails has ended the transaction, as always
/// in PostgreSQL: then nothing is committed, also if the handler goes on as if all were well. What may fail belongs
/// into a [`savepoint`](Self::savepoint).
#[derive(Debug)]
pub struct PostgresTransaction {
    connection: Connection,
    number: i64,
    _turn: Turn,
}

impl PostgresTransaction {
    pub(super) fn new(connection: Connection, number: i64, turn: Turn) -> Self {
        Self { connection, number, _turn: turn }
    }

    /// A part of the work that may fail without the rest.
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
        // Together: if the first fails, the second is not done.
        let commit = format!("{}; COMMIT", PostgresStatements::before_commit(self.number));
        match self.connection.batch_execute(&commit).await {
            Ok(()) => {
                self.connection.give_back();
                Ok(())
            }
            Err(error) => {
                let trouble = match error.code() {
                    Some(&SqlState::DIVISION_BY_ZERO) => LedgerError::Lost(
                        "the handler has ended the transaction by itself, which is the receiver's to do"
                            .into(),
                    ),
                    Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => LedgerError::Lost(
                        "a statement of the handler failed, and that ended the transaction; use a savepoint \
                         around what may fail"
                            .into(),
                    ),
                    _ => lost(&error),
                };
                self.connection.roll_back().await;
                Err(trouble)
            }
        }
    }

    async fn abandon(self) {
        self.connection.roll_back().await;
    }
}
