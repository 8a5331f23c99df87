//! Connections that are kept for further requests: idle ones of HTTP/1.1, and shared ones of HTTP/2.

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
    /// Per origin (and client certificate), once half of those over all origins wait; a further connection is closed after
    /// its answer. No fewer than an organization may have requests there, or connections would be closed only to be made
    /// again.
    pub idle_per_origin: usize,
    /// Over all origins; past it a waiting connection is closed for each further one.
    pub idle_overall: usize,
    pub idle_timeout: Duration,
    /// No connection is used longer than this, so that a name which has moved is followed.
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
