//! The rules as Prometheus evaluates them.

use super::rule::{AlertRule, Sample};
use super::{AlertLimits, AlertScope};
use crate::{Reason, format_duration};

/// What identifies a server among the targets of a Prometheus.
const TARGET: &str = "on (instance, job)";

impl AlertRule {
    /// The value of the whole server, as Prometheus computes it. `None`: it has none.
    pub fn prometheus_value(self) -> Option<String> {
        let metric = self.metric().filter(|_| self.scopes().contains(&AlertScope::Server))?;
        Some(match self {
            Self::QueueLength => format!("{metric} - webhook_queue_deferred"),
            Self::DeadLetterSize => format!("sum without (reason) ({metric})"),
            Self::TaskRestarting => format!("sum without (state) ({metric}{{state=\"restarting\"}})"),
            // One that does not exist is NaN, which is below nothing.
            Self::CertificateExpiring => format!("min without (kind) ({metric} > 0) - time()"),
            _ => metric.to_owned(),
        })
    }

    /// What is true while the rule is beyond its limits: beyond the threshold, or beyond the other one while the alert fires.
    pub fn prometheus_expression(self, limits: &AlertLimits) -> Option<String> {
        let (value, sign) = (self.prometheus_value()?, self.comparison().sign());
        let mut expression = format!("{value} {sign} {}", limits.threshold);
        if let Some((sample, window)) = self.sample().zip(self.metric_window()) {
            let number = sample.number(&format_duration(window));
            expression = format!("({expression} and {TARGET} {number} >= {})", Sample::MIN);
        }
        if limits.resolve.to_bits() == limits.threshold.to_bits() {
            return Some(expression);
        }
        let name = self.prometheus_name();
        Some(format!(
            "{expression}\nor ({value} {sign} {} and {TARGET} ALERTS{{alertname=\"{name}\", alertstate=\"firing\"}} == 1)",
            limits.resolve
        ))
    }
}

impl Sample {
    /// How many there were within a window.
    fn number(self, window: &str) -> String {
        let delivered = format!("increase(webhook_deliveries_delivered_total[{window}])");
        match self {
            Self::Attempts => {
                format!("sum without (status) (increase(webhook_delivery_attempts_total[{window}]))")
            }
            Self::Ended => {
                let by_person = Reason::ALL.into_iter().filter(|reason| reason.is_manual());
                let by_person: Vec<_> = by_person.map(Reason::name).collect();
                let dead = format!("webhook_deliveries_dead_total{{reason!~\"{}\"}}", by_person.join("|"));
                let dead = format!("sum without (reason) (increase({dead}[{window}]))");
                format!("({delivered} + {dead})")
            }
            Self::Delivered => delivered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_has_both_thresholds_and_what_a_rate_needs() {
        let expression = |rule: AlertRule| rule.prometheus_expression(&rule.default_limits()).unwrap();
        assert_eq!(
            expression(AlertRule::QueueLength),
            "webhook_queue_length - webhook_queue_deferred > 100\n\
             or (webhook_queue_length - webhook_queue_deferred > 80 and on (instance, job) \
             ALERTS{alertname=\"AldabaQueueLength\", alertstate=\"firing\"} == 1)"
        );
        assert!(expression(AlertRule::DeliveryFailureRate).starts_with(
            "(webhook_delivery_failure_rate > 0.1 and on (instance, job) \
             sum without (status) (increase(webhook_delivery_attempts_total[5m])) >= 10)\nor "
        ));
        assert!(expression(AlertRule::DeliverySuccessRate).contains(
            "sum without (reason) (increase(webhook_deliveries_dead_total{reason!~\"cancelled|payload_deleted\"}[1h]))"
        ));
        assert_eq!(expression(AlertRule::ClockNotTrusted), "aldaba_clock_trusted < 1");
        assert_eq!(AlertRule::EndpointFailing.prometheus_value(), None);
    }
}
