//! The transactional ledgers of `aldaba-receiver` for programs that use sqlx: an event is marked in the transaction of its
//! handler, and both are committed or neither.
//!
//! | ledger | feature | transaction of the handler |
//! | --- | --- | --- |
//! | [`SqlxPostgresLedger`] | `postgres` | `sqlx::Transaction<'static, Postgres>` |
//! | [`SqlxSqliteLedger`] | `sqlite` | `sqlx::Transaction<'static, Sqlite>` |
//!
//! They use the same table as the ledgers of `aldaba-receiver`, and can share it with them.
//!
//! ```no_run
//! # #[cfg(feature = "postgres")]
//! # mod example {
//! use aldaba_receiver::{Event, Failure, Receiver, Transaction, inbound::Inspector};
//! use aldaba_receiver_sqlx::SqlxPostgresLedger;
//!
//! async fn handle(event: Event, mut work: Transaction<SqlxPostgresLedger>) -> Result<(), Failure> {
//!     sqlx::query("UPDATE orders SET status = 'paid' WHERE event = $1")
//!         .bind(&event.id)
//!         .execute(work.connection())
//!         .await?;
//!     Ok(())
//! }
//!
//! async fn app(pool: sqlx::PgPool, inspector: Inspector) -> Result<axum::Router, Box<dyn std::error::Error>> {
//!     let ledger = SqlxPostgresLedger::new(pool);
//!     ledger.migrate().await?; // creates the table `webhook_events`
//!     let receiver = Receiver::new(inspector, ledger);
//!     Ok(axum::Router::new().route("/webhooks", axum::routing::post(handle).layer(receiver.layer())))
//! }
//! # }
//! ```
//!
//! The repository's `docs/ledgers.md` describes concurrent copies, isolation, timeouts and lost connections.

#![warn(missing_docs)]

mod errors;
mod lent;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod task;

#[cfg(feature = "postgres")]
pub use postgres::{SqlxIsolation, SqlxPostgresLedger, SqlxPostgresTransaction};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqlxSqliteLedger, SqlxSqliteTransaction};
/// The sqlx in the API of these ledgers. Programs that use it from here get the matching version.
pub use sqlx;
