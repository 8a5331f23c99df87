//! Processes that are killed, and copies that race, on both ledgers of sqlx.

#![cfg(all(feature = "postgres", feature = "sqlite"))]

mod ledgers;
#[path = "../../../aldaba-receiver/tests/trials/mod.rs"]
mod trials;

trials::trials! {
    postgres: crate::ledgers::InPostgres,
    sqlite: crate::ledgers::InSqlite,
}
