//! Receives webhooks so that each event has its effect once: verify, deduplicate, run the handler, answer.
//!
//! How often an event has its effect depends on the ledger ([`Guarantee`]). With a transactional ledger the handler works in
//! the transaction that marks the event: both are committed or neither. With leases an event may be handled again after a
//! crash.
//!
//! | ledger | feature | an event has its effect |
//! | --- | --- | --- |
//! | `transactional::PostgresLedger`, `transactional::SqliteLedger`; for sqlx in the crate `aldaba-receiver-sqlx` | `postgres`, `sqlite` | exactly once, for what the handler writes in its [`Transaction`] |
//! | `lease::RedisLeases` | `redis` | at least once; repeats happen only after a crash or an expired lease |
//! | [`lease::KeyValueLeases`] | | the same if the store has compare-and-swap; otherwise concurrent copies may each be handled |
//! | [`lease::MemoryLeases`] | | for tests: until the process ends |
//!
//! A [`Receiver`] wraps a handler as a tower layer ([`Receiver::layer`]), or is called from any framework:
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
//! The repository's `docs/receiving.md` has a complete program, and describes the effect of a crash with each ledger.

#![warn(missing_docs)]

mod after_commit;
mod answer;
#[cfg(feature = "axum")]
pub mod axum;
mod begun;
mod body;
mod builder;
mod challenge;
mod cleanup;
mod clock;
mod counters;
mod duplicates;
mod event;
mod failure;
mod handling;
mod held;
mod layer;
pub mod lease;
mod ledger;
mod opening;
mod random;
mod receiver;
mod running_tasks;
mod slot;
pub mod transactional;

pub use aldaba_signature::inbound;
pub use answer::{Answer, Outcome};
pub use begun::Begun;
#[expect(deprecated, reason = "the former name keeps working")]
pub use builder::DEFAULT_PATIENCE;
pub use builder::{
    Builder, DEFAULT_AFTER_COMMIT_TIME, DEFAULT_BODY_TIME, DEFAULT_DUPLICATE_WINDOW, DEFAULT_HANDLER_TIME,
    DEFAULT_MAX_BODY, DEFAULT_WAIT_TIMEOUT, OnFailure, WhenSenderLeaves,
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

// The database clients in the API of the ledgers. Programs that use them from here get the matching version.
#[cfg(feature = "redis")]
pub use redis;
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "postgres")]
pub use {deadpool_postgres, tokio_postgres};
