//! The built-in rules.

use super::AlertLimits;
use std::fmt;
use std::time::Duration;

/// The window of what is said of attempts, by rules and metrics: short, because they show trouble first.
pub const ATTEMPT_WINDOW: Duration = Duration::from_secs(5 * 60);
/// The window of what is said of deliveries that have ended: long enough for retries to end too.
pub const DELIVERY_WINDOW: Duration = Duration::from_secs(3600);

const MINUTE: Duration = Duration::from_secs(60);

/// A built-in rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertRule {
    DeliveryFailureRate,
    DeliverySuccessRate,
    RetryRate,
    AverageRetries,
    AttemptDurationP99,
    DeliveryLatencyP95,
    QueueLength,
    OldestWaiting,
    FailedEndpoints,
    EndpointFailing,
    DeadLetterSize,
    DiskSpace,
    NotAccepting,
    TaskRestarting,
    ClockNotTrusted,
    CertificateExpiring,
}

/// What a rule is judged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertScope {
    /// The whole server: the operator hears of it.
    Server,
    Organization,
    Endpoint,
}

/// On which side of its limit a value is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Above,
    Below,
}

/// What a rate is a rate of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    Attempts,
    /// Deliveries that ended, with success or without.
    Ended,
    /// Deliveries that ended with success.
    Delivered,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From 0 to 1.
    Ratio,
    Number,
    Seconds,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Warning,
    Critical,
}

impl AlertRule {
    pub const ALL: [Self; 16] = [
        Self::DeliveryFailureRate,
        Self::DeliverySuccessRate,
        Self::RetryRate,
        Self::AverageRetries,
        Self::AttemptDurationP99,
        Self::DeliveryLatencyP95,
        Self::QueueLength,
        Self::OldestWaiting,
        Self::FailedEndpoints,
        Self::EndpointFailing,
        Self::DeadLetterSize,
        Self::DiskSpace,
        Self::NotAccepting,
        Self::TaskRestarting,
        Self::ClockNotTrusted,
        Self::CertificateExpiring,
    ];

    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    pub const fn name(self) -> &'static str {
        match self {
            Self::DeliveryFailureRate => "delivery-failure-rate",
            Self::DeliverySuccessRate => "delivery-success-rate",
            Self::RetryRate => "retry-rate",
            Self::AverageRetries => "average-retries",
            Self::AttemptDurationP99 => "attempt-duration-p99",
            Self::DeliveryLatencyP95 => "delivery-latency-p95",
            Self::QueueLength => "queue-length",
            Self::OldestWaiting => "oldest-waiting",
            Self::FailedEndpoints => "failed-endpoints",
            Self::EndpointFailing => "endpoint-failing",
            Self::DeadLetterSize => "dead-letter-size",
            Self::DiskSpace => "disk-space",
            Self::NotAccepting => "not-accepting",
            Self::TaskRestarting => "task-restarting",
            Self::ClockNotTrusted => "clock-not-trusted",
            Self::CertificateExpiring => "certificate-expiring",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// Its name in Prometheus's rules.
    pub fn prometheus_name(self) -> String {
        let words = self.name().split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
        format!("Aldaba{}", words.collect::<String>())
    }

    /// What it compares, as `/metrics` calls it. `None`: no metric has it, because it is about one endpoint.
    pub fn metric(self) -> Option<&'static str> {
        Some(match self {
            Self::DeliveryFailureRate => "webhook_delivery_failure_rate",
            Self::DeliverySuccessRate => "webhook_delivery_success_rate",
            Self::RetryRate => "webhook_retry_rate",
            Self::AverageRetries => "webhook_avg_retries_per_delivery",
            Self::AttemptDurationP99 => "webhook_delivery_duration_seconds_p99",
            Self::DeliveryLatencyP95 => "webhook_delivery_p95_latency",
            Self::QueueLength => "webhook_queue_length",
            Self::OldestWaiting => "webhook_oldest_waiting_seconds",
            Self::FailedEndpoints => "webhook_failed_count",
            Self::EndpointFailing => return None,
            Self::DeadLetterSize => "webhook_dead_letter_size",
            Self::DiskSpace => "aldaba_disk_free_bytes",
            Self::NotAccepting => "aldaba_accepting",
            Self::TaskRestarting => "aldaba_background_tasks",
            Self::ClockNotTrusted => "aldaba_clock_trusted",
            Self::CertificateExpiring => "aldaba_certificate_expiry_timestamp_seconds",
        })
    }

