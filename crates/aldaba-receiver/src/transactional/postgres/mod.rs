//! The ledger in PostgreSQL, through tokio-postgres and a pool of deadpool.

mod claim;
mod connection;
mod errors;
mod ledger;
mod savepoint;
mod transaction;

pub use ledger::PostgresLedger;
pub use savepoint::Savepoint;
pub use transaction::PostgresTransaction;
