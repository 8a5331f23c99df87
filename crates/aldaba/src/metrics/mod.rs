//! `GET /metrics`: what happens, for Prometheus. A scrape reads memory only: the store counts what it commits, and a background task
//! looks at the rest.

mod access;
mod deliveries;
mod exposition;
mod listener;
mod operator;
mod process;
mod refusals;

pub(crate) use access::{MetricsAccess, answer};
pub(crate) use exposition::Format;
pub(crate) use listener::MetricsListener;
pub(crate) use refusals::{Refusal, Refusals};

use crate::server::ListenerTls;
use aldaba_delivery::Timestamp;
use aldaba_delivery::alert::AlertRule;
use aldaba_engine::Engine;
use exposition::Exposition;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// What metrics need besides the engine. One for each server.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) access: RwLock<MetricsAccess>,
    pub(crate) refusals: Refusals,
    pub(crate) started_at: Timestamp,
    /// The listener's TLS; `None`: it has none.
    pub(crate) tls: Option<ListenerTls>,
}

impl Metrics {
    pub(crate) fn new(access: MetricsAccess, started_at: Timestamp) -> Self {
        let access = RwLock::new(access);
        Self { access, refusals: Refusals::default(), started_at, tls: None }
    }

    /// Other people may read them from now on.
    pub(crate) fn set_access(&self, access: MetricsAccess) {
        *self.access.write() = access;
    }

    /// All metrics as text.
    pub(crate) fn text(&self, engine: &Engine, format: Format) -> String {
        let mut out = Exposition::new(format);
        let values = RuleValues(engine.rule_values());
        deliveries::write(&mut out, engine, &values);
        operator::write(&mut out, engine, self, &values);
        process::write(&mut out, self.started_at);
        out.finish()
    }
}

/// What the alert rules about the whole server compare: most of it is a metric of its own.
struct RuleValues(BTreeMap<AlertRule, f64>);

impl RuleValues {
    /// The metric of a rule, which is its value. NaN: it is not known, or has nothing to be of.
    fn gauge(&self, out: &mut Exposition, rule: AlertRule, help: &str) {
        let value = self.0.get(&rule).copied().unwrap_or(f64::NAN);
        out.gauge(rule.metric().unwrap_or_default(), help, value);
    }
}
