//! Ledgers that mark an event in the very transaction in which the handler works: both come true, or neither.
//!
//! | ledger | feature | the handler works in |
//! | --- | --- | --- |
//! | [`PostgresLedger`] | `postgres` | [`PostgresTransaction`], which is a client of tokio-postgres |
//! | [`SqliteLedger`] | `sqlite` | [`SqliteTransaction`], which lends a connection of rusqlite |
//!
//! Both keep the table `webhook_events`, which receivers in other languages can share; [`POSTGRES_MIGRATION`] and
//! [`SQLITE_MIGRATION`] make it. The crate `aldaba-receiver-sqlx` has the same two for sqlx.
//!
//! The rest is for those who write a ledger of their own: [`Payload`] says how a body is kept and compared, [`Turns`]
//! lets copies of an event wait without a connection each, [`Deadline`] is the end of a patience, [`PostgresStatements`]
//! and [`SqliteStatements`] are what the ledgers here say.

mod deadline;
mod json;
mod payload;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statements;
mod table;
mod turns;

pub use deadline::Deadline;
pub use payload::{Keep, Payload};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresLedger, PostgresTransaction, Savepoint};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteLedger, SqliteTransaction};
pub use statements::{PostgresStatements, SqliteStatements};
pub use table::{InvalidTable, POSTGRES_MIGRATION, SQLITE_MIGRATION, Table};
pub use turns::{Turn, Turns};
