//! Processes that are killed, and copies that race, on both transactional ledgers. `cargo xtask trials` does it more often.

#![cfg(all(feature = "axum", feature = "postgres", feature = "sqlite"))]

mod ledgers;
#[path = "../trials/mod.rs"]
mod trials;

trials::trials! {
    postgres: crate::ledgers::InPostgres,
    sqlite: crate::ledgers::InSqlite,
}
