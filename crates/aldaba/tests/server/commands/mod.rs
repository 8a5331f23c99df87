//! The program as people run it.

pub(crate) mod command_line;
pub(crate) mod embedded;
pub(crate) mod health_command;
pub(crate) mod policy_command;
mod support_command;
pub(crate) mod token_command;
mod version;
