//! The [`Transaction`] of SQLite: a connection on which one is open.

use crate::operations::column::{self, FromRow};
use crate::operations::{Reading, Result, Row, Statement, Transaction, Value};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Params, ToSql};
use std::borrow::Cow;

/// A statement, prepared once per connection. Simulations plant bugs in its text.
pub(super) fn prepare<'c>(connection: &'c Connection, text: &str) -> rusqlite::Result<CachedStatement<'c>> {
    #[cfg(feature = "simulation")]
    let text = &super::simulated::planted(text);
    connection.prepare_cached(text)
}

pub(super) struct SqliteTransaction<'c>(pub(super) &'c Connection);

impl SqliteTransaction<'_> {
    fn prepare(&self, statement: &Statement, parameters: &[Value<'_>]) -> Result<CachedStatement<'_>> {
        let mut prepared = prepare(self.0, statement.text())?;
        for (number, value) in (1..).zip(parameters) {
            prepared.raw_bind_parameter(number, Bound(value))?;
        }
        Ok(prepared)
    }
}

impl Reading for SqliteTransaction<'_> {
    fn query(
        &self,
        statement: &Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        let mut prepared = self.prepare(statement, parameters)?;
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next()? {
            each(&SqliteRow(row))?;
        }
        Ok(())
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn execute(&self, statement: &Statement, parameters: &[Value<'_>]) -> Result<usize> {
        Ok(self.prepare(statement, parameters)?.raw_execute()?)
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
