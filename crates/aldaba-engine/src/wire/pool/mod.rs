//! Connections that are kept for further requests: idle HTTP/1.1 connections, and shared HTTP/2 connections.

mod aging;
mod http1;
mod http2;
mod idle_limit;
mod queue;

pub(super) use aging::Supervisor;
pub(super) use http1::{Http1Pool, PooledStream};
pub(super) use http2::{Http2Pool, StreamPermit};
pub(super) use idle_limit::IdleLimit;
pub(super) use queue::{Assignment, ConnectPermit};

use crate::REQUESTS_PER_ORIGIN;
use std::time::Duration;

/// How many connections are kept open between requests, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Idle connections per origin and client certificate, enforced once half of `idle_overall` is in use.
    /// At least as many as an organization may have requests there, or connections would be closed only to
    /// be reopened.
    pub idle_per_origin: usize,
    /// Idle connections over all origins. Past it an idle connection is closed for each further one.
    pub idle_overall: usize,
    pub idle_timeout: Duration,
    /// The longest time that a connection is used, so that DNS changes take effect.
    pub max_lifetime: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            idle_per_origin: REQUESTS_PER_ORIGIN,
            idle_overall: 1_024,
            idle_timeout: Duration::from_secs(30),
            max_lifetime: Duration::from_secs(300),
        }
    }
}
