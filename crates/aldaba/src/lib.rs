//! The server as a library, so that tests (and other programs) can start it in their own process.
//!
//! Nothing here reads the environment or holds global state: [`config::Config`] is passed in, and
//! two servers can live in one process. Only `main.rs` looks at arguments, variables and signals.

mod actions;
pub mod allocator;
mod api;
mod backup;
pub mod cli;
pub mod config;
pub mod dashboard;
mod descriptors;
mod doctor;
mod keys;
mod logging;
pub mod mail;
mod metrics;
mod questions;
mod runtimes;
pub mod server;
mod service_manager;
mod shell;
mod support;
mod token;

pub use token::{DEFAULT_ORGANIZATION, JwtSecret, SecretTooShort, issue_token};
