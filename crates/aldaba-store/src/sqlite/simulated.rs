//! What simulations do with a database in memory: they read it at any moment, start anew on its rows, keep what is removed,
//! and plant bugs.

use super::batch::Database;
use super::open::restore_live;
use super::reader::Reader;
use super::types::Types;
use super::{OpenError, commits, connect, in_memory};
use crate::backend::BackendReads;
use crate::operations::everything::{EXPUNGED, KEPT_WHEN_REMOVED};
use crate::operations::{LiveCounts, Monotonic, Numbers, Result};
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A bug in statements: a part by which they are known, what stands in them, and what is planted in its place.
pub type Planted = (&'static str, &'static str, &'static str);

thread_local! {
    static PLANTED: Cell<&'static [Planted]> = const { Cell::new(&[]) };
}

/// Plants bugs in the statements that this thread runs from now on, in the place of earlier ones.
pub fn plant(bugs: &'static [Planted]) {
    PLANTED.set(bugs);
}

/// Runs something without the planted bugs: what checks read is true.
pub fn without_bugs<T>(run: impl FnOnce() -> T) -> T {
    let bugs = PLANTED.replace(&[]);
    let result = run();
    PLANTED.set(bugs);
    result
}

pub(super) fn planted(statement: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(statement);
    for (known_by, part, bug) in PLANTED.get() {
        if statement.contains(known_by) && text.contains(part) {
            text = Cow::Owned(text.replace(part, bug));
        }
    }
    text
}

impl Database {
    /// Runs a read on the rows of this moment.
    pub fn read<T>(&self, read: impl FnOnce(&dyn BackendReads) -> Result<T>) -> Result<T> {
        Reader::on_snapshot(&self.connection, &self.types, |reader| read(reader))
    }

    /// A second database with the same rows, as a start would find them.
    pub fn copy(&self) -> std::result::Result<Self, OpenError> {
        let failed = |error: rusqlite::Error| OpenError::database(Path::new("in memory"), &error);
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        connect::prepare(&connection, connect::WRITER_CACHE_KIB).map_err(failed)?;
        Backup::new(&self.connection, &mut connection)
            .and_then(|backup| backup.step(-1).map(drop))
            .map_err(failed)?;
        let (types, live, numbers) = (Arc::default(), LiveCounts::default(), Numbers::default());
        Ok(Self {
            connection,
            rules: self.rules,
            clock: self.clock.clone(),
            types,
            live,
            numbers,
            committed: 0,
        })
    }

    /// A process has come to its end, and another one starts on the rows: what was in memory is gone.
    pub fn restart(&mut self, clock: Monotonic) -> Result<()> {
        commits::begin(&self.connection)?;
        self.types = Arc::new(Types::restore(&self.connection)?);
        self.live = restore_live(&self.connection)?;
        (self.clock, self.numbers, self.committed) = (clock, Numbers::default(), 0);
        Ok(())
    }

    /// What a process writes when it is closed.
    pub fn close(&mut self) -> Result<()> {
        self.write_counted(true)
    }

    /// How long the writer may wait for other work until it should write what it has counted.
    pub fn counts_due_in(&self) -> Option<Duration> {
        self.live.due_in(&self.clock)
    }

    /// Writes what was counted, between two batches.
    pub fn write_due_counts(&mut self) -> Result<()> {
        self.write_counted(false)
    }

    /// The counts in memory.
    pub fn live_counts(&self) -> LiveCounts {
        self.live.clone()
    }

    /// The tables of which a row has these bytes in a value, or is a part of one; without those that keep what was removed.
    pub fn tables_with(&self, bytes: &[u8]) -> Result<Vec<String>> {
        let names =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'removed!_%' ESCAPE '!'
            AND name <> 'expunged_payload' ORDER BY name";
        let tables: Vec<String> = super::transaction::all(&mut self.connection.prepare(names)?, ())?;
        let mut found = Vec::new();
        for table in tables {
            let mut columns =
                self.connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
            let columns: Vec<String> = super::transaction::all(&mut columns, ())?;
            let has = columns.iter().map(|column| format!("instr(CAST({column} AS BLOB), ?1)"));
            let has = has.collect::<Vec<_>>().join(" OR ");
            if self.connection.prepare(&format!("SELECT 1 FROM {table} WHERE {has}"))?.exists((bytes,))? {
                found.push(table);
            }
        }
        Ok(found)
    }

    /// Runs SQL beside the operations, to make triggers or to change rows.
    pub fn tamper(&self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

/// A database in memory that keeps what is removed from it, for [`Everything`](crate::operations::everything::Everything).
pub fn in_memory_for_good() -> std::result::Result<Database, OpenError> {
    let database = in_memory()?;
    let failed = |error: rusqlite::Error| OpenError::database(Path::new("in memory"), &error);
    let keep = |table: &str| {
        let mut columns =
            database.connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
        let columns = columns.query_map((), |row| row.get::<_, String>(0))?;
        // An endpoint of a deleted application has no mark of its own, and would outlive that of its application here.
        let value = |column: String| match (table, &*column) {
            ("endpoint", "deleted") => {
                "max(OLD.deleted, coalesce((SELECT deleted FROM application WHERE id = OLD.app), 1))".into()
            }
            _ => format!("OLD.{column}"),
        };
        let values =
            columns.map(|column| column.map(value)).collect::<rusqlite::Result<Vec<_>>>()?.join(", ");
        database.connection.execute_batch(&format!(
            "CREATE TABLE removed_{table} AS SELECT * FROM {table};
             CREATE TRIGGER keep_{table} AFTER DELETE ON {table} BEGIN INSERT INTO removed_{table} VALUES ({values}); END"
        ))
    };
    KEPT_WHEN_REMOVED.into_iter().try_for_each(keep).map_err(failed)?;
    database.connection.execute_batch(EXPUNGED).map_err(failed)?;
    Ok(database)
}
