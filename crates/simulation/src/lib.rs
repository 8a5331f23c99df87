//! Seeded runs of the real engine on a simulated clock, with a faulty transport and a store that
//! crashes.
//!
//! A [`scenario`] is made from a seed: tenants, endpoints, events, sources and what their senders send, and everything
//! that goes wrong.
//! A [`run`] plays it: each life of the server ([`process`]) has a runtime of its own whose time
//! moves only when nothing else is left to do, and a crash drops that runtime with all its tasks.
//! What outlives it is the [`World`](world::World): the disk, what the receivers saw, what the
//! client and the senders of the sources were promised. Afterwards the [`checks`] compare the three.
//!
//! A seed replays exactly, so that a violation is a test case.

pub mod checks;
pub mod client;
pub mod entropy;
pub mod log;
pub mod process;
pub mod receiver;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod store;
pub mod transport;
pub mod world;