    pub fn comparison(self) -> Comparison {
        match self {
            Self::DeliverySuccessRate
            | Self::DiskSpace
            | Self::NotAccepting
            | Self::ClockNotTrusted
            | Self::CertificateExpiring => Comparison::Below,
            _ => Comparison::Above,
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Self::DeliveryFailureRate | Self::DeliverySuccessRate | Self::RetryRate => Unit::Ratio,
            Self::AttemptDurationP99
            | Self::DeliveryLatencyP95
            | Self::OldestWaiting
            | Self::CertificateExpiring => Unit::Seconds,
            Self::DiskSpace => Unit::Bytes,
            _ => Unit::Number,
        }
    }

    pub fn severity(self) -> Severity {
        match self {
            Self::DiskSpace | Self::NotAccepting | Self::DeliverySuccessRate => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    pub fn scopes(self) -> &'static [AlertScope] {
        match self {
            Self::EndpointFailing => &[AlertScope::Endpoint],
            Self::OldestWaiting
            | Self::DeadLetterSize
            | Self::DiskSpace
            | Self::NotAccepting
            | Self::TaskRestarting
            | Self::ClockNotTrusted
            | Self::CertificateExpiring => &[AlertScope::Server],
            _ => &[AlertScope::Server, AlertScope::Organization],
        }
    }

    /// The window of the metric, where it is about what happened lately and not about now.
    pub fn metric_window(self) -> Option<Duration> {
        self.sample().map(|sample| match sample {
            Sample::Attempts => ATTEMPT_WINDOW,
            Sample::Ended | Sample::Delivered => DELIVERY_WINDOW,
        })
    }

    /// What must have happened within the window for the value to mean anything; `None`: any value does.
    pub fn sample(self) -> Option<Sample> {
        match self {
            Self::DeliveryFailureRate | Self::AttemptDurationP99 => Some(Sample::Attempts),
            Self::DeliverySuccessRate | Self::RetryRate | Self::AverageRetries => Some(Sample::Ended),
            Self::DeliveryLatencyP95 => Some(Sample::Delivered),
            _ => None,
        }
    }

    /// Whether the threshold is either of two states, which nothing lies between.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::ClockNotTrusted | Self::NotAccepting)
    }

    /// The limits where the operator has set none.
    pub fn default_limits(self) -> AlertLimits {
        let limits = |threshold: f64, resolve: f64, hold: Duration| AlertLimits {
            threshold,
            resolve,
            hold,
            window: self.metric_window(),
        };
        match self {
            Self::DeliveryFailureRate => limits(0.1, 0.05, MINUTE),
            Self::DeliverySuccessRate => limits(0.95, 0.97, MINUTE),
            Self::RetryRate => limits(0.2, 0.15, MINUTE),
            Self::AverageRetries => limits(1.5, 1.2, MINUTE),
            Self::AttemptDurationP99 => limits(25.0, 20.0, MINUTE),
            Self::DeliveryLatencyP95 => limits(10.0, 8.0, MINUTE),
            Self::QueueLength => limits(100.0, 80.0, MINUTE),
            Self::OldestWaiting => limits(24.0 * 3600.0, 12.0 * 3600.0, MINUTE),
            Self::FailedEndpoints => limits(10.0, 8.0, MINUTE),
            Self::EndpointFailing => limits(2.0, 0.0, Duration::ZERO),
            Self::DeadLetterSize => limits(1000.0, 800.0, MINUTE),
            Self::DiskSpace => limits(1024.0 * 1024.0 * 1024.0, 1.25 * 1024.0 * 1024.0 * 1024.0, MINUTE),
            Self::NotAccepting => limits(1.0, 1.0, MINUTE),
            Self::ClockNotTrusted => limits(1.0, 1.0, Duration::ZERO),
            Self::TaskRestarting => limits(0.0, 0.0, Duration::ZERO),
            Self::CertificateExpiring => {
                let day = 24.0 * 3600.0;
                limits(14.0 * day, 14.0 * day, Duration::ZERO)
            }
        }
    }

    /// The smallest and the largest threshold that makes sense.
    pub fn threshold_range(self) -> (f64, f64) {
        match self {
            _ if self.is_switch() => (1.0, 1.0),
            Self::EndpointFailing => (0.0, 1_000_000.0),
            Self::DiskSpace => (0.0, 1e15),
            _ => match self.unit() {
                Unit::Ratio => (0.0, 1.0),
                Unit::Seconds => (0.0, 366.0 * 24.0 * 3600.0),
                Unit::Number | Unit::Bytes => (0.0, 1e9),
            },
        }
    }
}

