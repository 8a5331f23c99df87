use crate::lent::Open;
use crate::trouble::{lost, unavailable};
use aldaba_receiver::LedgerError;
use sqlx::{AssertSqlSafe, Connection, Sqlite, Transaction};
use tokio::sync::OwnedMutexGuard;

/// Set in the transaction in which an event was marked, and in no other: it tells that one from another that was begun
/// after its end.
const SET: &str = "SAVEPOINT aldaba_event";
const RELEASE: &str = "RELEASE aldaba_event";

/// A transaction, and the right to write. Nothing is committed in its connection but by the ledger.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    // Before the writer: the next one begins when this has ended.
    pub(super) transaction: Transaction<'static, Sqlite>,
    _writer: OwnedMutexGuard<()>,
}

impl OpenTransaction {
    /// SQLite may end the transaction by itself, and sqlx may. What the handler wrote after that would be committed at once
    /// and without the mark, so nothing is, until the work is completed.
    pub(super) async fn guard(
        mut transaction: Transaction<'static, Sqlite>,
        writer: OwnedMutexGuard<()>,
    ) -> Result<Self, LedgerError> {
        let guarded = async {
            sqlx::raw_sql(SET).execute(&mut *transaction).await?;
            // `false` makes a rollback of it.
            transaction.lock_handle().await?.set_commit_hook(|| false);
            Ok(())
        };
        guarded.await.map_err(|error| unavailable(&error))?;
        Ok(Self { transaction, _writer: writer })
    }

    /// Fails unless this is still the transaction in which the event was marked.
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
        let ended = || LedgerError::Lost("the transaction was ended before the receiver did".into());
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

    /// sqlx does not see an end of the ledger's. Where it counts a transaction, it must find one that it can end itself.
    fn and_begin(&self) -> &'static str {
        if self.transaction.is_in_transaction() { "; BEGIN" } else { "" }
    }
}

impl Open for OpenTransaction {
    async fn roll_back(mut self) {
        drop(self.allow_commits().await);
        // There may be none any more.
        drop(sqlx::raw_sql("ROLLBACK").execute(&mut *self.transaction).await);
        if self.transaction.is_in_transaction() {
            drop(sqlx::raw_sql("BEGIN").execute(&mut *self.transaction).await);
        }
        self.give_back().await;
    }

    async fn give_back(self) {
        // The empty one.
        drop(self.transaction.rollback().await);
    }
}
