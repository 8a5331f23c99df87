//! The result of a case: a table of all rounds, and its targets.

use crate::numbers::{median, shown};
use std::fmt::Write;

const LINE: usize = 120;

/// Rows of values, one value per round.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    decimals: usize,
    values: Vec<f64>,
}

/// A target of a case.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) claim: String,
    pub(crate) found: String,
    pub(crate) reached: bool,
}

#[derive(Debug)]
pub(crate) struct Report {
    /// The method, in a sentence or two.
    pub(crate) about: String,
    pub(crate) sheet: Sheet,
    pub(crate) bars: Vec<Bar>,
}

impl Sheet {
    /// Adds a round to a row.
    pub(crate) fn put(&mut self, name: &str, decimals: usize, value: f64) {
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.values.push(value),
            None => self.rows.push(Row { name: name.to_owned(), decimals, values: vec![value] }),
        }
    }

    pub(crate) fn values(&self, name: &str) -> &[f64] {
        self.rows.iter().find(|row| row.name == name).map(|row| &*row.values).unwrap_or_default()
    }

    pub(crate) fn median(&self, name: &str) -> f64 {
        median(self.values(name))
    }

    /// Whether a row is zero in every round, and has one.
    pub(crate) fn always_zero(&self, name: &str) -> bool {
        !self.values(name).is_empty() && self.values(name).iter().all(|value| *value == 0.0)
    }

    /// The latest round on one line.
    pub(crate) fn latest(&self) -> String {
        let last = |row: &Row| row.values.last().map(|value| shown(*value, row.decimals)).unwrap_or_default();
        let cells: Vec<_> = self.rows.iter().map(|row| format!("{}: {}", row.name, last(row))).collect();
        cells.join("; ")
    }

    fn markdown(&self) -> String {
        let rounds = self.rows.iter().map(|row| row.values.len()).max().unwrap_or_default();
        let mut text = String::from("| |");
        for round in 1..=rounds {
            let _ = write!(text, " round {round} |");
        }
        let _ = writeln!(text, " median |\n|{}", " --- |".repeat(rounds + 2));
        for Row { name, decimals, values } in &self.rows {
            let _ = write!(text, "| {name} |");
            for round in 0..rounds {
                let cell = values.get(round).map(|value| shown(*value, *decimals)).unwrap_or_default();
                let _ = write!(text, " {cell} |");
            }
            let _ = writeln!(text, " {} |", shown(median(values), *decimals));
        }
        text
    }
}

impl Bar {
    pub(crate) fn at_most(what: &str, most: f64, found: f64, decimals: usize) -> Self {
        let claim = format!("{what}: at most {}", shown(most, decimals));
        Self { claim, found: shown(found, decimals), reached: found <= most }
    }

    pub(crate) fn at_least(what: &str, least: f64, found: f64, decimals: usize) -> Self {
        let claim = format!("{what}: at least {}", shown(least, decimals));
        Self { claim, found: shown(found, decimals), reached: found >= least }
    }

    /// Rows that must be zero in every round.
    pub(crate) fn none(sheet: &Sheet, rows: &[&str]) -> Self {
        let reached = rows.iter().all(|row| sheet.always_zero(row));
        let found = rows.iter().map(|row| sheet.values(row).iter().sum::<f64>()).sum::<f64>();
        Self { claim: format!("none {}", rows.join(", none ")), found: shown(found, 0), reached }
    }
}

impl Report {
    /// For a case that cannot be measured on this machine.
    pub(crate) fn skipped(why: &str) -> Self {
        Self { about: format!("Not measured: {why}."), sheet: Sheet::default(), bars: Vec::new() }
    }

    pub(crate) fn reached(&self) -> bool {
        self.bars.iter().all(|bar| bar.reached)
    }

    pub(crate) fn markdown(&self, name: &str) -> String {
        let mut text = format!("### `{name}`\n\n{}\n", wrapped(&self.about));
        if !self.sheet.rows.is_empty() {
            let _ = write!(text, "\n{}\n", self.sheet.markdown());
        }
        for Bar { claim, found, reached } in &self.bars {
            let verdict = if *reached { "reached" } else { "**NOT reached**" };
            let _ = writeln!(text, "- {claim}. Found: {found}: {verdict}");
        }
        text
    }
}

/// Wraps text to the line length of the documents.
fn wrapped(text: &str) -> String {
    let (mut lines, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        let more = word.chars().count() + 1;
        if length > 0 {
            let fits = length + more <= LINE;
            lines.push(if fits { ' ' } else { '\n' });
            length = if fits { length } else { 0 };
        }
        lines.push_str(word);
        length += more;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.len() <= LINE), "{lines}");
        assert_eq!(lines.lines().count(), 3);
        assert_eq!(lines.split_whitespace().count(), 60);
    }

    #[test]
    fn a_report_has_a_column_a_round_a_median_and_a_verdict_a_bar() {
        let mut sheet = Sheet::default();
        for value in [3.0, 1.0, 2.0] {
            sheet.put("delivered/s", 0, value * 1000.0);
        }
        sheet.put("lost", 0, 0.0);
        let bars = vec![
            Bar::at_least("delivered/s", 1500.0, sheet.median("delivered/s"), 0),
            Bar::at_most("p99, ms", 1.5, 2.25, 2),
            Bar::none(&sheet, &["lost"]),
        ];
        let report = Report { about: "About.".into(), sheet, bars };
        assert!(!report.reached());
        let expected = "\
### `case`

About.

| | round 1 | round 2 | round 3 | median |
| --- | --- | --- | --- | --- |
| delivered/s | 3,000 | 1,000 | 2,000 | 2,000 |
| lost | 0 |  |  | 0 |

- delivered/s: at least 1,500. Found: 2,000: reached
- p99, ms: at most 1.50. Found: 2.25: **NOT reached**
- none lost. Found: 0: reached
";
        assert_eq!(report.markdown("case"), expected);
    }

    #[test]
    fn a_bar_on_no_number_is_not_reached() {
        assert!(!Bar::at_most("a", 1.0, f64::NAN, 0).reached);
        assert!(!Bar::at_least("a", 1.0, f64::NAN, 0).reached);
        assert!(!Bar::none(&Sheet::default(), &["a"]).reached);
    }
}
