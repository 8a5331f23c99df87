//! The schedule of a policy: when each attempt comes, on a logarithmic axis, with the span that jitter gives it.

use super::scale::logarithmic;
use super::{drawing, point, table};
use aldaba_engine::escaped;
use std::time::Duration;

/// An attempt after an event whose receiver does not answer.
pub(crate) struct PlannedAttempt {
    /// The earliest and the latest moment that jitter may choose.
    pub(crate) earliest: Duration,
    pub(crate) latest: Duration,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 56.0;
const LINE: f64 = 40.0;
/// What the axis begins with, in seconds.
const MIN_SECONDS: f64 = 0.1;

/// `outage`: how long a receiver is down, if that is shown too; `head`: the columns of the table.
pub(crate) fn schedule(
    label: &str,
    (summary, head): (&str, [String; 3]),
    attempts: &[PlannedAttempt],
    outage: Option<Duration>,
    time: impl Fn(Duration) -> String,
) -> String {
    let longest = attempts.last().map_or(1.0, |last| last.latest.as_secs_f64()).max(MIN_SECONDS * 10.0);
    let x = |at: Duration| 8.0 + logarithmic(at.as_secs_f64(), MIN_SECONDS, longest) * (WIDTH - 16.0);
    let mut parts = String::new();
    if let Some(outage) = outage {
        parts.push_str(&format!(
            "<rect class=\"outage\" x=\"0\" y=\"0\" width=\"{}\" height=\"{LINE}\"/>",
            point(x(outage).min(WIDTH))
        ));
    }
    parts.push_str(&format!("<line class=\"axis\" x1=\"0\" y1=\"{LINE}\" x2=\"{WIDTH}\" y2=\"{LINE}\"/>"));
    for (index, attempt) in attempts.iter().enumerate() {
        let (from, to) = (x(attempt.earliest), x(attempt.latest));
        let words = format!("{}: {} – {}", index + 1, time(attempt.earliest), time(attempt.latest));
        parts.push_str(&format!(
            "<g class=\"attempt planned\"><title>{}</title><rect class=\"jitter\" x=\"{}\" y=\"12\" width=\"{}\" height=\"28\"/>\
             <line class=\"stem\" x1=\"{}\" y1=\"12\" x2=\"{}\" y2=\"{LINE}\"/></g>",
            escaped(&words),
            point(from),
            point((to - from).max(1.0)),
            point((from + to) / 2.0),
            point((from + to) / 2.0),
        ));
    }
    let rows: Vec<Vec<_>> = attempts
        .iter()
        .enumerate()
        .map(|(index, attempt)| vec![(index + 1).to_string(), time(attempt.earliest), time(attempt.latest)])
        .collect();
    format!(
        "<figure class=\"schedule\">{}{}</figure>",
        drawing("planned-chart", (WIDTH, HEIGHT), label, &parts),
        table(summary, &head, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_spans_what_jitter_may_choose() {
        let seconds = |from: u64, to: u64| PlannedAttempt {
            earliest: Duration::from_secs(from),
            latest: Duration::from_secs(to),
        };
        let attempts = [seconds(0, 0), seconds(4, 6), seconds(240, 360)];
        let head = ["No.".into(), "From".into(), "To".into()];
        let html =
            schedule("persistent", ("Table", head), &attempts, Some(Duration::from_secs(35)), |time| {
                format!("{} s", time.as_secs())
            });
        assert_eq!(html.matches("class=\"jitter\"").count(), 3);
        assert_eq!(html.matches("class=\"outage\"").count(), 1);
        assert!(html.contains("3: 240 s – 360 s") && !html.contains("NaN"), "{html}");
    }
}
