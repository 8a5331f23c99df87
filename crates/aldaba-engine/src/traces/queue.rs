//! Spans that wait for the collector.

use super::TraceCounts;
use super::span::Span;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Spans that wait, about 400 bytes each. Beyond, new ones are dropped and counted.
pub(super) const MAX_WAITING_SPANS: usize = 4096;
/// Spans of one request to the collector.
pub(super) const MAX_BATCH_SPANS: usize = 512;

#[derive(Default)]
pub(super) struct SpanQueue {
    spans: Mutex<VecDeque<Span>>,
    /// Notified when a whole batch waits.
    pub(super) batch_waits: Notify,
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl SpanQueue {
    pub(super) fn push(&self, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() >= MAX_WAITING_SPANS {
            drop(spans);
            return self.drop_spans(1);
        }
        spans.push_back(span);
        if spans.len() == MAX_BATCH_SPANS {
            drop(spans);
            self.batch_waits.notify_one();
        }
    }

    /// The oldest spans. They wait on until they are [taken](Self::take) out.
    pub(super) fn oldest(&self) -> Vec<Span> {
        self.spans.lock().iter().take(MAX_BATCH_SPANS).cloned().collect()
    }

    /// Takes out as many of the oldest: only the one task that exports does, so they are those that it was given.
    pub(super) fn take(&self, count: usize, are_exported: bool) {
        let mut spans = self.spans.lock();
        let count = count.min(spans.len());
        spans.drain(..count);
        drop(spans);
        if are_exported {
            self.exported.fetch_add(count as u64, Ordering::Relaxed);
        } else {
            self.drop_spans(count as u64);
        }
    }

    pub(super) fn counts(&self) -> TraceCounts {
        TraceCounts {
            exported: self.exported.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn drop_spans(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
