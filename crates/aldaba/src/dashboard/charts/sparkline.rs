//! A day of one application in a row of a table: how much was sent, and where it failed.

use super::{drawing, point};

const STEP: f64 = 5.0;
const HEIGHT: f64 = 24.0;

/// Successes and failures of each hour, oldest first.
pub(crate) fn sparkline(label: &str, hours: &[(u64, u64)]) -> String {
    let most = hours.iter().map(|(successes, failures)| successes + failures).max().unwrap_or(0).max(1);
    let mut parts = String::new();
    for (index, (successes, failures)) in hours.iter().enumerate() {
        let height =
            |count: u64| if count == 0 { 0.0 } else { (count as f64 / most as f64 * HEIGHT).max(1.5) };
        let (lower, upper) = (height(*successes), height(*failures));
        let x = point(index as f64 * STEP);
        for (class, y, height) in
            [("delivered", HEIGHT - lower, lower), ("failed", (HEIGHT - lower - upper).max(0.0), upper)]
        {
            if height > 0.0 {
                parts.push_str(&format!(
                    "<rect class=\"fill-{class}\" x=\"{x}\" y=\"{}\" width=\"4\" height=\"{}\"/>",
                    point(y),
                    point(height.min(HEIGHT))
                ));
            }
        }
    }
    let width = hours.len() as f64 * STEP;
    let base = format!("<line class=\"axis\" x1=\"0\" y1=\"{HEIGHT}\" x2=\"{width}\" y2=\"{HEIGHT}\"/>");
    drawing("spark", (width.max(STEP), HEIGHT), label, &format!("{parts}{base}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_without_attempts_is_a_gap() {
        let html = sparkline("a day", &[(0, 0), (3, 1), (1, 0)]);
        assert_eq!(html.matches("<rect").count(), 3, "{html}");
        assert!(sparkline("a day", &[]).contains("<line"));
    }
}
