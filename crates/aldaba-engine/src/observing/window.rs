//! What happened in a window of time, and the rates that follow.

use aldaba_store::{CountKind, OrganizationCounts};
use std::time::Duration;

/// What happened in a window of time. A rate is `None` while nothing happened that it could be of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts(pub(super) OrganizationCounts);

impl WindowCounts {
    pub fn counts(&self) -> &OrganizationCounts {
        &self.0
    }

    /// The share of attempts that failed.
    pub fn failure_rate(&self) -> Option<f64> {
        ratio(self.get(CountKind::Retry) + self.get(CountKind::Failed), self.0.attempts())
    }

    /// The share of ended deliveries that were delivered, after however many attempts.
    pub fn success_rate(&self) -> Option<f64> {
        ratio(self.get(CountKind::Delivered), self.settled())
    }

    /// The share of ended deliveries that needed more than one attempt.
    pub fn retry_rate(&self) -> Option<f64> {
        ratio(self.get(CountKind::SettledAfterRetry), self.settled())
    }

    /// How many retries an ended delivery had on average.
    pub fn average_retries(&self) -> Option<f64> {
        ratio(self.get(CountKind::SettledRetries), self.settled())
    }

    /// 99 of 100 attempts took this long or less; at most the highest bound of the histogram, 30 s.
    pub fn duration_p99(&self) -> Option<Duration> {
        self.0.attempt_times().quantile(0.99)
    }

    /// 95 of 100 deliveries that succeeded did so within this time of their event, retries included.
    pub fn latency_p95(&self) -> Option<Duration> {
        self.0.latencies().quantile(0.95)
    }

    /// The share of the events of sources that were received before.
    pub fn duplicate_rate(&self) -> Option<f64> {
        let duplicates = self.get(CountKind::InboundDuplicates);
        ratio(duplicates, duplicates + self.get(CountKind::InboundReceived))
    }

    /// Deliveries that have ended, either way, but not those that a person has ended.
    pub fn settled(&self) -> u64 {
        self.get(CountKind::Delivered) + self.0.failed()
    }

    fn get(&self, kind: CountKind) -> u64 {
        self.0.get(kind)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
