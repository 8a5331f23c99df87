//! The ledger in SQLite, on a real file: the suite of every ledger, and tests of sqlx.

#![cfg(feature = "sqlite")]

mod ended;
#[path = "../rough/mod.rs"]
mod rough;
mod stage;
#[path = "../../../aldaba-receiver/tests/suite/mod.rs"]
mod suite;
mod transaction;

use stage::Database;

suite::suite!(Database::set());
