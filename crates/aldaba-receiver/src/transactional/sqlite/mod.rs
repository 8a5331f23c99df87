//! The ledger in SQLite, through rusqlite.

mod claim;
mod file;
mod ledger;
mod transaction;
mod trouble;
mod writer;

pub use ledger::SqliteLedger;
pub use transaction::SqliteTransaction;
