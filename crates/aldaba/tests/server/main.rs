//! The whole server, started in this process (or, in `command_line`, as the program it is) and
//! spoken to over sockets.

mod bad_input;
mod client;
mod command_line;
mod connections;
mod dead_letter;
mod delays;
mod delivery;
mod discard;
mod docs;
mod egress;
mod explain;
mod filters;
mod health;
mod hmac;
mod hosts;
mod idempotency;
mod matrix;
mod mtls;
mod operational;
mod ordering;
mod overload;
mod pages;
mod policies;
mod policy_command;
mod profile_resource;
mod profiles;
mod receiver;
mod replacing;
mod replays;
mod resources;
mod retention;
mod running;
mod secrets;
mod secure_receiver;
mod tokens;
