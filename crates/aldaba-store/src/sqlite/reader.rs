//! A snapshot of SQLite, and the reads that only it can make: those by the order in which rows were written, and of what is
//! counted in memory.

use super::transaction::{SqliteTransaction, one, prepare};
use super::types::Types;
use crate::operations::codes::Code;
use crate::operations::{Reading, Result, Row, Statement, Value};
use crate::{ApplicationAttemptsQuery, AttemptCounts, BackendReads, Seq, Trigger};
use aldaba_delivery::{MessageId, Timestamp};
use rusqlite::Connection;
use std::collections::BTreeMap;

/// By the order in which rows were written: ids follow the clock, which may have been ahead.
const LAST_TRIED: &str = "
    SELECT started_at FROM attempt INDEXED BY attempt_message
    WHERE message = ?1 AND seq = ?2 AND made_by <> ?3 ORDER BY rowid DESC LIMIT 1";
const LAST_MESSAGE: &str = "SELECT created_at FROM message ORDER BY rowid DESC LIMIT 1";
const LAST_ATTEMPT: &str = "SELECT started_at FROM attempt ORDER BY rowid DESC LIMIT 1";

/// A snapshot of a reader.
pub(super) struct Reader<'c> {
    pub(super) connection: &'c Connection,
    pub(super) types: &'c Types,
}

impl<'c> Reader<'c> {
    /// Runs a read in a transaction, so that all of its statements see one moment.
    pub(super) fn on_snapshot<T>(
        connection: &'c Connection,
        types: &'c Types,
        read: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let reader = Self { connection, types };
        reader.begin()?;
        let result = read(&reader);
        let ended = reader.end();
        result.and_then(|found| ended.map(|()| found))
    }

    fn begin(&self) -> Result<()> {
        // A read that has panicked, or whose end was interrupted, has left it open.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN")?.execute(())?;
        Ok(())
    }

    fn end(&self) -> Result<()> {
        // An error may have ended it already.
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached("COMMIT")?.execute(())?;
        }
        Ok(())
    }

    /// What is read from now on is of a later moment.
    fn renew(&self) -> Result<()> {
        self.end()?;
        self.begin()
    }
}

impl Reading for Reader<'_> {
    fn query(
        &self,
        statement: &'static Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        SqliteTransaction::new(self.connection).query(statement, parameters, each)
    }
}

impl BackendReads for Reader<'_> {
    fn last_scheduled_attempt(&self, message: MessageId, seq: Seq) -> Result<Option<Timestamp>> {
        let mut last = prepare(self.connection, LAST_TRIED)?;
        one(&mut last, (message.as_bytes(), seq.0, Trigger::Manual.code()))
    }

    fn newest_moment(&self) -> Result<Option<Timestamp>> {
        newest_moment(self.connection)
    }

    fn application_attempts(
        &self,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>> {
        self.types.read(self, || self.renew(), query)
    }
}

/// By the order in which rows were written: a clock that was ahead once does not count for ever.
pub(super) fn newest_moment(connection: &Connection) -> Result<Option<Timestamp>> {
    let mut newest = None;
    for statement in [LAST_MESSAGE, LAST_ATTEMPT] {
        newest = newest.max(one(&mut *prepare(connection, statement)?, ())?);
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn the_last_attempt_of_a_delivery_is_found_among_its_own() {
        let plan = plan(LAST_TRIED);
        assert!(plan.contains("INDEX attempt_message (message=? AND seq=?)"), "{plan}");
    }

    #[test]
    fn the_newest_rows_are_found_without_a_walk() {
        for statement in [LAST_MESSAGE, LAST_ATTEMPT] {
            assert!(!plan(statement).contains("TEMP B-TREE"), "{statement}");
        }
    }
}
