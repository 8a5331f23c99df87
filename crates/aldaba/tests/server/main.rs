//! The whole server, started in this process (or, in `command_line`, as the program it is) and
//! spoken to over sockets.

mod bad_input;
mod client;
mod command_line;
mod connections;
mod dead_letter;
mod delivery;
mod discard;
mod egress;
mod explain;
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
