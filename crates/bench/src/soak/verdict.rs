//! Whether the samples are flat.

use super::samples::{SERIES, Sample};
use crate::numbers::shown;
use std::fmt::Write;

const MIB: f64 = 1048576.0;
/// A run of so many minutes is judged by the bounds of a long one.
const LONG_MINUTES: f64 = 10.0;
/// What a long run does first: caches fill, and retention begins.
const LONG_WARM_UP_SECONDS: f64 = 300.0;

/// What a series may do while it is judged.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// How much the line through the values may rise from its beginning to its end.
    growth: f64,
    /// The largest value, divided by the smallest.
    ratio: f64,
}

/// In the order of [`SERIES`], after five minutes.
const LONG: [Bounds; SERIES.len()] = [
    Bounds { growth: 8.0 * MIB, ratio: 1.5 },
    // Connections come and go.
    Bounds { growth: 10.0, ratio: 4.0 },
    Bounds { growth: 1.0, ratio: 1.2 },
    // Its file grows in steps, to 96 MiB.
    Bounds { growth: 40.0 * MIB, ratio: 2.0 },
    Bounds { growth: 16.0 * MIB, ratio: 1.25 },
];

/// In the order of [`SERIES`], after a third of the run: caches still fill, and retention has hardly begun.
const SHORT: [Bounds; SERIES.len()] = [
    Bounds { growth: 48.0 * MIB, ratio: 2.5 },
    Bounds { growth: 50.0, ratio: 3.0 },
    Bounds { growth: 4.0, ratio: 1.5 },
    Bounds { growth: 32.0 * MIB, ratio: f64::INFINITY },
    Bounds { growth: 128.0 * MIB, ratio: f64::INFINITY },
];

#[derive(Debug)]
pub(super) struct Verdict {
    after_seconds: f64,
    rows: Vec<JudgedSeries>,
}

/// One series.
#[derive(Debug)]
struct JudgedSeries {
    name: &'static str,
    first: f64,
    smallest: f64,
    largest: f64,
    growth: f64,
    bounds: Bounds,
}

impl JudgedSeries {
    fn ratio(&self) -> f64 {
        self.largest / self.smallest
    }

    /// Not flat without a number.
    fn is_flat(&self) -> bool {
        let ratio_is_small = self.ratio() <= self.bounds.ratio || self.bounds.ratio.is_infinite();
        self.growth <= self.bounds.growth && ratio_is_small
    }
}

impl Verdict {
    pub(super) fn of(samples: &[Sample], minutes: f64) -> Self {
        let (after_seconds, bounds) = match minutes >= LONG_MINUTES {
            true => (LONG_WARM_UP_SECONDS, LONG),
            false => (minutes * 20.0, SHORT),
        };
        let judged: Vec<_> = samples.iter().filter(|sample| sample.at >= after_seconds).collect();
        let row = |(series, name): (usize, &'static str)| {
            let points: Vec<_> = judged.iter().map(|sample| (sample.at, sample.values[series])).collect();
            let values = || points.iter().map(|(_, value)| *value);
            JudgedSeries {
                name,
                first: values().next().unwrap_or(f64::NAN),
                smallest: values().fold(f64::NAN, f64::min),
                largest: values().fold(f64::NAN, f64::max),
                growth: growth(&points),
                bounds: bounds[series],
            }
        };
        Self { after_seconds, rows: SERIES.into_iter().enumerate().map(row).collect() }
    }

    pub(super) fn is_flat(&self) -> bool {
        self.rows.iter().all(JudgedSeries::is_flat)
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "| after {} s | first | smallest | largest | growth | at most | largest / smallest | at most | |\n|{}\n",
            shown(self.after_seconds, 0),
            " --- |".repeat(9)
        );
        for row in &self.rows {
            let show = |value| readable(row.name, value);
            let ratio = match row.bounds.ratio {
                ratio if ratio.is_finite() => shown(ratio, 2),
                _ => "not judged".into(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {ratio} | {} |",
                about(row.name),
                show(row.first),
                show(row.smallest),
                show(row.largest),
                show(row.growth),
                show(row.bounds.growth),
                shown(row.ratio(), 2),
                if row.is_flat() { "flat" } else { "**NOT flat**" },
            );
        }
        text
    }
}

fn about(name: &str) -> &str {
    match name {
        "memory" => "resident memory",
        "log" => "write-ahead log",
        "disk" => "database and other files",
        other => other,
    }
}

/// Bytes as MiB, numbers as they are.
pub(super) fn readable(name: &str, value: f64) -> String {
    match name {
        "descriptors" | "threads" => shown(value, 1),
        _ => format!("{} MiB", shown(value / MIB, 1)),
    }
}

/// How much the straight line with the least squares rises over the time of the points; NaN for fewer than two.
fn growth(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(at, _)| (at - middle).powi(2)).sum();
    let together: f64 = points.iter().map(|(at, value)| (at - middle) * (value - level)).sum();
    match (points.first(), points.last()) {
        (Some(first), Some(last)) => together / spread * (last.0 - first.0),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 30 minutes in which one series has these values by the second.
    fn judged(series: usize, value: impl Fn(f64) -> f64) -> Verdict {
        let sample = |n: u32| {
            let at = f64::from(n) * 5.0;
            let mut values = [50.0 * MIB, 60.0, 20.0, 4.0 * MIB, 100.0 * MIB];
            values[series] = value(at);
            Sample { at, values }
        };
        Verdict::of(&(0..360).map(sample).collect::<Vec<_>>(), 30.0)
    }

    #[test]
    fn a_line_rises_by_its_slope() {
        let points: Vec<_> = (0..10).map(|n| (f64::from(n), 3.0 * f64::from(n) + 7.0)).collect();
        assert!((growth(&points) - 27.0).abs() < 1e-9);
        assert!(growth(&[]).is_nan() && growth(&[(1.0, 2.0)]).is_nan());
    }

    #[test]
    fn caches_that_fill_in_the_first_five_minutes_are_flat() {
        let verdict = judged(0, |at| (at.min(290.0) * 0.1 + 20.0) * MIB);
        assert!(verdict.is_flat(), "{}", verdict.markdown());
    }

    #[test]
    fn a_leak_of_a_tenth_of_a_percent_a_second_is_found_in_every_series() {
        for (series, start) in [(0, 50.0 * MIB), (1, 60.0), (2, 20.0), (3, 64.0 * MIB), (4, 100.0 * MIB)] {
            let verdict = judged(series, |at| start * (1.0 + at / 1000.0));
            assert!(!verdict.is_flat(), "{}", SERIES[series]);
            assert_eq!(verdict.markdown().matches("**NOT flat**").count(), 1, "{}", verdict.markdown());
        }
    }

    #[test]
    fn a_peak_that_comes_and_goes_is_found() {
        let verdict = judged(0, |at| if (900.0..960.0).contains(&at) { 200.0 * MIB } else { 50.0 * MIB });
        assert!(!verdict.is_flat());
    }

    #[test]
    fn a_run_without_samples_is_not_flat() {
        assert!(!Verdict::of(&[], 30.0).is_flat());
    }
}
