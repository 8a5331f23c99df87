//! One commit: many operations, each with a result of its own.

use super::commits;
use super::failure::describe;
use super::reader::Reader;
use super::transaction::SqliteTransaction;
use super::types::{self, Types};
use crate::operations::{
    self, Batch, BatchCounts, Counters, LiveCounts, Monotonic, Numbers, Op, OpOutcome, Result, Rules,
    TypeCounts, WriteCounts,
};
use crate::{BackendReads, Error};
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;

/// How often the writer waits for a lock that another program holds on the file, each time for as long as the connection's busy
/// timeout. Then those who wait for the writer are told to come back.
const LOCK_TRIES: usize = 12;

/// A connection that writes, with what it keeps in memory between commits.
#[derive(Debug)]
pub struct Database {
    pub(super) connection: Connection,
    pub(super) rules: Rules,
    pub(super) clock: Monotonic,
    pub(super) types: Arc<Types>,
    pub(super) live: LiveCounts,
    pub(super) numbers: Numbers,
    /// How many commits have changed anything.
    pub(super) committed: u64,
}

/// Sees every operation of a batch from inside of its transaction. Simulations write down what happened by it.
pub trait Observer {
    fn before(&mut self, _reading: &dyn BackendReads, _op: &Op) {}

    fn after(&mut self, _reading: &dyn BackendReads, _op: &Op, _outcome: &OpOutcome) {}
}

/// Looks away.
impl Observer for () {}

impl Database {
    /// Runs `ops` in one transaction and returns when it is on disk, with one outcome for each, in order. An error concerns
    /// them all: nothing of them was kept, or (with [`Error::Failed`]) nobody knows what was.
    ///
    /// An operation, or an item of one, that the database refuses by itself, for a value that it cannot hold, fails alone: the
    /// batch is run again, with a savepoint before each of them.
    pub fn run_batch(&mut self, ops: &[Op]) -> Vec<Result<OpOutcome>> {
        self.run_observed(ops, &mut ())
    }

    /// The same under the eyes of an observer. It sees an operation twice that is run again.
    pub fn run_observed(&mut self, ops: &[Op], observer: &mut impl Observer) -> Vec<Result<OpOutcome>> {
        let outcomes = match self.run(ops, false, observer) {
            Err(Error::Refused(_)) => self.run(ops, true, observer),
            outcomes => outcomes,
        };
        outcomes.unwrap_or_else(|error| ops.iter().map(|_| Err(error.clone())).collect())
    }

    fn run(
        &mut self,
        ops: &[Op],
        isolates: bool,
        observer: &mut impl Observer,
    ) -> Result<Vec<Result<OpOutcome>>> {
        let overwrites = ops.iter().any(Op::overwrites_deleted);
        if overwrites {
            set_overwriting(&self.connection, true);
        }
        let outcomes = self.commit(ops, isolates, observer);
        if overwrites {
            set_overwriting(&self.connection, false);
        }
        outcomes
    }

    fn commit(
        &mut self,
        ops: &[Op],
        isolates: bool,
        observer: &mut impl Observer,
    ) -> Result<Vec<Result<OpOutcome>>> {
        // What is counted of an application's attempts in memory must not come to disk after the application is gone.
        let writes_all = ops.iter().any(|op| matches!(op, Op::StepErasure(_)));
        begin(&self.connection)?;
        let changes = self.connection.total_changes();
        let done = self
            .types
            .write(&self.connection, &self.clock, writes_all)
            .and_then(|()| self.write_live(WriteCounts::Due))
            .and_then(|()| self.apply(ops, isolates, observer))
            .and_then(|done| Ok(commits::count(&self.connection, changes).map(|()| done)?))
            .and_then(|done| Ok(self.connection.prepare_cached("COMMIT")?.execute(()).map(|_| done)?));
        match done {
            Ok((outcomes, counted)) => {
                self.live.ended(&self.clock, Some(&counted));
                self.live.tell(&counted, ops);
                self.types.ended(&self.clock, Some(counted.types));
                self.committed += u64::from(self.connection.total_changes() != changes);
                Ok(outcomes)
            }
            Err(error) => {
                self.live.ended(&self.clock, None);
                self.types.ended(&self.clock, None);
                self.numbers.roll_back();
                Err(roll_back(&self.connection, error))
            }
        }
    }

