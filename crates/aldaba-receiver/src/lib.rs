//! Receive webhooks so that each has its effect once: verify, deduplicate, run the handler, answer.
//!
//! How often an event has its effect depends on the ledger alone ([`Guarantee`]). With a transactional one the handler works
//! in the transaction in which the event is marked, and both come true or neither. With leases an event may run again
//! after a crash.
//!
//! | ledger | feature | an event has its effect |
//! | --- | --- | --- |
//! | `transactional::PostgresLedger`, `transactional::SqliteLedger`; for sqlx in the crate `aldaba-receiver-sqlx` | `postgres`, `sqlite` | exactly once, for what the handler writes in its [`Transaction`] |
//! | `lease::RedisLeases` | `redis` | at least once; repeats are known, but for those after a crash or an expired lease |
//! | [`lease::KeyValueLeases`] | | the same, where the store compares and swaps; else copies at the same time may each run |
//! | [`lease::MemoryLeases`] | | for tests: until the process ends |
//!
//! A [`Receiver`] is put around a handler as a tower layer ([`Receiver::layer`]), or called from any framework:
//!
//! ```
//! use aldaba_receiver::lease::MemoryLeases;
//! use aldaba_receiver::{Receiver, bytes::Bytes, http};
//!
//! async fn webhook(receiver: &Receiver<MemoryLeases>, request: http::Request<Bytes>) -> http::Response<Bytes> {
//!     let (parts, body) = request.into_parts();
//!     let handler = async |event: aldaba_receiver::Event, _lease| {
//!         println!("{} is new", event.id);
//!         Ok(())
//!     };
//!     receiver.handle(&parts.method, &parts.headers, body, handler).await.into()
//! }
//! ```
//!
//! The repository's `docs/receiving.md` has a whole program, and says what a crash does with each ledger.

#![warn(missing_docs)]

mod after_commit;
mod answer;
#[cfg(feature = "axum")]
pub mod axum;
mod begun;
mod body;
mod builder;
mod challenge;
mod chance;
mod cleanup;
mod clock;
mod counters;
mod event;
mod failure;
mod handling;
mod held;
mod layer;
pub mod lease;
mod ledger;
mod opening;
mod receiver;
mod slot;
pub mod transactional;
mod under_way;

pub use aldaba_signature::inbound;
pub use answer::{Answer, Outcome};
pub use begun::Begun;
pub use builder::{
    Builder, DEFAULT_AFTER_COMMIT_TIME, DEFAULT_BODY_TIME, DEFAULT_HANDLER_TIME, DEFAULT_MAX_BODY,
    DEFAULT_PATIENCE, OnFailure, WhenSenderLeaves,
};
pub use challenge::Challenge;
pub use cleanup::{Cleanup, CleanupReport, CleanupTask, DEFAULT_KEEP};
pub use clock::Clock;
pub use counters::{DuplicateRate, describe_metrics};
pub use event::Event;
pub use failure::Failure;
pub use held::{Held, Lease, Misplaced, Transaction};
pub use layer::{ReceiverLayer, ReceiverService};
pub use ledger::{Claim, FailedEvent, Guarantee, Ledger, LedgerError, Work};
pub use opening::Opening;
pub use receiver::Receiver;
pub use {bytes, http};

// The very clients whose pools and connections the ledgers take and lend. Whoever uses them from here has no other version.
#[cfg(feature = "redis")]
pub use redis;
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "postgres")]
pub use {deadpool_postgres, tokio_postgres};
