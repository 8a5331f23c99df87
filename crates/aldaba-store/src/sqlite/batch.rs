//! One commit: many operations, each with a result of its own.

use super::commits;
use super::failure::describe;
use super::hot::{Hot, Reader, Types};
use super::transaction::SqliteTransaction;
use crate::operations::{self, Batch, Counters, Monotonic, Numbers, Op, Outcome, Result, Rules, TypeCounts};
use crate::{Error, HotReads};
use rusqlite::{Connection, ErrorCode};
use std::sync::Arc;

/// How often the writer waits for a lock that another program holds on the file, each time for as long as the connection's busy
/// timeout.
const LOCK_TRIES: usize = 12;

/// A connection that writes, with what it keeps in memory between commits.
#[derive(Debug)]
pub struct Database {
    pub(super) connection: Connection,
    pub(super) rules: Rules,
    pub(super) clock: Monotonic,
    pub(super) types: Arc<Types>,
    pub(super) numbers: Numbers,
    /// How many commits have changed anything.
    pub(super) committed: u64,
}

/// Sees every operation of a batch from inside of its transaction. Simulations write down what happened by it.
pub trait Observer {
    fn before(&mut self, _reading: &dyn HotReads, _op: &Op) {}

    fn after(&mut self, _reading: &dyn HotReads, _op: &Op, _outcome: &Outcome) {}
}

/// Looks away.
impl Observer for () {}

impl Database {
    /// Runs `ops` in one transaction and returns when it is on disk, with one outcome for each, in order. An error concerns
    /// them all: nothing of them was kept, or (with [`Error::Failed`]) nobody knows what was.
    ///
    /// An operation that the database refuses by itself, for a value that it cannot hold, fails alone: each of the others is
    /// run again, in a transaction of its own.
    pub fn run_batch(&mut self, ops: &[Op]) -> Vec<Result<Outcome>> {
        self.run_observed(ops, &mut ())
    }

    /// The same under the eyes of an observer. It sees an operation twice that is run again.
    pub fn run_observed(&mut self, ops: &[Op], observer: &mut impl Observer) -> Vec<Result<Outcome>> {
        match self.run(ops.iter(), observer) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(Error::Refused(_)) => self.run_each(ops, observer),
            Err(error) => ops.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    fn run_each(&mut self, ops: &[Op], observer: &mut impl Observer) -> Vec<Result<Outcome>> {
        let mut failed = None;
        let mut run_one = |op| match &failed {
            Some(error) => Err(Error::clone(error)),
            None => {
                let outcome =
                    self.run([op].into_iter(), observer).map(|mut outcomes| outcomes.swap_remove(0));
                failed = outcome.as_ref().err().filter(|error| !matches!(error, Error::Refused(_))).cloned();
                outcome
            }
        };
        ops.iter().map(&mut run_one).collect()
    }

    fn run<'o>(
        &mut self,
        ops: impl Iterator<Item = &'o Op>,
        observer: &mut impl Observer,
    ) -> Result<Vec<Outcome>> {
        begin(&self.connection)?;
        let changes = self.connection.total_changes();
        let done = self
            .types
            .write(&self.connection, &self.clock, false)
            .and_then(|()| self.apply(ops, observer))
            .and_then(|done| Ok(commits::count(&self.connection, changes).map(|()| done)?))
            .and_then(|done| Ok(self.connection.prepare_cached("COMMIT")?.execute(()).map(|_| done)?));
        match done {
            Ok((outcomes, counted)) => {
                self.types.ended(&self.clock, Some(counted));
                self.committed += u64::from(self.connection.total_changes() != changes);
                Ok(outcomes)
            }
            Err(error) => {
                self.types.ended(&self.clock, None);
                self.numbers.roll_back();
                Err(roll_back(&self.connection, error))
            }
        }
    }

    fn apply<'o>(
        &mut self,
        ops: impl Iterator<Item = &'o Op>,
        observer: &mut impl Observer,
    ) -> Result<(Vec<Outcome>, TypeCounts)> {
        let reader = Reader { connection: &self.connection, types: &self.types };
        let (tx, mut counters) = (SqliteTransaction(&self.connection), Counters::default());
        let mut hot = Hot::new(&self.connection);
        let mut batch = Batch {
            tx: &tx,
            rules: self.rules,
            clock: &self.clock,
            numbers: &mut self.numbers,
            counters: &mut counters,
        };
        let apply = |op| {
            observer.before(&reader, op);
            let outcome = operations::apply(&mut batch, &mut hot, op)?;
            observer.after(&reader, op, &outcome);
            Ok(outcome)
        };
        let outcomes = ops.map(apply).collect::<Result<Vec<_>>>()?;
        counters.write(&tx)?;
        Ok((outcomes, counters.types))
    }

    /// Writes what is counted and was not written yet.
    pub(super) fn write_types(&mut self) -> Result<()> {
        begin(&self.connection)?;
        let done = self
            .types
            .write(&self.connection, &self.clock, true)
            .and_then(|()| Ok(self.connection.prepare_cached("COMMIT")?.execute(()).map(drop)?));
        self.types.ended(&self.clock, done.is_ok().then(TypeCounts::default));
        done.map_err(|error| roll_back(&self.connection, error))
    }
}

fn begin(connection: &Connection) -> Result<()> {
    let mut result = Ok(());
    for _ in 0..LOCK_TRIES {
        result =
            connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute(())).map(drop);
        match &result {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                tracing::warn!("another program holds a lock on the database: nothing can be written");
            }
            _ => break,
        }
    }
    Ok(result?)
}

fn roll_back(connection: &Connection, error: Error) -> Error {
    // SQLite may have rolled back by itself already.
    if !connection.is_autocommit()
        && let Err(second) = connection.execute_batch("ROLLBACK")
    {
        return Error::Failed(format!("{error}; rolling back failed too: {}", describe(&second)));
    }
    match error {
        // Nobody interrupts the writer.
        Error::Timeout => Error::Failed("the writer was interrupted".into()),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::operations::{Op, Outcome};
    use crate::sqlite::in_memory;

    fn settle(value: usize) -> Op {
        Op::SettleSetting("s", vec![7; value])
    }

    #[test]
    fn a_batch_can_be_run_inline() {
        let mut database = in_memory().unwrap();
        let outcomes = database.run_batch(&[settle(1), settle(2)]);
        assert_eq!(outcomes, [Ok(Outcome::SettleSetting(vec![7])), Ok(Outcome::SettleSetting(vec![7]))]);
        assert_eq!(database.run_batch(&[]), []);
    }

    #[test]
    fn a_batch_that_does_not_fit_leaves_no_transaction_open() {
        let mut database = in_memory().unwrap();
        database.connection.pragma_update_and_check(None, "max_page_count", 120, |_| Ok(())).unwrap();
        assert_eq!(database.run_batch(&[settle(1 << 20)]), [Err(Error::Full)]);
        assert!(database.connection.is_autocommit());
        assert!(database.run_batch(&[settle(1)])[0].is_ok());
    }

    #[test]
    fn an_operation_that_sqlite_refuses_fails_alone() {
        let mut database = in_memory().unwrap();
        database.connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, 1000).unwrap();
        let outcomes = database.run_batch(&[settle(2000), Op::SettleSetting("t", vec![1])]);
        assert!(matches!(&outcomes[0], Err(Error::Refused(_))), "{outcomes:?}");
        assert_eq!(outcomes[1], Ok(Outcome::SettleSetting(vec![1])));
    }
}
