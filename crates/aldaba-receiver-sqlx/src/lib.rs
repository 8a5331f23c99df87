//! The transactional ledgers of `aldaba-receiver` for programs that use sqlx: an event is marked in the very transaction
//! in which the handler works, and both come true or neither.
//!
//! | ledger | feature | the handler works in |
//! | --- | --- | --- |
//! | [`SqlxPostgresLedger`] | `postgres` | `sqlx::Transaction<'static, Postgres>` |
//! | [`SqlxSqliteLedger`] | `sqlite` | `sqlx::Transaction<'static, Sqlite>` |
//!
//! They keep the same table in the same way as the ledgers of `aldaba-receiver`, and can share it with them.
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
//!     ledger.migrate().await?; // makes the table `webhook_events`
//!     let receiver = Receiver::new(inspector, ledger);
//!     Ok(axum::Router::new().route("/webhooks", axum::routing::post(handle).layer(receiver.layer())))
//! }
//! # }
//! ```
//!
//! The repository's `docs/ledgers.md` has what both do about copies, isolation, timeouts and lost connections.

#![warn(missing_docs)]

mod lent;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod task;
mod trouble;

#[cfg(feature = "postgres")]
pub use postgres::{SqlxIsolation, SqlxPostgresLedger, SqlxPostgresTransaction};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqlxSqliteLedger, SqlxSqliteTransaction};
/// The very sqlx whose pools and transactions these ledgers take and lend. Whoever uses it from here has no other version.
pub use sqlx;
