//! What the rules compare: the alerts judge by it, and `/metrics` shows it.

use crate::housekeeping::background::Background;
use crate::{CertificateExpiries, CertificateKind, ClockTrust, Scope, Statistics, WindowCounts};
use aldaba_delivery::alert::{AlertLimits, AlertRule, AlertScope, Measured, Sample};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_store::{CountKind, RestartedTask, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Reads nothing from the store: a round asks for every organization.
pub(crate) trait Measurements: Send + Sync + 'static {
    /// Those of which anything has happened within the longest window, or for which deliveries wait.
    fn organizations(&self) -> Vec<OrgId>;

    /// What was measured for each of the rules, in their order.
    fn measure(&self, scope: Scope, rules: &[(AlertRule, AlertLimits)], now: Timestamp) -> Vec<Measured>;
}

/// The engine's own numbers.
pub(crate) struct EngineMeasurements {
    pub(crate) statistics: Statistics,
    pub(crate) background: Background,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) trust: ClockTrust,
    pub(crate) certificates: CertificateExpiries,
}

impl Measurements for EngineMeasurements {
    fn organizations(&self) -> Vec<OrgId> {
        self.statistics.organizations()
    }

    fn measure(&self, scope: Scope, rules: &[(AlertRule, AlertLimits)], now: Timestamp) -> Vec<Measured> {
        // Most rules have the same window.
        let mut windows: Vec<(Duration, WindowCounts)> = Vec::new();
        let mut measured = Vec::with_capacity(rules.len());
        for (rule, limits) in rules {
            let window = limits.window.map(|span| {
                let known = windows.iter().position(|(known, _)| *known == span);
                let at = known.unwrap_or_else(|| {
                    windows.push((span, self.statistics.window(scope, span)));
                    windows.len() - 1
                });
                &windows[at].1
            });
            measured.push(match window {
                Some(window) => within(*rule, window),
                None => self.present(*rule, scope, now),
            });
        }
        measured
    }
}

impl EngineMeasurements {
    /// What each rule about the whole server compares now, over the window of its metric. What is not known, or has nothing to be
    /// of, has no entry.
    pub(crate) fn of_server(&self, now: Timestamp) -> BTreeMap<AlertRule, f64> {
        let rules = AlertRule::ALL.into_iter().filter(|rule| rule.scopes().contains(&AlertScope::Server));
        let rules: Vec<_> = rules.map(|rule| (rule, rule.default_limits())).collect();
        let measured = self.measure(Scope::Server, &rules, now);
        rules.into_iter().zip(measured).filter_map(|((rule, _), is)| Some((rule, is.value()?))).collect()
    }

    /// Background tasks that panicked and were restarted lately, with those of the store.
    pub(crate) fn restarted_tasks(&self) -> Vec<RestartedTask> {
        let mut tasks = self.background.restarted();
        tasks.extend(self.store.restarted());
        tasks
    }

    fn certificate(&self, scope: Scope, now: Timestamp) -> Measured {
        let first = match scope {
            Scope::Organization(org) => self.statistics.first_certificate(org),
            Scope::Server => {
                let all = self.certificates.all();
                // Those of endpoints are known after the first look.
                all.contains_key(&CertificateKind::Client).then(|| all.into_values().flatten().min())
            }
        };
        let left = |at: Timestamp| Measured::of((at.millis() - now.millis()) as f64 / 1000.0);
        first.map_or(Measured::Unknown, |first| first.map_or(Measured::Nothing, left))
    }

    /// What is now.
    fn present(&self, rule: AlertRule, scope: Scope, now: Timestamp) -> Measured {
        let switch = |is_good: bool| Measured::of(f64::from(u8::from(is_good)));
        let number = |number: Option<u64>| Measured::known(number.map(|number| number as f64));
        match rule {
            AlertRule::QueueLength => {
                let deferred = self.statistics.deferred(scope);
                number(deferred.map(|deferred| self.statistics.waiting(scope).saturating_sub(deferred)))
            }
            AlertRule::FailedEndpoints => number(self.statistics.failed_endpoints(scope)),
            AlertRule::OldestWaiting => {
                Measured::known(self.statistics.oldest_wait().map(|wait| wait.as_secs_f64()))
            }
            AlertRule::DeadLetterSize => number(self.statistics.dead_letter_size()),
            AlertRule::TaskRestarting => Measured::of(self.restarted_tasks().len() as f64),
            AlertRule::ClockNotTrusted => switch(self.trust.state().is_none_or(|state| state.trusted)),
            AlertRule::DiskSpace => number(self.store.disk().free_bytes),
            AlertRule::NotAccepting => {
                self.statistics.is_accepting(self.store.disk()).map_or(Measured::Unknown, switch)
            }
            AlertRule::CertificateExpiring => self.certificate(scope, now),
            _ => Measured::Nothing,
        }
    }
}

/// What happened within a window.
fn within(rule: AlertRule, window: &WindowCounts) -> Measured {
    let counts = window.counts();
    let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
    let value = match rule {
        AlertRule::DeliveryFailureRate => window.failure_rate(),
        AlertRule::DeliverySuccessRate => window.success_rate(),
        AlertRule::RetryRate => window.retry_rate(),
        AlertRule::AverageRetries => window.average_retries(),
        AlertRule::AttemptDurationP99 => seconds(window.duration_p99()),
        AlertRule::DeliveryLatencyP95 => seconds(window.latency_p95()),
        _ => None,
    };
    let number = match rule.sample() {
        None => u64::MAX,
        Some(Sample::Attempts) => counts.attempts(),
        Some(Sample::Ended) => window.settled(),
        Some(Sample::Delivered) => counts.get(CountKind::Delivered),
    };
    value.map_or(Measured::Nothing, |value| Measured::Value { value, is_enough: number >= Sample::MIN })
}
