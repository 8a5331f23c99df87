//! The queue's database: a file, or with the feature `postgres` a real server.

#[cfg(feature = "postgres")]
pub(crate) use apalis_postgres::{Config, PgPool as Pool, PostgresStorage as Storage};
#[cfg(not(feature = "postgres"))]
pub(crate) use apalis_sqlite::{Config, SqlitePool as Pool, SqliteStorage as Storage};

use std::path::Path;

pub(crate) struct Database {
    pub(crate) url: String,
    /// Ends with the last that needs it.
    #[cfg(feature = "postgres")]
    _server: std::sync::Arc<test_servers::Postgres>,
}

impl Database {
    #[cfg(feature = "postgres")]
    pub(crate) fn new(_: &Path) -> Self {
        let server = test_servers::Postgres::shared();
        Self { url: server.database(), _server: server }
    }

    #[cfg(not(feature = "postgres"))]
    pub(crate) fn new(folder: &Path) -> Self {
        Self { url: format!("sqlite://{}?mode=rwc", folder.join("jobs.db").display()) }
    }
}
