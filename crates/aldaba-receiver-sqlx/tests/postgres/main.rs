//! The ledger in PostgreSQL, on a real server: the suite of every ledger, and tests of sqlx.

#![cfg(feature = "postgres")]

mod ended;
#[path = "../rough/mod.rs"]
mod rough;
mod sessions;
mod stage;
#[path = "../../../aldaba-receiver/tests/suite/mod.rs"]
mod suite;
mod transaction;

use stage::Database;

suite::suite!(Database::set());