    fn apply(
        &mut self,
        ops: &[Op],
        isolates: bool,
        observer: &mut impl Observer,
    ) -> Result<(Vec<Result<OpOutcome>>, BatchCounts)> {
        let reader = Reader { connection: &self.connection, types: &self.types };
        let (tx, mut counters) = (SqliteTransaction::of_batch(&self.connection), Counters::default());
        let mut batch = Batch {
            tx: &tx,
            rules: self.rules,
            clock: &self.clock,
            numbers: &mut self.numbers,
            counters: &mut counters,
            versions: HashMap::new(),
            isolates,
        };
        let apply = |op| {
            observer.before(&reader, op);
            let outcome = operations::apply(&mut batch, op)?;
            if matches!(op, Op::Remove(_) | Op::StepErasure(_)) {
                types::attempts_were_removed(&self.connection)?;
            }
            if let Ok(outcome) = &outcome {
                observer.after(&reader, op, outcome);
            }
            Ok(outcome)
        };
        let outcomes = ops.iter().map(apply).collect::<Result<Vec<_>>>()?;
        counters.write(&tx)?;
        Ok((outcomes, counters.batch))
    }

    /// Writes what is counted and was not written yet: all of it, or what has waited long enough.
    pub(super) fn write_counted(&mut self, all: bool) -> Result<()> {
        begin(&self.connection)?;
        let when = if all { WriteCounts::All } else { WriteCounts::Now };
        let done = self
            .types
            .write(&self.connection, &self.clock, all)
            .and_then(|()| self.write_live(when))
            .and_then(|()| Ok(self.connection.prepare_cached("COMMIT")?.execute(()).map(drop)?));
        self.live.ended(&self.clock, done.is_ok().then(BatchCounts::default).as_ref());
        self.types.ended(&self.clock, done.is_ok().then(TypeCounts::default));
        done.map_err(|error| roll_back(&self.connection, error))
    }

    fn write_live(&self, when: WriteCounts) -> Result<()> {
        self.live.write(&SqliteTransaction::new(&self.connection), &self.clock, when)
    }
}

/// Whether what is deleted is overwritten with zeros, also in pages that become free. It costs a read and a write of every page
/// that a large value had, so that not everything is deleted so.
fn set_overwriting(connection: &Connection, on: bool) {
    let set = connection.pragma_update_and_check(None, "secure_delete", on, |_| Ok(()));
    if let Err(error) = set {
        tracing::warn!(error = describe(&error), "what is deleted may stay in free pages of the database");
    }
}

