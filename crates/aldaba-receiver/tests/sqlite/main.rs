//! The ledger in SQLite, on a real file.

#![cfg(all(feature = "axum", feature = "sqlite"))]

mod contention;
mod ended;
mod marks;
mod stage;
#[path = "../suite/mod.rs"]
mod suite;
mod transaction;

use stage::Database;

suite::suite!(Database::set());
