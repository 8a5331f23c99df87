//! The ledger in PostgreSQL, on a real server: the suite that every ledger has to pass, and what is sqlx's own.

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
