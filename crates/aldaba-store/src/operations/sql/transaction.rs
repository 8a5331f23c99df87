//! The small interface to a database that all operations are written against.
//!
//! Statements are SQL that SQLite and PostgreSQL both read, with parameters `?1`, `?2`, … Values are 64-bit integers, text,
//! bytes, or null. A backend prepares each statement once per connection.

use crate::Error;
use crate::operations::column::{FromRow, Row};
use std::borrow::Cow;
use std::sync::LazyLock;

pub type Result<T> = std::result::Result<T, Error>;

/// A parameter of a statement, or a column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// The read-only half: what readers have.
pub trait Reading {
    /// Runs a query and calls `each` with its rows, one after the other. Operations bound every query by `LIMIT` or by its key.
    fn query(
        &self,
        statement: &'static Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()>;
}

/// An open transaction of the writer.
pub trait Transaction: Reading {
    /// Runs a statement that writes, and returns how many rows it changed.
    fn execute(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<usize>;
}

/// Typed reads, for every backend.
pub(crate) trait ReadingExt: Reading {
    /// All rows, in their order.
    fn all<T: FromRow>(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.query(statement, parameters, &mut |row| {
            rows.push(crate::operations::column::read(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The only row, or the first one of a query that is limited to one.
    fn one<T: FromRow>(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<Option<T>> {
        let mut found = None;
        self.query(statement, parameters, &mut |row| {
            if found.is_none() {
                found = Some(crate::operations::column::read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether there is any row.
    fn exists(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<bool> {
        let mut found = false;
        self.query(statement, parameters, &mut |_| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// The row of an aggregate, which always has one.
    fn number(&self, statement: &'static Statement, parameters: &[Value<'_>]) -> Result<i64> {
        Ok(self.one(statement, parameters)?.unwrap_or(0))
    }
}

impl<R: Reading + ?Sized> ReadingExt for R {}

/// The text of a statement, made when it is first used. Statements are declared by `statements!`, so that a test can
/// prepare each of them on every engine.
pub struct Statement(LazyLock<String>);

impl Statement {
    pub(crate) const fn new(text: fn() -> String) -> Self {
        Self(LazyLock::new(text))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// A statement in both directions.
#[derive(Debug)]
pub(crate) struct InOrder {
    pub(crate) ascending: Statement,
    pub(crate) descending: Statement,
}

impl InOrder {
    pub(crate) fn by(&'static self, order: crate::Order) -> &'static Statement {
        match order {
            crate::Order::Ascending => &self.ascending,
            crate::Order::Descending => &self.descending,
        }
    }
}

/// The words of a direction.
pub(crate) struct Direction {
    /// `>` or `<`: on the far side of a cursor.
    pub(crate) beyond: &'static str,
    /// `>=` or `<=`.
    pub(crate) from: &'static str,
    pub(crate) word: &'static str,
}

impl Direction {
    pub(crate) const ASCENDING: Self = Self { beyond: ">", from: ">=", word: "ASC" };
    pub(crate) const DESCENDING: Self = Self { beyond: "<", from: "<=", word: "DESC" };
}

/// Declares the statements of a file, and lists them for tests. `NAME[order] = …` declares one for each direction; `order` is
/// its [`Direction`] there. `unlisted:` is for those that only simulations run.
macro_rules! statements {
    (unlisted: $($(#[$doc:meta])* $name:ident = $text:expr;)+) => {
        $(statements!(@one $(#[$doc])* $name = $text);)+
    };
    ($($(#[$doc:meta])* $name:ident $([$order:ident])? = $text:expr;)+) => {
        $(statements!(@one $(#[$doc])* $name $([$order])? = $text);)+

        #[cfg(any(test, feature = "conformance"))]
        pub(crate) fn statements() -> Vec<&'static $crate::operations::Statement> {
            [$(statements!(@list $name $([$order])?)),+].concat()
        }
    };
    (@one $(#[$doc:meta])* $name:ident = $text:expr) => {
        $(#[$doc])*
        static $name: $crate::operations::Statement = $crate::operations::Statement::new(|| String::from($text));
    };
    (@one $(#[$doc:meta])* $name:ident [$order:ident] = $text:expr) => {
        $(#[$doc])*
        static $name: $crate::operations::transaction::InOrder = $crate::operations::transaction::InOrder {
            ascending: $crate::operations::Statement::new(|| {
                let $order = $crate::operations::transaction::Direction::ASCENDING;
                String::from($text)
            }),
            descending: $crate::operations::Statement::new(|| {
                let $order = $crate::operations::transaction::Direction::DESCENDING;
                String::from($text)
            }),
        };
    };
    (@list $name:ident) => {
        vec![&$name]
    };
    (@list $name:ident [$order:ident]) => {
        vec![&$name.ascending, &$name.descending]
    };
}
pub(crate) use statements;

/// The parameters of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::operations::column::Parameter::value(&$value)),*]
    };
}
pub(crate) use values;
