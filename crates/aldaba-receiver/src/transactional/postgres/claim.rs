//! From an event to its mark.

use super::connection::Connection;
use super::ledger::PostgresLedger;
use super::transaction::PostgresTransaction;
use super::trouble::{in_table, unavailable};
use crate::transactional::{Deadline, Payload, Table, Turn};
use crate::{Claim, Event, LedgerError};
use futures_util::future::join;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, SimpleQueryMessage};

/// What a claim may take beyond the patience, which is for the work of others: a connection, three short statements.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How long a claim waits before it looks again for a mark that came or went. A trigger or a policy may hide it for ever.
const PAUSE: Duration = Duration::from_millis(20);

/// What the database says of an event.
enum Found {
    /// Marked, in this transaction.
    New(Connection, i64),
    Same,
    Other,
    /// Somebody is at it.
    Held,
    /// The mark came or went while it was asked for.
    Changed,
}

impl PostgresLedger {
    pub(super) async fn claim_in_turn(
        &self,
        event: &Event,
        patience: Duration,
    ) -> Result<Claim<PostgresTransaction>, LedgerError> {
        Table::holds(&event.id).map_err(|error| LedgerError::Unavailable(error.into()))?;
        let deadline = Deadline::after(patience);
        let Some(turn) = self.turns.take(&event.id, &deadline).await else { return Ok(Claim::InProgress) };
        loop {
            let found =
                tokio::time::timeout(deadline.left() + ANSWER_TIME, self.find(event, &deadline)).await;
            match found.map_err(|_| no_answer())?? {
                Found::New(connection, number) => return Ok(new(connection, number, turn)),
                Found::Same => return Ok(Claim::Duplicate),
                Found::Other => return Ok(Claim::OtherBody),
                Found::Held => return Ok(Claim::InProgress),
                Found::Changed if deadline.is_over() => return Ok(Claim::InProgress),
                Found::Changed => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn find(&self, event: &Event, deadline: &Deadline) -> Result<Found, LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        let usual = self.begin(&connection, deadline.left()).await?;
        match self.mark(&connection, event, &usual).await {
            Ok(Some(number)) => return Ok(Found::New(connection, number)),
            Ok(None) => {}
            Err(error) => {
                connection.roll_back().await;
                return match error.code() {
                    Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(Found::Held),
                    Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                        Ok(Found::Changed)
                    }
                    _ => Err(in_table(&error)),
                };
            }
        }
        let same = self.compare(&connection, event).await;
        connection.roll_back().await;
        Ok(match same.map_err(|error| in_table(&error))? {
            Some(true) => Found::Same,
            Some(false) => Found::Other,
            None => Found::Changed,
        })
    }

    /// Says how long the connection waits for locks by itself.
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

    /// The number of the transaction in which it is marked now; `None`, if it was before.
    async fn mark(
        &self,
        connection: &Connection,
        event: &Event,
        usual: &str,
    ) -> Result<Option<i64>, tokio_postgres::Error> {
        let payload = Payload::new(&event.body, self.keep);
        let (event_type, kept) = (Table::event_type(&event.event_type), payload.kept());
        let wait_again = wait_again_for(usual);
        // Typed, so that nothing is prepared: that would not pass through every proxy.
        let parameters =
            [(&event.id as _, Type::TEXT), (&event_type as _, Type::TEXT), (&kept as _, Type::TEXT)];
        let mark = connection.query_typed_opt(&self.statements.mark, &parameters);
        // Sent together, one after the other.
        let (marked, set) = join(mark, connection.batch_execute(&wait_again)).await;
        let marked = marked?;
        set?;
        Ok(marked.map(|row| row.get(0)))
    }

    /// Whether the mark is of the same body; `None`, if there is none any more.
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

/// Begins a transaction that waits this long for others' locks, and says how long it would have by itself.
fn begin(isolation: IsolationLevel, wait: Duration) -> String {
    let isolation = match isolation {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        _ => "SERIALIZABLE",
    };
    // Zero would be for ever.
    let wait = wait.as_millis().max(1);
    format!(
        "BEGIN ISOLATION LEVEL {isolation} READ WRITE; SHOW lock_timeout; SET LOCAL lock_timeout = {wait}"
    )
}

/// What the handler waits for locks is not the ledger's to say.
fn wait_again_for(usual: &str) -> String {
    format!("SET LOCAL lock_timeout = '{}'", usual.replace('\'', "''"))
}

fn new(connection: Connection, number: i64, turn: Turn) -> Claim<PostgresTransaction> {
    Claim::New(PostgresTransaction::new(connection, number, turn))
}

fn no_answer() -> LedgerError {
    LedgerError::Unavailable("the database has no connection for it, or does not answer in time".into())
}