fn begin(connection: &Connection) -> Result<()> {
    let mut result = Ok(());
    for _ in 0..LOCK_TRIES {
        let begin = || connection.prepare_cached("BEGIN IMMEDIATE")?.execute(()).map(drop);
        result = begin().map_err(Error::from);
        match &result {
            Err(Error::Unavailable(why)) => tracing::warn!(why, "nothing can be written to the database"),
            _ => break,
        }
    }
    result
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
    use crate::conformance::Scene;
    use crate::operations::{Op, OpOutcome};
    use crate::sqlite::{Options, SqliteStore, in_memory, open};
    use crate::{Accept, Accepted, Content, Error, NewAttempt, Record, Recorded, Seq, Store};
    use rusqlite::Connection;
    use rusqlite::limits::Limit;
    use std::sync::Arc;
    use std::time::Duration;

    fn settle(value: usize) -> Op {
        Op::SettleSetting("s", vec![7; value])
    }

    #[test]
    fn a_batch_can_be_run_inline() {
        let mut database = in_memory().unwrap();
        let outcomes = database.run_batch(&[settle(1), settle(2)]);
        assert_eq!(outcomes, [Ok(OpOutcome::SettleSetting(vec![7])), Ok(OpOutcome::SettleSetting(vec![7]))]);
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
        database.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1000).unwrap();
        let outcomes = database.run_batch(&[settle(2000), Op::SettleSetting("t", vec![1])]);
        assert!(matches!(&outcomes[0], Err(Error::Refused(_))), "{outcomes:?}");
        assert_eq!(outcomes[1], Ok(OpOutcome::SettleSetting(vec![1])));
    }

    #[test]
    fn while_another_program_holds_the_file_nothing_is_written_and_afterwards_all_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        drop(SqliteStore::open(&Options::new(folder.path())).unwrap());
        let open = || Connection::open(folder.path().join("aldaba.db")).unwrap();
        let (mut database, other) = (open::bare(open()), open());
        database.connection.busy_timeout(Duration::ZERO).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let outcomes = database.run_batch(&[settle(1)]);
        assert!(matches!(outcomes[..], [Err(Error::Unavailable(_))]), "{outcomes:?}");
        drop(other);
        assert!(database.run_batch(&[settle(1)])[0].is_ok());
    }

    #[test]
    fn an_event_or_a_result_that_sqlite_refuses_fails_alone_and_its_neighbours_are_written_in_the_same_commit()
     {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scene = Scene::new(store.clone());
        let tenant = runtime.block_on(scene.with_endpoints(1));
        runtime.block_on(store.close()).unwrap();
        let mut database = open::bare(Connection::open(folder.path().join("aldaba.db")).unwrap());
        database.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 20_000).unwrap();
        let number = |database: &super::Database, query: &str| -> i64 {
            database.connection.query_row(query, (), |row| row.get(0)).unwrap()
        };
        let commits = database.committed;

        let mut events: Vec<Accept> = (0..3).map(|_| scene.event(&tenant)).collect();
        events[1].message.content = Arc::new(Content::new("invoice.paid", vec![7; 30_000]));
        let outcomes = database.run_batch(&[settle(1), Op::Accept(events.clone()), settle(30_000)]);
        let [Ok(OpOutcome::SettleSetting(_)), Ok(OpOutcome::Accept(accepted)), Err(Error::Refused(_))] =
            &outcomes[..]
        else {
            panic!("{outcomes:?}")
        };
        let [Accepted::New { first }, Accepted::Refused(_), Accepted::New { first: last }] = accepted[..]
        else {
            panic!("{accepted:?}")
        };
        assert!(first < last, "no number is given twice");
        assert_eq!(number(&database, "SELECT count(*) FROM message"), 2);
        assert_eq!(number(&database, "SELECT sum(value) FROM total WHERE name LIKE 'waiting %'"), 2);

        let large = NewAttempt { response: vec![7; 30_000].into(), ..scene.attempt() };
        let refused = Record { attempt: Some(large), ..scene.delivered(&events[0], first) };
        let late = scene.delivered(&events[2], Seq(last.0 + 1));
        let records = vec![refused, scene.delivered(&events[2], last), late];
        let outcomes = database.run_batch(&[Op::Record(records)]);
        let [Ok(OpOutcome::Record(recorded))] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert!(
            matches!(recorded[..], [Recorded::Refused(_), Recorded::Applied, Recorded::Fenced]),
            "{recorded:?}"
        );
        assert_eq!(number(&database, "SELECT count(*) FROM attempt"), 1);
        assert_eq!(number(&database, "SELECT sum(attempts) FROM endpoint_minute"), 1);
        assert_eq!(database.committed - commits, 2, "one commit for each batch");
        // It still waits, and is recorded without what could not be stored.
        let again = database.run_batch(&[Op::Record(vec![scene.delivered(&events[0], first)])]);
        assert_eq!(again, [Ok(OpOutcome::Record(vec![Recorded::Applied]))]);
        assert_eq!(number(&database, "SELECT sum(value) FROM total WHERE name LIKE 'waiting %'"), 0);
    }
}
