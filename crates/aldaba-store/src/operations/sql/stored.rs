//! Structs that are stored in columns. One declaration gives a struct its columns for inserts, updates and selects.

use crate::operations::column::FromRow;
use crate::operations::transaction::Value;

/// A struct whose fields are columns of a table.
pub(crate) trait Stored: FromRow {
    fn columns(into: &mut Vec<ColumnName>);

    /// The values of the columns, in the same order.
    fn values<'a>(&'a self, into: &mut Vec<Value<'a>>);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnName {
    pub name: &'static str,
    /// What a select reads in its place, where that is not the column itself.
    pub select: Option<&'static str>,
}

fn names<T: Stored>() -> Vec<ColumnName> {
    let mut names = Vec::new();
    T::columns(&mut names);
    names
}

/// For a select.
pub(crate) fn columns<T: Stored>() -> String {
    columns_without::<T>(&[])
}

/// For a select that leaves large columns out: they are read as null.
pub(crate) fn columns_without<T: Stored>(left_out: &[&str]) -> String {
    let select = |column: ColumnName| match left_out.contains(&column.name) {
        true => "NULL",
        false => column.select.unwrap_or(column.name),
    };
    names::<T>().into_iter().map(select).collect::<Vec<_>>().join(", ")
}

/// An insert of all columns, as parameters from `?1` on.
pub(crate) fn insert<T: Stored>(table: &str) -> String {
    insert_with::<T>(table, &[])
}

/// The same, with columns that are no part of the struct and have a fixed value.
pub(crate) fn insert_with<T: Stored>(table: &str, fixed: &[(&str, &str)]) -> String {
    let names: Vec<_> = names::<T>().into_iter().map(|column| column.name).collect();
    let marks: Vec<_> = (1..=names.len()).map(|number| format!("?{number}")).collect();
    let (fixed_names, fixed_values): (Vec<_>, Vec<_>) = fixed.iter().copied().unzip();
    let names = [names, fixed_names].concat().join(", ");
    let values: Vec<_> = marks.iter().map(String::as_str).chain(fixed_values).collect();
    format!("INSERT INTO {table} ({names}) VALUES ({})", values.join(", "))
}

/// How many columns there are: the parameter after them has the next number.
pub(crate) fn width<T: Stored>() -> usize {
    names::<T>().len()
}

/// For an update of all columns, as parameters from `?1` on.
pub(crate) fn assignments<T: Stored>() -> String {
    let assign = |(number, column): (usize, ColumnName)| format!("{} = ?{number}", column.name);
    (1..).zip(names::<T>()).map(assign).collect::<Vec<_>>().join(", ")
}

/// For an insert that replaces a row: every column takes the new value.
pub(crate) fn replacements<T: Stored>() -> String {
    let replace = |column: ColumnName| format!("{0} = excluded.{0}", column.name);
    names::<T>().into_iter().map(replace).collect::<Vec<_>>().join(", ")
}

pub(crate) fn parameters<T: Stored>(stored: &T) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    stored.values(&mut values);
    values
}

/// Declares the columns of a struct. A field stands for the column of its name; otherwise `field: "column"`,
/// `field: "column" as "what a select reads"`, or `field: [Type]` for a field that is a record itself. Names may have a prefix.
macro_rules! stored {
    ($type:ty { $($fields:tt)+ }) => {
        stored! { $type, "" { $($fields)+ } }
    };
    ($type:ty, $prefix:literal { $($field:ident $(: $column:tt $(as $select:expr)?)?),+ $(,)? }) => {
        $crate::operations::column::from_row!($type { $($field),+ });

        impl $crate::operations::stored::Stored for $type {
            fn columns(into: &mut Vec<$crate::operations::stored::ColumnName>) {
                $(stored!(@column into $prefix $field $($column $($select)?)?);)+
            }

            fn values<'a>(&'a self, into: &mut Vec<$crate::operations::Value<'a>>) {
                $(stored!(@value into (&self.$field) $($column)?);)+
            }
        }
    };
    (@column $into:ident $prefix:literal $field:ident) => {
        stored!(@column $into $prefix $field (concat!($prefix, stringify!($field))) None)
    };
    (@column $into:ident $prefix:literal $field:ident [$nested:ty]) => {
        <$nested as $crate::operations::stored::Stored>::columns($into)
    };
    (@column $into:ident $prefix:literal $field:ident $name:literal) => {
        stored!(@column $into $prefix $field ($name) None)
    };
    (@column $into:ident $prefix:literal $field:ident $name:literal $select:expr) => {
        stored!(@column $into $prefix $field ($name) Some($select))
    };
    (@column $into:ident $prefix:literal $field:ident ($name:expr) $select:expr) => {
        $into.push($crate::operations::stored::ColumnName { name: $name, select: $select })
    };
    (@value $into:ident ($field:expr) [$nested:ty]) => {
        $crate::operations::stored::Stored::values($field, $into)
    };
    (@value $into:ident ($field:expr) $($name:literal)?) => {
        $into.push($crate::operations::column::Parameter::value($field))
    };
}
pub(crate) use stored;
