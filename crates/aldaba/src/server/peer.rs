//! From where a request comes.

use std::net::IpAddr;

/// The address of the other end of a connection, among the extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) IpAddr);
