use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const LEASES_EXPIRED: &str = "aldaba_receiver_leases_expired_total";

/// Counts leases that ended while their owner was working. An event has its effect twice only if one was counted here, or
/// if the owner's process ended before it could count.
#[derive(Clone, Debug)]
pub(crate) struct Expired {
    ledger: &'static str,
    total: Arc<AtomicU64>,
}

/// Why a lease ended too early.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The lease expired, and nobody else has taken it.
    Lapsed,
    /// Another owner has taken it.
    Taken,
    /// The store could not be reached; the event may be marked.
    Unknown,
}

impl Expired {
    pub(crate) fn none(ledger: &'static str) -> Self {
        Self { ledger, total: Arc::default() }
    }

    pub(crate) fn count(&self, event_id: &str, ending: Ending) {
        let ending = match ending {
            Ending::Lapsed => "lapsed",
            Ending::Taken => "taken",
            Ending::Unknown => "unknown",
        };
        tracing::warn!(
            event_id,
            ledger = self.ledger,
            ending,
            "a lease ended while its event was being handled; the event may have its effect twice"
        );
        self.total.fetch_add(1, Relaxed);
        metrics::counter!(LEASES_EXPIRED, "ledger" => self.ledger, "ending" => ending).increment(1);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    #[test]
    fn expired_leases_are_counted_by_ledger_and_ending() {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let expired = Expired::none("redis");
        metrics::with_local_recorder(&recorder, || {
            for ending in [Ending::Lapsed, Ending::Taken, Ending::Taken, Ending::Unknown] {
                expired.clone().count("a", ending);
            }
        });
        assert_eq!(expired.total(), 4);
        let mut counted: Vec<_> = snapshotter
            .snapshot()
            .into_vec()
            .into_iter()
            .map(|(key, _, _, value)| {
                let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
                (key.key().name().to_owned(), labels.join(" "), value)
            })
            .collect();
        counted.sort_by(|one, other| one.1.cmp(&other.1));
        let row =
            |labels: &str, count| (LEASES_EXPIRED.to_owned(), labels.to_owned(), DebugValue::Counter(count));
        assert_eq!(counted, [row("redis lapsed", 1), row("redis taken", 2), row("redis unknown", 1)]);
    }
}
