//! How values are written to columns and read from them. A stored value that this version does not know is an error, never a
//! panic.

use super::{filters, names};
use crate::operations::transaction::{Result, Value};
use crate::{Error, HealthChangeNumber, Hour, MailNumber, NoticeNumber, Seq};
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

/// Declares a struct that takes its fields from the columns of a row, in this order.
macro_rules! from_row {
    ($type:ty { $($field:ident),+ }) => {
        impl $crate::operations::column::FromRow for $type {
            fn from_row(
                columns: &mut $crate::operations::column::Columns<'_>,
            ) -> $crate::operations::Result<Self> {
                Ok(Self { $($field: columns.take()?),+ })
            }
        }
    };
}
pub(crate) use from_row;

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
numbers! { Seq HealthChangeNumber NoticeNumber MailNumber Hour }

/// Types that are written as one value.
macro_rules! parameters {
    ($($(#[$doc:meta])* $type:ty: |$of:ident| $value:expr;)+) => {$(
        $(#[$doc])*
        impl Parameter for $type {
            fn value(&self) -> Value<'_> {
                let $of = self;
                $value
            }
        }
    )+};
}

/// Types that are read from one value, which is a number, a text or bytes.
macro_rules! columns {
    ($($(#[$doc:meta])* $type:ty: $kind:ident $what:literal, |$of:ident| $read:expr;)+) => {$(
        $(#[$doc])*
        impl Column for $type {
            fn read(value: Value<'_>) -> Result<Self> {
                match value {
                    Value::$kind($of) => $read,
                    other => Err(unknown($what, other)),
                }
            }
        }
    )+};
}

parameters! {
    bool: |is| Value::Integer(i64::from(*is));
    /// Milliseconds since the Unix epoch.
    Timestamp: |moment| Value::Integer(moment.millis());
    /// Nanoseconds: 292 years are enough for a span.
    Duration: |span| Value::Integer(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX));
    str: |text| Value::Text(Cow::Borrowed(text));
    String: |text| text.as_str().value();
    Cow<'_, str>: |text| (**text).value();
    Arc<str>: |text| (**text).value();
    Arc<Filter>: |filter| filter.as_str().value();
    Origin: |origin| origin.as_str().value();
    [u8]: |bytes| Value::Bytes(Cow::Borrowed(bytes));
    Vec<u8>: |bytes| bytes[..].value();
    Bytes: |bytes| bytes[..].value();
    /// Lists of names.
    [String]: |list| Value::Text(Cow::Owned(names::write(list)));
    Vec<String>: |list| list[..].value();
    /// Lists of names and values.
    Vec<(String, String)>: |pairs| Value::Text(Cow::Owned(names::write_pairs(pairs)));
}

columns! {
    bool: Integer "number", |number| Ok(number != 0);
    Timestamp: Integer "number", |millis| Ok(Self::from_millis(millis));
    Duration: Integer "number", |nanos| {
        u64::try_from(nanos).map(Self::from_nanos).map_err(|_| unknown("span of time", nanos))
    };
    String: Text "text", |text| Ok(text.into_owned());
    Cow<'static, str>: Text "text", |text| Ok(Self::Owned(text.into_owned()));
    Arc<str>: Text "text", |text| Ok(text.as_ref().into());
    Arc<Filter>: Text "filter of an endpoint", |text| {
        filters::filter(&text).ok_or_else(|| unknown("filter of an endpoint", text))
    };
    Origin: Text "origin", |text| Ok(Self::from_stored(&text));
    Vec<u8>: Bytes "value", |bytes| Ok(bytes.into_owned());
    Vec<String>: Text "list of names", |text| names::read(&text);
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

impl Column for Box<[String]> {
    fn read(value: Value<'_>) -> Result<Self> {
        <Vec<String>>::read(value).map(Into::into)
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
