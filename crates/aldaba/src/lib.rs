//! The server as a library, so that tests (and other programs) can start it in their own process.
//!
//! Nothing here reads the environment or holds global state: [`config::Config`] is passed in, and
//! two servers can live in one process. Only `main.rs` looks at arguments, variables and signals.

mod api;
mod api_client;
pub mod cli;
mod clock_command;
pub mod config;
mod demo;
mod descriptors;
mod init_command;
mod installed;
mod keys;
mod logging;
pub mod memory;
mod policy_command;
mod reach;
mod runtimes;
pub mod server;
mod token;
mod token_command;

pub use token::{DEFAULT_ORGANIZATION, JwtSecret, SecretTooShort, issue_token};
