//! Reads what was counted through the `metrics` facade. A snapshot of the recorder takes what it shows, so everything
//! seen is added up here for all tests of the process.

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

/// The metrics of one receiver.
pub(crate) struct Counted(String);

#[derive(Default)]
struct Totals {
    /// By name, receiver and outcome. Of histograms the number of values.
    sums: HashMap<(String, String, String), u64>,
    units: HashMap<String, Option<metrics::Unit>>,
}

fn recorder() -> &'static (Snapshotter, Mutex<Totals>) {
    static RECORDER: OnceLock<(Snapshotter, Mutex<Totals>)> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().unwrap();
        (snapshotter, Mutex::default())
    })
}

impl Counted {
    pub(crate) fn of(receiver: &str) -> Self {
        recorder();
        Self(receiver.to_owned())
    }

    pub(crate) fn events(&self, outcome: &str) -> u64 {
        self.sum("aldaba_receiver_events_total", outcome)
    }

    pub(crate) fn sum(&self, name: &str, outcome: &str) -> u64 {
        with_totals(|totals| {
            let key = (name.to_owned(), self.0.clone(), outcome.to_owned());
            totals.sums.get(&key).copied().unwrap_or_default()
        })
    }

    pub(crate) fn unit(&self, name: &str) -> Option<metrics::Unit> {
        with_totals(|totals| totals.units.get(name).cloned().flatten())
    }
}

fn with_totals<R>(read: impl FnOnce(&Totals) -> R) -> R {
    let (snapshotter, totals) = recorder();
    let mut totals = totals.lock().unwrap();
    for (key, unit, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let label = |name: &str| {
            key.labels()
                .find(|label| label.key() == name)
                .map(|label| label.value().to_owned())
                .unwrap_or_default()
        };
        let value = match value {
            DebugValue::Counter(count) => count,
            DebugValue::Histogram(values) => values.len() as u64,
            DebugValue::Gauge(_) => continue,
        };
        totals.units.insert(key.name().to_owned(), unit);
        *totals.sums.entry((key.name().to_owned(), label("receiver"), label("outcome"))).or_default() +=
            value;
    }
    read(&totals)
}
