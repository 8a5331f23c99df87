//! Ledgers that mark an event in the transaction of its handler: both are committed or neither.
//!
//! | ledger | feature | transaction of the handler |
//! | --- | --- | --- |
//! | [`PostgresLedger`] | `postgres` | [`PostgresTransaction`], which is a client of tokio-postgres |
//! | [`SqliteLedger`] | `sqlite` | [`SqliteTransaction`], which lends a connection of rusqlite |
//!
//! Both use the table `webhook_events`, which receivers in other languages can share; [`POSTGRES_MIGRATION`] and
//! [`SQLITE_MIGRATION`] create it. The crate `aldaba-receiver-sqlx` has both ledgers for sqlx.
//!
//! The other items are for authors of ledgers: [`Payload`] stores and compares bodies, [`EventLocks`] lets copies of an event
//! wait without a connection, [`Deadline`] ends a wait, [`PostgresStatements`] and [`SqliteStatements`] are the statements of
//! the ledgers here.

mod deadline;
mod event_locks;
mod json;
mod payload;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statements;
mod table;

pub use deadline::Deadline;
#[expect(deprecated, reason = "the former name keeps working")]
pub use event_locks::Turn;
#[expect(deprecated, reason = "the former name keeps working")]
pub use event_locks::Turns;
pub use event_locks::{EventLock, EventLocks};
pub use payload::{Keep, Payload};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresLedger, PostgresTransaction, Savepoint};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteLedger, SqliteTransaction};
pub use statements::{PostgresStatements, SqliteStatements};
pub use table::{InvalidTable, POSTGRES_MIGRATION, SQLITE_MIGRATION, Table};
