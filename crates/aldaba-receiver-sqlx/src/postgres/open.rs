use crate::lent::Open;
use aldaba_receiver::transactional::PostgresStatements;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, Row, SqlSafeStr, Transaction};
use std::time::Duration;

/// Attempts of one rollback. sqlx reports an earlier unread error to the next statement and does not execute that one.
const MAX_ROLLBACK_TRIES: usize = 8;

/// A transaction that writes, in a session that is otherwise read-only. So nothing is committed automatically after sqlx or
/// the handler has ended the transaction.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    pub(super) transaction: Transaction<'static, Postgres>,
    settings: SessionSettings,
}

/// The session's own settings, which are restored.
#[derive(Debug)]
struct SessionSettings {
    /// `default_transaction_read_only`: `on` or `off`.
    read_only: String,
    /// `lock_timeout`.
    lock_timeout: String,
}

impl OpenTransaction {
    /// Begins a transaction with this `lock_timeout`.
    pub(super) async fn begin(pool: &PgPool, mode: &str, wait: Duration) -> sqlx::Result<Self> {
        let mut connection = pool.acquire().await?;
        let settings = match begin(&mut connection, mode, wait).await {
            Ok(settings) => settings,
            Err(error) => {
                // The session may be read-only now, and its own settings are unknown.
                connection.close_on_drop();
                return Err(error);
            }
        };
        // The transaction has begun; the empty statement tells sqlx so.
        let transaction = Transaction::begin(connection, Some("".into_sql_str())).await?;
        Ok(Self { transaction, settings })
    }

    /// Restores the session's own `lock_timeout` for the handler.
    pub(super) async fn restore_lock_timeout(&mut self) -> sqlx::Result<()> {
        let wait = format!("SET LOCAL lock_timeout = {}", quoted(&self.settings.lock_timeout));
        sqlx::raw_sql(AssertSqlSafe(wait)).execute(&mut *self.transaction).await.map(drop)
    }

    /// Commits; fails unless this is still the transaction with this number.
    pub(super) async fn commit(&mut self, number: i64) -> sqlx::Result<()> {
        // In one message: if one fails, the next is not executed.
        let commit = format!(
            "{}; {}; COMMIT{}",
            PostgresStatements::before_commit(number),
            self.write_as_usual(),
            self.and_begin()
        );
        sqlx::raw_sql(AssertSqlSafe(commit)).execute(&mut *self.transaction).await.map(drop)
    }

    fn write_as_usual(&self) -> String {
        format!("SET SESSION default_transaction_read_only = {}", quoted(&self.settings.read_only))
    }

    /// sqlx does not notice that the ledger ended the transaction. If sqlx counts one, it must find one that it can end.
    fn and_begin(&self) -> &'static str {
        if self.transaction.is_in_transaction() { "; BEGIN" } else { "" }
    }

    async fn try_to_roll_back(&mut self) -> sqlx::Result<()> {
        // In its own transaction: otherwise it would become part of the next.
        let roll_back = format!("ROLLBACK; BEGIN; {}; COMMIT{}", self.write_as_usual(), self.and_begin());
        sqlx::raw_sql(AssertSqlSafe(roll_back)).execute(&mut *self.transaction).await.map(drop)
    }
}

impl Open for OpenTransaction {
    async fn roll_back(mut self) {
        for _ in 0..MAX_ROLLBACK_TRIES {
            if self.try_to_roll_back().await.is_ok() {
                return self.give_back().await;
            }
        }
        // A connection that cannot be restored is closed; the pool notices that.
        let close = "SELECT pg_terminate_backend(pg_backend_pid())";
        drop(sqlx::raw_sql(close).execute(&mut *self.transaction).await);
    }

    async fn give_back(self) {
        // Rolls back the empty transaction.
        drop(self.transaction.rollback().await);
    }
}

/// Begins in one message. A proxy with transaction pooling does not switch connections within a transaction, so the session
/// setting stays with this client until it is restored.
async fn begin(connection: &mut PgConnection, mode: &str, wait: Duration) -> sqlx::Result<SessionSettings> {
    // Zero would mean forever.
    let wait = wait.as_millis().max(1);
    // In its own transaction: a session setting is rolled back with the transaction that sets it.
    let begin = format!(
        "BEGIN {mode};
         SELECT current_setting('default_transaction_read_only'), current_setting('lock_timeout');
         SET SESSION default_transaction_read_only = on; COMMIT;
         BEGIN {mode}; SET LOCAL lock_timeout = {wait}"
    );
    // Reads all rows: an error after the first row must not be missed.
    let rows = sqlx::raw_sql(AssertSqlSafe(begin)).fetch_all(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(SessionSettings { read_only: row.try_get(0)?, lock_timeout: row.try_get(1)? })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
