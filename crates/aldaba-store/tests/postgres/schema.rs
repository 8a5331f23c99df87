//! The schemas of SQLite and PostgreSQL are one.

use crate::{catalogue, with_schema};
use aldaba_store::sqlite::{Options, SqliteStore};
use rusqlite::Connection;

#[test]
fn both_engines_have_the_same_tables_columns_keys_indexes_and_first_rows() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(&Options::new(folder.path())).unwrap());
    let file = Connection::open(folder.path().join("aldaba.db")).unwrap();
    let sqlite = catalogue::of_sqlite(&file);
    with_schema(async |client| {
        let postgres = catalogue::of_postgres(&client).await;
        let only_sqlite: Vec<_> = sqlite.difference(&postgres).collect();
        let only_postgres: Vec<_> = postgres.difference(&sqlite).collect();
        assert!(
            only_sqlite.is_empty() && only_postgres.is_empty(),
            "only SQLite has {only_sqlite:#?}\nonly PostgreSQL has {only_postgres:#?}"
        );
        assert!(sqlite.len() > 300, "{sqlite:#?}");
    });
}
