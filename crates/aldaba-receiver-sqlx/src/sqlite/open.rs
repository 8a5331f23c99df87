use crate::errors::{lost, unavailable};
use crate::lent::Open;
use aldaba_receiver::LedgerError;
use sqlx::{AssertSqlSafe, Connection, Sqlite, Transaction};
use tokio::sync::OwnedMutexGuard;

/// A savepoint in the transaction that marked the event. It distinguishes this transaction from one that was begun after
/// its end.
const SET: &str = "SAVEPOINT aldaba_event";
const RELEASE: &str = "RELEASE aldaba_event";

/// A transaction and the write lock. Only the ledger can commit in its connection.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    // Dropped before the writer's lock: the next writer begins after this has ended.
    pub(super) transaction: Transaction<'static, Sqlite>,
    _writer: OwnedMutexGuard<()>,
}

impl OpenTransaction {
    /// SQLite or sqlx may end the transaction early. Later writes would then commit immediately and without the mark; so all
    /// commits are refused until the work is completed.
    pub(super) async fn guard(
        mut transaction: Transaction<'static, Sqlite>,
        writer: OwnedMutexGuard<()>,
    ) -> Result<Self, LedgerError> {
        let guarded = async {
            sqlx::raw_sql(SET).execute(&mut *transaction).await?;
            // `false` turns a commit into a rollback.
            transaction.lock_handle().await?.set_commit_hook(|| false);
            Ok(())
        };
        guarded.await.map_err(|error| unavailable(&error))?;
        Ok(Self { transaction, _writer: writer })
    }

    /// Commits; fails unless this is still the transaction that marked the event.
    pub(super) async fn commit(&mut self, find: &str, event_id: &str) -> Result<(), LedgerError> {
        self.check(find, event_id).await?;
        let commit = format!("COMMIT{}", self.and_begin());
        let committed = async {
            self.allow_commits().await?;
            sqlx::raw_sql(AssertSqlSafe(commit)).execute(&mut *self.transaction).await
        };
        committed.await.map(drop).map_err(|error| lost(&error))
    }

    async fn check(&mut self, find: &str, event_id: &str) -> Result<(), LedgerError> {
        let ended = || LedgerError::Lost("the transaction was ended before the receiver committed it".into());
        if sqlx::raw_sql(RELEASE).execute(&mut *self.transaction).await.is_err() {
            return Err(ended());
        }
        let find = sqlx::query(AssertSqlSafe(find.to_owned())).bind(event_id);
        match find.fetch_optional(&mut *self.transaction).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(ended()),
            Err(error) => Err(lost(&error)),
        }
    }

    async fn allow_commits(&mut self) -> sqlx::Result<()> {
        self.transaction.lock_handle().await?.remove_commit_hook();
        Ok(())
    }

    /// sqlx does not notice that the ledger ended the transaction. If sqlx counts one, it must find one that it can end.
    fn and_begin(&self) -> &'static str {
        if self.transaction.is_in_transaction() { "; BEGIN" } else { "" }
    }
}

impl Open for OpenTransaction {
    async fn roll_back(mut self) {
        drop(self.allow_commits().await);
        // There may be no open transaction.
        drop(sqlx::raw_sql("ROLLBACK").execute(&mut *self.transaction).await);
        if self.transaction.is_in_transaction() {
            drop(sqlx::raw_sql("BEGIN").execute(&mut *self.transaction).await);
        }
        self.give_back().await;
    }

    async fn give_back(self) {
        // Rolls back the empty transaction.
        drop(self.transaction.rollback().await);
    }
}
