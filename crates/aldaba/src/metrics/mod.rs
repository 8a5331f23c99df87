//! `GET /metrics`: what happens, for Prometheus. A scrape reads memory only: the store counts what it commits, and a background task
//! looks at the rest.

mod access;
mod certificates;
mod deliveries;
mod exposition;
mod listener;
mod operator;
mod process;
mod refusals;

pub(crate) use access::{MetricsAccess, answer};
pub(crate) use certificates::first_expiry;
pub(crate) use exposition::Format;
pub(crate) use listener::MetricsListener;
pub(crate) use refusals::{Refusal, Refusals};

use crate::server::ListenerTls;
use aldaba_delivery::Timestamp;
use aldaba_engine::Engine;
use exposition::Exposition;
use parking_lot::RwLock;

/// What metrics need besides the engine. One for each server.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) access: RwLock<MetricsAccess>,
    pub(crate) refusals: Refusals,
    pub(crate) started_at: Timestamp,
    /// When the first of the issuers that the operator trusts expires.
    pub(crate) issuers_expire_at: Option<Timestamp>,
    /// The listener's TLS; `None`: it has none.
    pub(crate) tls: Option<ListenerTls>,
}

impl Metrics {
    pub(crate) fn new(access: MetricsAccess, started_at: Timestamp) -> Self {
        let access = RwLock::new(access);
        Self { access, refusals: Refusals::default(), started_at, issuers_expire_at: None, tls: None }
    }

    /// Other people may read them from now on.
    pub(crate) fn set_access(&self, access: MetricsAccess) {
        *self.access.write() = access;
    }

    /// All metrics as text.
    pub(crate) fn text(&self, engine: &Engine, format: Format) -> String {
        let mut out = Exposition::new(format);
        deliveries::write(&mut out, engine);
        operator::write(&mut out, engine, self);
        process::write(&mut out, self.started_at);
        out.finish()
    }
}