impl Sample {
    /// One failed attempt alone is no rate.
    pub const MIN: u64 = 10;
}

impl Comparison {
    /// Whether a value is beyond a limit. What is no number is not.
    pub fn breaches(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::Below => value < limit,
        }
    }

    pub fn sign(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::Below => "<",
        }
    }
}

impl AlertScope {
    pub const ALL: [Self; 3] = [Self::Server, Self::Organization, Self::Endpoint];

    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Organization => "organization",
            Self::Endpoint => "endpoint",
        }
    }
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Number => "number",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    /// A value as people read it: `12 %`, `37 s`, `1.5 GiB`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{} %", rounded(value * 100.0)),
            Self::Number => rounded(value),
            Self::Seconds if value >= 2.0 * 24.0 * 3600.0 => format!("{} d", rounded(value / 86_400.0)),
            Self::Seconds if value >= 2.0 * 3600.0 => format!("{} h", rounded(value / 3600.0)),
            Self::Seconds => format!("{} s", rounded(value)),
            Self::Bytes if value >= 1024.0 * 1024.0 * 1024.0 => {
                format!("{} GiB", rounded(value / (1024.0 * 1024.0 * 1024.0)))
            }
            Self::Bytes => format!("{} MiB", rounded(value / (1024.0 * 1024.0))),
        }
    }
}

/// At most two digits behind the point.
fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for AlertRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_its_own_name_and_is_found_by_it() {
        assert_eq!(BTreeSet::from(AlertRule::ALL).len(), AlertRule::ALL.len());
        for rule in AlertRule::ALL {
            assert_eq!(AlertRule::from_name(rule.name()), Some(rule));
            assert!(
                rule.name()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
        }
        assert_eq!(AlertRule::from_name("Queue-Length"), None);
        assert_eq!(AlertRule::AttemptDurationP99.prometheus_name(), "AldabaAttemptDurationP99");
    }

    #[test]
    fn a7_the_thresholds_are_those_of_the_document() {
        for (rule, threshold) in [
            (AlertRule::DeliveryFailureRate, 0.1),
            (AlertRule::QueueLength, 100.0),
            (AlertRule::AttemptDurationP99, 25.0),
        ] {
            assert_eq!(rule.default_limits().threshold.to_bits(), f64::to_bits(threshold), "{rule}");
            assert_eq!(rule.comparison(), Comparison::Above);
        }
    }

    #[test]
    fn d10_the_thresholds_are_those_of_the_document() {
        for (rule, sign, threshold) in [
            (AlertRule::DeliverySuccessRate, "<", 0.95),
            (AlertRule::DeliveryLatencyP95, ">", 10.0),
            (AlertRule::RetryRate, ">", 0.20),
            (AlertRule::FailedEndpoints, ">", 10.0),
            (AlertRule::AverageRetries, ">", 1.5),
        ] {
            assert_eq!(rule.default_limits().threshold.to_bits(), f64::to_bits(threshold), "{rule}");
            assert_eq!(rule.comparison().sign(), sign, "{rule}");
        }
    }

    #[test]
    fn d7_an_endpoint_is_alerted_of_when_its_failures_pass_two() {
        let limits = AlertRule::EndpointFailing.default_limits();
        assert_eq!(AlertRule::EndpointFailing.scopes(), [AlertScope::Endpoint]);
        assert!(!Comparison::Above.breaches(2.0, limits.threshold));
        assert!(Comparison::Above.breaches(3.0, limits.threshold));
    }

    #[test]
    fn default_limits_are_within_the_range_and_resolve_on_the_good_side() {
        for rule in AlertRule::ALL {
            let AlertLimits { threshold, resolve, window, .. } = rule.default_limits();
            let (least, most) = rule.threshold_range();
            assert!((least..=most).contains(&threshold), "{rule}");
            assert!(!rule.comparison().breaches(resolve, threshold), "{rule}");
            assert_eq!(window, rule.metric_window(), "{rule}");
        }
    }

    #[test]
    fn values_are_shown_with_their_units() {
        for (unit, value, shown) in [
            (Unit::Ratio, 0.123_456, "12.35 %"),
            (Unit::Number, 101.0, "101"),
            (Unit::Seconds, 25.5, "25.5 s"),
            (Unit::Seconds, 7200.0, "2 h"),
            (Unit::Seconds, 1_209_600.0, "14 d"),
            (Unit::Bytes, 1_610_612_736.0, "1.5 GiB"),
            (Unit::Bytes, 1_048_576.0, "1 MiB"),
        ] {
            assert_eq!(unit.show(value), shown);
        }
    }
}
