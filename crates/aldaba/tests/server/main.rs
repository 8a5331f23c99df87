//! The whole server, started in this process (or, in `command_line`, as the program it is) and
//! spoken to over sockets.

mod bad_input;
mod client;
mod command_line;
mod connections;
mod delivery;
mod egress;
mod health;
mod hosts;
mod idempotency;
mod mtls;
mod overload;
mod pages;
mod policies;
mod receiver;
mod resources;
mod running;
mod secure_receiver;
mod tokens;
