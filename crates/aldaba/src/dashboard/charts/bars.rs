//! Stacked bars: one for each hour, a part for each thing that is counted.

use super::scale::round_up;
use super::{drawing, point, table};
use aldaba_engine::escaped;

/// What a part of each bar counts.
pub(crate) struct Series {
    /// Of the style sheet, such as `delivered`.
    pub(crate) class: &'static str,
    pub(crate) label: String,
}

pub(crate) struct Bar {
    /// Such as `18:00`.
    pub(crate) label: String,
    /// In the order of the series, from below.
    pub(crate) counts: Vec<u64>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 140.0;
const GAP: f64 = 3.0;

/// `head`: the name of the labels' column; `summary`: of the table; `count` writes a number.
pub(crate) fn stacked_bars(
    label: &str,
    (summary, head): (&str, &str),
    series: &[Series],
    bars: &[Bar],
    count: impl Fn(u64) -> String,
) -> String {
    let sums = bars.iter().map(|bar| bar.counts.iter().sum::<u64>());
    let most = round_up(sums.max().unwrap_or(0) as f64);
    let step = WIDTH / bars.len().max(1) as f64;
    let mut parts = String::new();
    for (index, bar) in bars.iter().enumerate() {
        let mut below = 0.0;
        for (number, series) in bar.counts.iter().zip(series) {
            // What happened is seen, however little it is.
            let height = if *number == 0 { 0.0 } else { (*number as f64 / most * HEIGHT).max(1.5) };
            if height > 0.0 {
                let (x, y) =
                    (point(index as f64 * step + GAP / 2.0), point((HEIGHT - below - height).max(0.0)));
                parts.push_str(&format!(
                    "<rect class=\"fill-{}\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                    series.class,
                    point(step - GAP),
                    point(height),
                    escaped(&format!("{}: {} {}", bar.label, count(*number), series.label)),
                ));
            }
            below += height;
        }
    }
    let base = format!("<line class=\"axis\" x1=\"0\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\"/>");
    let legend: String = series
        .iter()
        .map(|series| {
            format!("<li><span class=\"key fill-{}\"></span> {}</li>", series.class, escaped(&series.label))
        })
        .collect();
    let ends = match (bars.first(), bars.last()) {
        (Some(first), Some(last)) => format!(
            "<div class=\"ends\"><span>{}</span><span>{}</span></div>",
            escaped(&first.label),
            escaped(&last.label)
        ),
        _ => String::new(),
    };
    let columns: Vec<_> =
        [head.to_owned()].into_iter().chain(series.iter().map(|series| series.label.clone())).collect();
    let rows: Vec<Vec<_>> = bars
        .iter()
        .filter(|bar| bar.counts.iter().any(|count| *count > 0))
        .map(|bar| {
            [bar.label.clone()].into_iter().chain(bar.counts.iter().map(|number| count(*number))).collect()
        })
        .collect();
    format!(
        "<figure class=\"bars\"><div class=\"plot\"><span class=\"most\">{}</span>{}</div>{ends}<ul class=\"legend\">{legend}</ul>{}</figure>",
        escaped(&count(most as u64)),
        drawing("stacked", (WIDTH, HEIGHT), label, &format!("{parts}{base}")),
        table(summary, &columns, &rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Vec<Series> {
        [("delivered", "delivered"), ("failed", "<dead>")]
            .map(|(class, label)| Series { class, label: label.into() })
            .into()
    }

    #[test]
    fn a_bar_has_a_part_for_each_count_and_a_row_in_the_table() {
        let bars = [
            Bar { label: "17:00".into(), counts: vec![0, 0] },
            Bar { label: "18:00".into(), counts: vec![1000, 1] },
        ];
        let html =
            stacked_bars("Deliveries", ("Table", "Hour"), &series(), &bars, |number| number.to_string());
        assert_eq!(html.matches("<rect").count(), 2, "nothing is drawn of nothing");
        assert!(html.contains("height=\"1.5\""), "one of a thousand is seen: {html}");
        assert_eq!(html.matches("<tr>").count(), 2, "{html}");
        assert!(html.contains("<th scope=\"col\">&lt;dead&gt;</th>") && !html.contains("<dead>"), "{html}");
        assert!(!html.contains("style="), "the content policy has no inline styles");
    }

    #[test]
    fn nothing_at_all_is_an_empty_chart() {
        let html = stacked_bars("Deliveries", ("Table", "Hour"), &series(), &[], |number| number.to_string());
        assert!(html.contains("<svg") && !html.contains("NaN"), "{html}");
    }
}
