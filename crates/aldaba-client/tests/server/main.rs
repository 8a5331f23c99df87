//! The client against the real server, through a wire that can be cut.

mod dispatcher;
mod document;
mod faults;
mod outage;
mod pages;
mod proxy;
mod running;
mod shapes;
mod strangers;
mod tls;
mod waiting;
mod walk;
