//! How values are written to columns and read from them. A stored value that this version does not know is an error, never a
//! panic.

use super::transaction::{Result, Value};
use super::{filters, names};
use crate::{Error, HealthChangeNumber, Hour, NoticeNumber, Seq};
use aldaba_delivery::{Filter, Id, IdKind, Origin, Timestamp};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// One row of a query's result.
pub trait Row {
    fn value(&self, column: usize) -> Result<Value<'_>>;
}

/// A value that a statement can take.
pub(crate) trait Parameter {
    fn value(&self) -> Value<'_>;
}

/// A value that a column can hold.
pub(crate) trait Column: Sized {
    fn read(value: Value<'_>) -> Result<Self>;
}

/// What takes one or more columns of a row, from left to right.
pub(crate) trait FromRow: Sized {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self>;
}

/// The columns of a row that are not read yet.
pub(crate) struct Columns<'r> {
    row: &'r dyn Row,
    next: usize,
}

impl Columns<'_> {
    pub(crate) fn take<T: FromRow>(&mut self) -> Result<T> {
        T::from_row(self)
    }
}

pub(crate) fn read<T: FromRow>(row: &dyn Row) -> Result<T> {
    T::from_row(&mut Columns { row, next: 0 })
}

impl<T: Column> FromRow for T {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let value = columns.row.value(columns.next)?;
        columns.next += 1;
        T::read(value)
    }
}

macro_rules! tuples {
    ($(($($part:ident),+))+) => {$(
        impl<$($part: FromRow),+> FromRow for ($($part,)+) {
            fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
                Ok(($(columns.take::<$part>()?,)+))
            }
        }
    )+};
}
tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

/// A stored value that this version does not know: written by a newer one, or damaged.
pub(crate) fn unknown(what: &str, found: impl std::fmt::Debug) -> Error {
    Error::Refused(format!("the database holds a {what} that this version does not know: {found:?}"))
}

fn integer(value: &Value<'_>) -> Result<i64> {
    match value {
        Value::Integer(number) => Ok(*number),
        other => Err(unknown("number", other)),
    }
}

/// A limit or a count, as databases know numbers.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl<T: Parameter + ?Sized> Parameter for &T {
    fn value(&self) -> Value<'_> {
        T::value(self)
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Parameter::value)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        impl Parameter for $type {
            fn value(&self) -> Value<'_> {
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
        impl Column for $type {
            fn read(value: Value<'_>) -> Result<Self> {
                let number = integer(&value)?;
                <$type>::try_from(number).map_err(|_| unknown("number", number))
            }
        }
    )+};
}
integers! { i64 u64 u32 u16 u8 usize }

impl Parameter for bool {
    fn value(&self) -> Value<'_> {
        Value::Integer(i64::from(*self))
    }
}

impl Column for bool {
    fn read(value: Value<'_>) -> Result<Self> {
        integer(&value).map(|number| number != 0)
    }
}

/// Types that wrap one integer.
macro_rules! numbers {
    ($($type:ident)+) => {$(
        impl Parameter for $type {
            fn value(&self) -> Value<'_> {
                Value::Integer(self.0)
            }
        }
        impl Column for $type {
            fn read(value: Value<'_>) -> Result<Self> {
                integer(&value).map($type)
            }
        }
    )+};
}
numbers! { Seq HealthChangeNumber NoticeNumber Hour }

/// Milliseconds since the Unix epoch.
impl Parameter for Timestamp {
    fn value(&self) -> Value<'_> {
        Value::Integer(self.millis())
    }
}

impl Column for Timestamp {
    fn read(value: Value<'_>) -> Result<Self> {
        integer(&value).map(Timestamp::from_millis)
    }
}

