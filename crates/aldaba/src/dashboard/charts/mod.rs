//! Charts as SVG of our own, coloured by classes of the style sheet, so that one drawing serves light and dark. Each comes with its
//! numbers as a table.

mod attempts;
mod bars;
mod latency;
mod scale;
mod schedule;
mod sparkline;

pub(crate) use attempts::{AttemptMark, attempt_timeline};
pub(crate) use bars::{Bar, Series, stacked_bars};
pub(crate) use latency::{LatencyPoint, latency_chart};
pub(crate) use schedule::{PlannedAttempt, schedule};
pub(crate) use sparkline::sparkline;

use aldaba_engine::escaped;

/// The numbers of a chart, for people who do not see it.
fn table(summary: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, row: &[String]| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect()
    };
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>", cells("td", row))).collect();
    format!(
        "<details class=\"numbers\"><summary>{}</summary><div class=\"scroll\"><table><thead><tr>{}</tr></thead><tbody>{body}</tbody>\
         </table></div></details>",
        escaped(summary),
        cells("th scope=\"col\"", head).replace("</th scope=\"col\">", "</th>"),
    )
}

/// A drawing with a name. Its parts say nothing by themselves.
fn drawing(class: &str, (width, height): (f64, f64), label: &str, parts: &str) -> String {
    format!(
        "<svg class=\"chart {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
         preserveAspectRatio=\"none\">{parts}</svg>",
        escaped(label)
    )
}

/// A coordinate, short.
fn point(value: f64) -> String {
    let text = format!("{value:.1}");
    text.trim_end_matches(".0").to_owned()
}
