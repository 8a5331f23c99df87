//! The table of marks: its name, and what makes it.

use std::fmt;
use thiserror::Error;

/// What makes the tables of marks and of failures in PostgreSQL. It may run again, and where the table is there already.
pub const POSTGRES_MIGRATION: &str = concat!(
    include_str!("../../migrations/postgres/0001_webhook_events.sql"),
    include_str!("../../migrations/postgres/0002_webhook_events_failures.sql")
);

/// What makes the tables of marks and of failures in SQLite. It may run again, and where the table is there already.
pub const SQLITE_MIGRATION: &str = concat!(
    include_str!("../../migrations/sqlite/0001_webhook_events.sql"),
    include_str!("../../migrations/sqlite/0002_webhook_events_failures.sql")
);

/// The name of the table unless another one is chosen.
const USUAL: &str = "webhook_events";

/// What an event's id may measure, in characters: the width of its column.
const LONGEST_ID: usize = 255;

/// What of an event's type is kept, in characters: the width of its column.
const LONGEST_TYPE: usize = 100;

/// The name of an index is built from it, and PostgreSQL cuts names at 63 bytes.
const LONGEST_NAME: usize = 40;

/// The name of a table of marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(String);

/// A name that no table of marks can have.
#[derive(Debug, Error)]
#[error(
    "`{0}` cannot be the name of the table: take up to {LONGEST_NAME} letters a to z, digits and underscores, \
     and begin with a letter"
)]
pub struct InvalidTable(String);

impl Table {
    /// A table of its own for the events of one sender, whose ids another sender's might equal.
    pub fn named(name: &str) -> Result<Self, InvalidTable> {
        let mut characters = name.chars();
        let first = characters.next().is_some_and(|character| character.is_ascii_lowercase());
        let rest = characters.all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'));
        if first && rest && name.len() <= LONGEST_NAME {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidTable(name.to_owned()))
        }
    }

    /// A statement that was written for `webhook_events`, for this table.
    pub fn statement(&self, usual: &str) -> String {
        usual.replace(USUAL, &self.0)
    }

    /// Whether the id of an event has room in its column.
    pub fn holds(event_id: &str) -> Result<(), String> {
        if event_id.chars().count() <= LONGEST_ID {
            Ok(())
        } else {
            Err(format!("the event's id is longer than the {LONGEST_ID} characters of its column"))
        }
    }

    /// What is kept of an event's type. It is for those who look at the table: nothing is decided by it.
    pub fn event_type(whole: &str) -> &str {
        whole.char_indices().nth(LONGEST_TYPE).map_or(whole, |(end, _)| &whole[..end])
    }
}

impl Default for Table {
    fn default() -> Self {
        Self(USUAL.to_owned())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_ID, LONGEST_TYPE, POSTGRES_MIGRATION, SQLITE_MIGRATION, Table};

    #[test]
    fn a_name_that_is_more_than_a_name_is_refused() {
        for bad in ["", "Events", "1st", "_x", "a;b", "a b", "a\"", "a.b", "año", &"a".repeat(41)] {
            assert!(Table::named(bad).is_err(), "{bad}");
        }
        assert!(Table::named("stripe_events_2").is_ok());
    }

    #[test]
    fn the_migrations_name_the_table_and_its_index_after_it() {
        let table = Table::named("stripe").unwrap();
        for migration in [POSTGRES_MIGRATION, SQLITE_MIGRATION] {
            assert_eq!(Table::default().statement(migration), migration);
            let ours = table.statement(migration);
            assert!(ours.contains("EXISTS stripe (") && ours.contains("idx_stripe_processed_at ON stripe ("));
            assert!(ours.contains("EXISTS stripe_failures ("));
            assert!(!ours.contains("webhook_events"));
        }
    }

    #[test]
    fn ids_have_room_or_are_refused_and_types_are_cut() {
        assert!(Table::holds(&"ñ".repeat(LONGEST_ID)).is_ok());
        assert!(Table::holds(&"ñ".repeat(LONGEST_ID + 1)).is_err());
        assert_eq!(Table::event_type(&"ñ".repeat(LONGEST_TYPE + 1)), "ñ".repeat(LONGEST_TYPE));
        assert_eq!(Table::event_type("payment.success"), "payment.success");
    }
}
