//! What fires now, for `/metrics`.

use aldaba_delivery::alert::{AlertRule, AlertScope};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a rule fires: once for the server, and once for each organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiringCount {
    pub rule: AlertRule,
    pub scope: AlertScope,
    pub count: usize,
}

/// Clones share what they show.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlertBoard(Arc<Mutex<BTreeMap<(AlertRule, AlertScope), usize>>>);

impl AlertBoard {
    pub(crate) fn put(&self, firing: impl IntoIterator<Item = (AlertRule, AlertScope)>) {
        let mut counts = BTreeMap::new();
        for key in firing {
            *counts.entry(key).or_insert(0) += 1;
        }
        *self.0.lock() = counts;
    }

    /// Of every rule that is judged here, for each of its scopes.
    pub(crate) fn counts(&self) -> Vec<FiringCount> {
        let counts = self.0.lock();
        let scopes = |rule: AlertRule| {
            let judged = rule.scopes().iter().filter(|scope| **scope != AlertScope::Endpoint);
            judged.map(move |scope| (rule, *scope))
        };
        let count = |(rule, scope)| {
            let count = counts.get(&(rule, scope)).copied().unwrap_or(0);
            FiringCount { rule, scope, count }
        };
        AlertRule::ALL.into_iter().flat_map(scopes).map(count).collect()
    }
}
