//! Exports spans to the collector, a batch at a time. A collector that is away costs nothing but spans: they wait in the
//! queue, and new ones are dropped while it is full.

use super::collector::{Collector, ExportError};
use super::encode::{self, ClockPair};
use super::queue::SpanQueue;
use crate::Clock;
use crate::housekeeping::background::{StoreClosed, Task};
use std::sync::Arc;
use std::time::Duration;

/// How long spans wait for others, so that one request takes many.
const INTERVAL: Duration = Duration::from_secs(1);
/// The delay after a failed export. It doubles with each further one, up to the most.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// The two clocks may come so far apart before the time of day is read anew: much less than this is the resolution of the
/// time of day, and would make the spans of one trace jump.
const MAX_DRIFT: Duration = Duration::from_millis(100);

/// The background task.
#[derive(Clone)]
pub(crate) struct TraceExport {
    collector: Collector,
    clock: Arc<dyn Clock>,
    queue: Arc<SpanQueue>,
    clocks: Option<ClockPair>,
    /// Failed exports in a row.
    failures: u32,
    /// Spans dropped until the failures began.
    dropped_before: u64,
}

impl TraceExport {
    pub(super) fn new(collector: Collector, clock: Arc<dyn Clock>) -> Self {
        Self { collector, clock, queue: Arc::default(), clocks: None, failures: 0, dropped_before: 0 }
    }

    pub(super) fn queue(&self) -> Arc<SpanQueue> {
        self.queue.clone()
    }

    /// Exports what waits, a batch after the other, until none is left or the collector fails. Returns how long to wait.
    pub(crate) async fn run_once(&mut self) -> Duration {
        loop {
            let spans = self.queue.oldest();
            if spans.is_empty() {
                return INTERVAL;
            }
            let clocks = self.clock_pair();
            let body = encode::request(&self.collector.service, &spans, clocks);
            match self.collector.export(body).await {
                Ok(()) => {
                    self.queue.take(spans.len(), true);
                    self.works_again();
                }
                Err(ExportError::Refused(why)) => {
                    self.queue.take(spans.len(), false);
                    return self.failed(&why);
                }
                Err(ExportError::Unavailable(why)) => return self.failed(&why),
            }
        }
    }

    fn failed(&mut self, why: &str) -> Duration {
        if self.failures == 0 {
            self.dropped_before = self.queue.counts().dropped;
            tracing::warn!(
                collector = self.collector.url.shown(),
                why,
                "traces cannot be exported; spans wait, and are dropped when too many do. Deliveries are not concerned"
            );
        }
        let delay = FIRST_DELAY.saturating_mul(1 << self.failures.min(5)).min(MAX_DELAY);
        self.failures += 1;
        delay
    }

    fn works_again(&mut self) {
        if std::mem::take(&mut self.failures) > 0 {
            let dropped = self.queue.counts().dropped - self.dropped_before;
            tracing::info!(dropped, "traces are exported again");
        }
    }

    fn clock_pair(&mut self) -> ClockPair {
        let wall = Duration::from_millis(u64::try_from(self.clock.wall().millis()).unwrap_or(0));
        let now = ClockPair { wall, monotonic: self.clock.monotonic() };
        let is_near = |pair: &ClockPair| {
            let expected = (pair.wall + now.monotonic).saturating_sub(pair.monotonic);
            expected.abs_diff(now.wall) <= MAX_DRIFT
        };
        *self.clocks.insert(self.clocks.filter(is_near).unwrap_or(now))
    }
}

impl Task for TraceExport {
    const NAME: &'static str = "trace-export";

    async fn run(&mut self) -> StoreClosed {
        let mut delay = INTERVAL;
        loop {
            if self.failures == 0 {
                let full = self.queue.batch_waits.notified();
                let _ = tokio::time::timeout(delay, full).await;
            } else {
                tokio::time::sleep(delay).await;
            }
            delay = self.run_once().await;
        }
    }
}