/// Nanoseconds: 292 years are enough for a span.
impl Parameter for Duration {
    fn value(&self) -> Value<'_> {
        Value::Integer(i64::try_from(self.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Column for Duration {
    fn read(value: Value<'_>) -> Result<Self> {
        let nanos = integer(&value)?;
        u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| unknown("span of time", nanos))
    }
}

impl Parameter for str {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl Parameter for String {
    fn value(&self) -> Value<'_> {
        self.as_str().value()
    }
}

impl Parameter for Cow<'_, str> {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl Parameter for Arc<str> {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl Column for String {
    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text.into_owned()),
            other => Err(unknown("text", other)),
        }
    }
}

impl Column for Cow<'static, str> {
    fn read(value: Value<'_>) -> Result<Self> {
        String::read(value).map(Cow::Owned)
    }
}

impl Column for Arc<str> {
    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text.as_ref().into()),
            other => Err(unknown("text", other)),
        }
    }
}

impl Parameter for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(Cow::Borrowed(self))
    }
}

impl<const N: usize> Parameter for [u8; N] {
    fn value(&self) -> Value<'_> {
        self[..].value()
    }
}

impl<const N: usize> Column for [u8; N] {
    fn read(value: Value<'_>) -> Result<Self> {
        match &value {
            Value::Bytes(bytes) => bytes.as_ref().try_into().map_err(|_| unknown("value", &value)),
            other => Err(unknown("value", other)),
        }
    }
}

impl Parameter for Vec<u8> {
    fn value(&self) -> Value<'_> {
        self[..].value()
    }
}

impl Column for Vec<u8> {
    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.into_owned()),
            other => Err(unknown("value", other)),
        }
    }
}

impl Parameter for Bytes {
    fn value(&self) -> Value<'_> {
        self[..].value()
    }
}

/// A column that a select leaves out is read as null, and is empty here.
impl Column for Bytes {
    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Null => Ok(Self::new()),
            value => Vec::read(value).map(Self::from),
        }
    }
}

impl<K: IdKind> Parameter for Id<K> {
    fn value(&self) -> Value<'_> {
        self.as_bytes().value()
    }
}

impl<K: IdKind> Column for Id<K> {
    fn read(value: Value<'_>) -> Result<Self> {
        <[u8; 20]>::read(value).map(Id::from_bytes)
    }
}

/// Lists of names.
impl Parameter for [String] {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(names::write(self)))
    }
}

impl Parameter for Vec<String> {
    fn value(&self) -> Value<'_> {
        self[..].value()
    }
}

impl Column for Vec<String> {
    fn read(value: Value<'_>) -> Result<Self> {
        match &value {
            Value::Text(text) => names::read(text),
            other => Err(unknown("list of names", other)),
        }
    }
}

impl Column for Box<[String]> {
    fn read(value: Value<'_>) -> Result<Self> {
        <Vec<String>>::read(value).map(Into::into)
    }
}

/// Lists of names and values.
impl Parameter for Vec<(String, String)> {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(names::write_pairs(self)))
    }
}

impl Column for Vec<(String, String)> {
    fn read(value: Value<'_>) -> Result<Self> {
        let mut parts = <Vec<String>>::read(value)?.into_iter();
        let mut pairs = Vec::with_capacity(parts.len() / 2);
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            pairs.push((name, value));
        }
        Ok(pairs)
    }
}

impl Parameter for Arc<Filter> {
    fn value(&self) -> Value<'_> {
        self.as_str().value()
    }
}

impl Column for Arc<Filter> {
    fn read(value: Value<'_>) -> Result<Self> {
        match &value {
            Value::Text(text) => filters::filter(text).ok_or_else(|| unknown("filter of an endpoint", text)),
            other => Err(unknown("filter of an endpoint", other)),
        }
    }
}

impl Parameter for Origin {
    fn value(&self) -> Value<'_> {
        self.as_str().value()
    }
}

impl Column for Origin {
    fn read(value: Value<'_>) -> Result<Self> {
        match &value {
            Value::Text(text) => Ok(Origin::from_stored(text)),
            other => Err(unknown("origin", other)),
        }
    }
}
