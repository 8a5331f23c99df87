use crate::lent::Open;
use aldaba_receiver::transactional::PostgresStatements;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, Row, SqlSafeStr, Transaction};
use std::time::Duration;

/// How often a rollback is tried. sqlx tells the next who asks of errors that nobody has waited for, and does not ask then.
const TRIES: usize = 8;

/// A transaction that writes, in a session that otherwise only reads. So nothing is committed by itself after the
/// transaction was ended, be it by sqlx or by hand.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    pub(super) transaction: Transaction<'static, Postgres>,
    usual: Usual,
}

/// What the session does by itself.
#[derive(Debug)]
struct Usual {
    /// Whether its transactions only read: `on` or `off`.
    only_reads: String,
    /// How long it waits for locks.
    lock_timeout: String,
}

impl OpenTransaction {
    /// Begins one that waits this long for others' locks.
    pub(super) async fn begin(pool: &PgPool, mode: &str, wait: Duration) -> sqlx::Result<Self> {
        let mut connection = pool.acquire().await?;
        let usual = match begin(&mut connection, mode, wait).await {
            Ok(usual) => usual,
            Err(error) => {
                // It may only read now, and nobody knows whether it did before.
                connection.close_on_drop();
                return Err(error);
            }
        };
        // It is begun, and this tells sqlx so. Nothing can go wrong with nothing, unless the connection is lost.
        let transaction = Transaction::begin(connection, Some("".into_sql_str())).await?;
        Ok(Self { transaction, usual })
    }

    /// What the handler waits for locks is not the ledger's to say.
    pub(super) async fn wait_for_locks_as_usual(&mut self) -> sqlx::Result<()> {
        let wait = format!("SET LOCAL lock_timeout = {}", quoted(&self.usual.lock_timeout));
        sqlx::raw_sql(AssertSqlSafe(wait)).execute(&mut *self.transaction).await.map(drop)
    }

    /// Fails unless this is still the transaction of this number.
    pub(super) async fn commit(&mut self, number: i64) -> sqlx::Result<()> {
        // Together: if one fails, the next is not done.
        let commit = format!(
            "{}; {}; COMMIT{}",
            PostgresStatements::before_commit(number),
            self.write_as_usual(),
            self.and_begin()
        );
        sqlx::raw_sql(AssertSqlSafe(commit)).execute(&mut *self.transaction).await.map(drop)
    }

    fn write_as_usual(&self) -> String {
        format!("SET SESSION default_transaction_read_only = {}", quoted(&self.usual.only_reads))
    }

    /// sqlx does not see an end of the ledger's. Where it counts a transaction, it must find one that it can end itself.
    fn and_begin(&self) -> &'static str {
        if self.transaction.is_in_transaction() { "; BEGIN" } else { "" }
    }

    async fn try_to_roll_back(&mut self) -> sqlx::Result<()> {
        // In a transaction of its own: without one it would become part of the next.
        let roll_back = format!("ROLLBACK; BEGIN; {}; COMMIT{}", self.write_as_usual(), self.and_begin());
        sqlx::raw_sql(AssertSqlSafe(roll_back)).execute(&mut *self.transaction).await.map(drop)
    }
}

impl Open for OpenTransaction {
    async fn roll_back(mut self) {
        for _ in 0..TRIES {
            if self.try_to_roll_back().await.is_ok() {
                return self.give_back().await;
            }
        }
        // What cannot be put in order is better closed, and the pool finds that out.
        let close = "SELECT pg_terminate_backend(pg_backend_pid())";
        drop(sqlx::raw_sql(close).execute(&mut *self.transaction).await);
    }

    async fn give_back(self) {
        // The empty one.
        drop(self.transaction.rollback().await);
    }
}

/// In one message. A proxy that hands connections on at the end of each transaction does not do it in the middle of
/// one, so what is set for the session stays with this client until it is taken back.
async fn begin(connection: &mut PgConnection, mode: &str, wait: Duration) -> sqlx::Result<Usual> {
    // Zero would be for ever.
    let wait = wait.as_millis().max(1);
    // In a transaction of its own: what is set for a session within another one goes with it.
    let begin = format!(
        "BEGIN {mode};
         SELECT current_setting('default_transaction_read_only'), current_setting('lock_timeout');
         SET SESSION default_transaction_read_only = on; COMMIT;
         BEGIN {mode}; SET LOCAL lock_timeout = {wait}"
    );
    // All of them: whoever stops at the first row does not hear of what fails behind it.
    let rows = sqlx::raw_sql(AssertSqlSafe(begin)).fetch_all(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(Usual { only_reads: row.try_get(0)?, lock_timeout: row.try_get(1)? })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
