//! How long attempts took: the middle one and the slow ones of each hour, on a logarithmic axis.

use super::scale::logarithmic;
use super::{drawing, point, table};
use aldaba_engine::escaped;
use std::time::Duration;

pub(crate) struct LatencyPoint {
    pub(crate) label: String,
    /// `None`: there were no attempts.
    pub(crate) median: Option<Duration>,
    pub(crate) p95: Option<Duration>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 120.0;
/// What the axis begins and ends with, in milliseconds.
const MIN_MILLIS: f64 = 5.0;
const MAX_MILLIS: f64 = 30_000.0;
const LINES: [u64; 4] = [10, 100, 1000, 10_000];

/// `head`: the columns of the table.
pub(crate) fn latency_chart(
    label: &str,
    (summary, head): (&str, [String; 3]),
    points: &[LatencyPoint],
    time: impl Fn(Duration) -> String,
) -> String {
    let step = WIDTH / points.len().max(1) as f64;
    let y =
        |time: Duration| HEIGHT - logarithmic(time.as_secs_f64() * 1000.0, MIN_MILLIS, MAX_MILLIS) * HEIGHT;
    let mut parts = String::new();
    for millis in LINES {
        let at = Duration::from_millis(millis);
        let y = point(y(at));
        parts.push_str(&format!("<line class=\"grid\" x1=\"0\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>"));
    }
    for (index, hour) in points.iter().enumerate() {
        let (Some(median), Some(p95)) = (hour.median, hour.p95) else { continue };
        let x = index as f64 * step;
        let (low, high) = (y(median), y(p95));
        let words = format!("{}: {} – {}", hour.label, time(median), time(p95));
        parts.push_str(&format!(
            "<rect class=\"range\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\
             <line class=\"median\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            point(x + 2.0),
            point(high),
            point(step - 4.0),
            point((low - high).max(2.0)),
            escaped(&words),
            point(x + 2.0),
            point(low),
            point(x + step - 2.0),
            point(low),
        ));
    }
    let marks: String = LINES
        .iter()
        .rev()
        .map(|millis| format!("<span>{}</span>", escaped(&time(Duration::from_millis(*millis)))))
        .collect();
    let text = |value: Option<Duration>| value.map_or_else(|| "–".to_owned(), &time);
    let rows: Vec<Vec<_>> = points
        .iter()
        .filter(|hour| hour.median.is_some())
        .map(|hour| vec![hour.label.clone(), text(hour.median), text(hour.p95)])
        .collect();
    format!(
        "<figure class=\"latency\"><div class=\"plot\"><div class=\"marks\" aria-hidden=\"true\">{marks}</div>{}</div>{}</figure>",
        drawing("times", (WIDTH, HEIGHT), label, &parts),
        table(summary, &head, &rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_a_range_from_the_middle_to_the_slow_ones() {
        let millis = |millis| Some(Duration::from_millis(millis));
        let points = [
            LatencyPoint { label: "17:00".into(), median: None, p95: None },
            LatencyPoint { label: "18:00".into(), median: millis(10), p95: millis(30_000) },
        ];
        let head = ["Hour".into(), "Median".into(), "95 %".into()];
        let html =
            latency_chart("Times", ("Table", head), &points, |time| format!("{} ms", time.as_millis()));
        assert_eq!((html.matches("class=\"range\"").count(), html.matches("<tr>").count()), (1, 2), "{html}");
        assert!(html.contains("y=\"0\"") && html.contains("18:00: 10 ms – 30000 ms"), "{html}");
    }
}
