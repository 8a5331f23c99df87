//! The table of marks: its name and its migration.

use std::fmt;
use thiserror::Error;

/// The migration that creates the tables of marks, failures and counts in PostgreSQL. It may run repeatedly.
pub const POSTGRES_MIGRATION: &str = concat!(
    include_str!("../../migrations/postgres/0001_webhook_events.sql"),
    include_str!("../../migrations/postgres/0002_webhook_events_failures.sql"),
    include_str!("../../migrations/postgres/0003_webhook_events_counts.sql")
);

/// The migration that creates the tables of marks, failures and counts in SQLite. It may run repeatedly.
pub const SQLITE_MIGRATION: &str = concat!(
    include_str!("../../migrations/sqlite/0001_webhook_events.sql"),
    include_str!("../../migrations/sqlite/0002_webhook_events_failures.sql"),
    include_str!("../../migrations/sqlite/0003_webhook_events_counts.sql")
);

/// The default name of the table.
const DEFAULT_NAME: &str = "webhook_events";

/// The maximum length of an event's id: the width of its column.
const MAX_ID_CHARACTERS: usize = 255;

/// The maximum length of a stored event type: the width of its column.
const MAX_TYPE_CHARACTERS: usize = 100;

/// The maximum length of a table name: index names are longer, and PostgreSQL cuts names at 63 bytes.
const MAX_NAME_BYTES: usize = 40;

/// The name of a table of marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(String);

/// An invalid table name.
#[derive(Debug, Error)]
#[error(
    "invalid table name `{0}`: use up to {MAX_NAME_BYTES} letters a to z, digits and underscores, beginning with \
     a letter"
)]
pub struct InvalidTable(String);

impl Table {
    /// A table with another name, for a sender whose ids may equal those of another sender.
    pub fn named(name: &str) -> Result<Self, InvalidTable> {
        let mut characters = name.chars();
        let first = characters.next().is_some_and(|character| character.is_ascii_lowercase());
        let rest = characters.all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'));
        if first && rest && name.len() <= MAX_NAME_BYTES {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidTable(name.to_owned()))
        }
    }

    /// Adapts a statement for `webhook_events` to this table.
    pub fn statement(&self, usual: &str) -> String {
        usual.replace(DEFAULT_NAME, &self.0)
    }

    /// Checks that an event's id fits its column.
    pub fn holds(event_id: &str) -> Result<(), String> {
        if event_id.chars().count() <= MAX_ID_CHARACTERS {
            Ok(())
        } else {
            Err(format!("the event's id is longer than {MAX_ID_CHARACTERS} characters"))
        }
    }

    /// Cuts an event type to its column. The column is informative; nothing depends on it.
    pub fn event_type(whole: &str) -> &str {
        whole.char_indices().nth(MAX_TYPE_CHARACTERS).map_or(whole, |(end, _)| &whole[..end])
    }
}

impl Default for Table {
    fn default() -> Self {
        Self(DEFAULT_NAME.to_owned())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_ID_CHARACTERS, MAX_TYPE_CHARACTERS, POSTGRES_MIGRATION, SQLITE_MIGRATION, Table};

    #[test]
    fn invalid_table_names_are_refused() {
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
            assert!(ours.contains("EXISTS stripe_failures (") && ours.contains("EXISTS stripe_counts ("));
            assert!(!ours.contains("webhook_events"));
        }
    }

    #[test]
    fn long_ids_are_refused_and_long_types_are_cut() {
        assert!(Table::holds(&"ñ".repeat(MAX_ID_CHARACTERS)).is_ok());
        assert!(Table::holds(&"ñ".repeat(MAX_ID_CHARACTERS + 1)).is_err());
        assert_eq!(Table::event_type(&"ñ".repeat(MAX_TYPE_CHARACTERS + 1)), "ñ".repeat(MAX_TYPE_CHARACTERS));
        assert_eq!(Table::event_type("payment.success"), "payment.success");
    }
}
