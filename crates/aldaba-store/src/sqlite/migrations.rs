//! The numbered steps from an empty file to the schema of this version.

use super::OpenError;
use super::failure::describe;
use rusqlite::Connection;
use std::path::Path;

/// Step n brings a database from version n − 1 to version n. A step that was released is never
/// edited: databases in the field have run it.
const STEPS: &[&str] = &[include_str!("schema/0001_first.sql")];

pub(super) fn migrate(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let known = STEPS.len() as i64;
    if !(0..=known).contains(&found) {
        return Err(OpenError::FromTheFuture { file: file.to_owned(), found, known });
    }
    for (version, step) in (1..).zip(STEPS).skip(found as usize) {
        // The version is part of the transaction: a step has been run, or it has not.
        let step = format!("BEGIN IMMEDIATE; {step}\nPRAGMA user_version = {version}; COMMIT;");
        connection.execute_batch(&step).map_err(|error| OpenError::Migration {
            file: file.to_owned(),
            version,
            message: describe(&error),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_run_once() {
        let connection = Connection::open_in_memory().unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, STEPS.len() as i64);
    }
}
