//! The ledger in SQLite, on a real file: the suite that every ledger has to pass, and what is sqlx's own.

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
