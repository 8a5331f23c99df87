//! The client against the real server, through a wire that can be cut.

mod dispatcher;
mod document;
mod faults;
mod pages;
mod proxy;
mod running;
mod shapes;
mod tls;
mod walk;
