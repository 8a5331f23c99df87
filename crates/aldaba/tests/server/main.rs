//! The whole server, started in this process (or, in `command_line`, as the program it is) and
//! spoken to over sockets.

mod bad_input;
mod client;
mod command_line;
mod connections;
mod delivery;
mod egress;
mod idempotency;
mod mtls;
mod overload;
mod pages;
mod policies;
mod policy_command;
mod receiver;
mod resources;
mod retention;
mod running;
mod secure_receiver;
mod tokens;
