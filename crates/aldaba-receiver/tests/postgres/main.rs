//! The ledger in PostgreSQL, on a real server.

#![cfg(all(feature = "axum", feature = "postgres"))]

mod contention;
mod crashes;
mod marks;
mod migrating;
mod rough;
mod sessions;
mod stage;
#[path = "../suite/mod.rs"]
mod suite;
mod transaction;

use stage::Database;

suite::suite!(Database::set());
