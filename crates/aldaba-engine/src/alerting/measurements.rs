//! What the rules are judged by.

use super::CertificateExpiry;
use crate::housekeeping::background::Background;
use crate::{ClockTrust, Scope, Statistics, WindowCounts};
use aldaba_delivery::alert::{AlertLimits, AlertRule, Measured, Sample};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_store::{CountKind, Store};
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
    /// When the first of the issuers that the operator trusts expires.
    pub(crate) issuers_expire_at: Option<Timestamp>,
    pub(crate) listener_certificate: CertificateExpiry,
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
                let wait = self.statistics.view().oldest_wait(now);
                Measured::known(wait.map(|wait| wait.as_secs_f64()))
            }
            AlertRule::DeadLetterSize => number(self.statistics.view().dead_letter_size()),
            AlertRule::TaskRestarting => {
                Measured::of((self.background.restarted().len() + self.store.restarted().len()) as f64)
            }
            AlertRule::ClockNotTrusted => switch(self.trust.state().is_none_or(|state| state.trusted)),
            AlertRule::DiskSpace => number(self.store.disk().free_bytes),
            AlertRule::NotAccepting => {
                self.statistics.is_accepting(self.store.disk()).map_or(Measured::Unknown, switch)
            }
            AlertRule::CertificateExpiring => self
                .issuers_expire_at
                .into_iter()
                .chain(self.listener_certificate.get())
                .min()
                .map_or(Measured::Nothing, |at| Measured::of((at.millis() - now.millis()) as f64 / 1000.0)),
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
