//! The whole server, started in this process (or, in `command_line`, as the program it is) and
//! spoken to over sockets.

mod commands;
mod credentials;
mod customer_data;
mod dashboard;
mod endpoints;
mod load;
mod mails;
mod messages;
mod monitoring;
mod observing;
mod requests;
mod sources;
mod support;
