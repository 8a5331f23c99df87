//! What the tests share: a server, a client, receivers.

pub(crate) mod canaries;
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod hmac;
pub(crate) mod receiver;
pub(crate) mod running;
pub(crate) mod secure_receiver;
pub(crate) mod waiting;
