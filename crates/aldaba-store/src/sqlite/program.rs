//! Which version of this program last wrote a database. An older one that is refused for its newer schema says by it which
//! version to run, so it is read in a way that every schema so far allows.

use rusqlite::{Connection, OptionalExtension};

/// The version of this program.
pub(super) const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of the setting.
const PROGRAM: &str = "program";
/// What a version can be at most. A text of somebody else must not fill an error message.
const MAX_BYTES: usize = 64;

/// Notes that this version writes the database from now on.
pub(super) fn note(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT INTO setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value",
            (PROGRAM, OWN_VERSION.as_bytes()),
        )
        .map(drop)
}

/// The version that last wrote the database. `None`: it does not say, because that was before versions were noted.
pub(super) fn last(connection: &Connection) -> Option<String> {
    let mut find = connection.prepare("SELECT value FROM setting WHERE name = ?1").ok()?;
    let found: Option<Vec<u8>> = find.query_row((PROGRAM,), |row| row.get(0)).optional().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-. ()".contains(c);
    String::from_utf8(found?).ok().filter(|text| text.len() <= MAX_BYTES && text.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_wrote_last_is_known_and_nothing_else_is_taken_for_one() {
        let connection = Connection::open_in_memory().unwrap();
        assert_eq!(last(&connection), None, "there is no schema yet");
        connection
            .execute_batch("CREATE TABLE setting (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
            .unwrap();
        assert_eq!(last(&connection), None);
        note(&connection).unwrap();
        assert_eq!(last(&connection).as_deref(), Some(OWN_VERSION));
        let put = |value: &[u8]| {
            connection.execute("UPDATE setting SET value = ?1", (value,)).unwrap();
            last(&connection)
        };
        assert_eq!(put(b"0.3.0-rc.1").as_deref(), Some("0.3.0-rc.1"));
        assert_eq!(put(b"\x1b[31mred"), None);
        assert_eq!(put(&[b'1'; 65]), None);
        note(&connection).unwrap();
        assert_eq!(last(&connection).as_deref(), Some(OWN_VERSION));
    }
}
