//! The [`Transaction`] of SQLite: a connection on which one is open.

use crate::operations::column::{self, FromRow};
use crate::operations::{Reading, Result, Row, Statement, Transaction, Value};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Params, ToSql};
use std::borrow::Cow;
use std::cell::RefCell;

/// A statement, prepared once per connection. Simulations plant bugs in its text.
pub(super) fn prepare<'c>(connection: &'c Connection, text: &str) -> rusqlite::Result<CachedStatement<'c>> {
    #[cfg(feature = "simulation")]
    let text = &super::simulated::planted(text);
    connection.prepare_cached(text)
}

/// Statements that a batch has used, with their addresses. There are so few that a hash costs more than it saves.
type Held<'c> = RefCell<Vec<(usize, CachedStatement<'c>)>>;

fn take<'c>(held: &mut Vec<(usize, CachedStatement<'c>)>, wanted: usize) -> Option<CachedStatement<'c>> {
    let place = held.iter().position(|(address, _)| *address == wanted)?;
    Some(held.swap_remove(place).1)
}

pub(super) struct SqliteTransaction<'c> {
    connection: &'c Connection,
    held: Option<Held<'c>>,
}

impl<'c> SqliteTransaction<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, held: None }
    }

    /// For a batch: a statement stays at hand until its end, which is quicker than to find it by its text for each run.
    pub(super) fn of_batch(connection: &'c Connection) -> Self {
        Self { connection, held: Some(RefCell::default()) }
    }

    fn run<T>(
        &self,
        statement: &'static Statement,
        parameters: &[Value<'_>],
        run: impl FnOnce(&mut CachedStatement<'c>) -> Result<T>,
    ) -> Result<T> {
        let address = std::ptr::from_ref(statement).addr();
        let held = self.held.as_ref().and_then(|held| take(&mut held.borrow_mut(), address));
        let mut prepared = match held {
            Some(prepared) => prepared,
            None => prepare(self.connection, statement.text())?,
        };
        for (number, value) in (1..).zip(parameters) {
            prepared.raw_bind_parameter(number, Bound(value))?;
        }
        let result = run(&mut prepared)?;
        if let Some(held) = &self.held {
            held.borrow_mut().push((address, prepared));
        }
        Ok(result)
    }
}

impl Reading for SqliteTransaction<'_> {
    fn query(
        &self,
        statement: &'static Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.run(statement, parameters, |prepared| {
            let mut rows = prepared.raw_query();
            while let Some(row) = rows.next()? {
                each(&SqliteRow(row))?;
            }
            Ok(())
        })
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn execute(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<usize> {
        self.run(statement, parameters, |prepared| Ok(prepared.raw_execute()?))
    }
}

struct Bound<'a>(&'a Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

pub(super) struct SqliteRow<'r>(pub(super) &'r rusqlite::Row<'r>);

impl Row for SqliteRow<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        Ok(match self.0.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
            ValueRef::Real(_) => return Err(column::unknown("number", "a fraction")),
        })
    }
}

/// All rows of a statement of SQLite's own.
pub(super) fn all<T: FromRow>(
    statement: &mut rusqlite::Statement<'_>,
    parameters: impl Params,
) -> Result<Vec<T>> {
    let (mut rows, mut found) = (statement.query(parameters)?, Vec::new());
    while let Some(row) = rows.next()? {
        found.push(column::read(&SqliteRow(row))?);
    }
    Ok(found)
}

/// The first row.
pub(super) fn one<T: FromRow>(
    statement: &mut rusqlite::Statement<'_>,
    parameters: impl Params,
) -> Result<Option<T>> {
    let mut rows = statement.query(parameters)?;
    let Some(row) = rows.next()? else { return Ok(None) };
    column::read(&SqliteRow(row)).map(Some)
}
