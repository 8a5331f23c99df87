//! The ledger in SQLite, through rusqlite.

mod claim;
mod errors;
mod file;
mod ledger;
mod transaction;
mod writer;

pub use ledger::SqliteLedger;
pub use transaction::SqliteTransaction;
