//! The two text formats of Prometheus.

use std::fmt::{Display, Write as _};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The text format 0.0.4 of Prometheus.
    Text,
    OpenMetrics,
}

/// Metrics as text, family by family.
#[derive(Debug)]
pub(super) struct Exposition {
    format: Format,
    text: String,
}

/// A histogram: how many there are up to each bound and above the one before, the last ones above all bounds.
pub(super) struct Histogram<'a> {
    pub(super) bounds: &'a [f64],
    pub(super) counts: &'a [u64],
    pub(super) sum: f64,
}

impl Format {
    const OPEN_METRICS: &str = "application/openmetrics-text";

    /// The format that a request prefers. OpenMetrics only where it is asked for by name.
    pub(crate) fn accepted(accept: &str) -> Self {
        let mut weights = [0.0_f64; 2];
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let index = match parts.next().unwrap_or("").to_ascii_lowercase().as_str() {
                Self::OPEN_METRICS => 0,
                "text/plain" | "text/*" | "*/*" => 1,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse().ok()).unwrap_or(1.0);
            weights[index] = weights[index].max(weight);
        }
        if weights[0] > 0.0 && weights[0] >= weights[1] { Self::OpenMetrics } else { Self::Text }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Exposition {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::with_capacity(16 * 1024) }
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// A number that only grows; its name ends with `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.counters(name, help, "", [("", value)]);
    }

    /// One for each value of a label.
    pub(super) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) {
        self.family(name, "counter", help);
        values.into_iter().for_each(|(of, value)| self.sample(name, label, of, number(value)));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.gauges(name, help, "", [("", value)]);
    }

    pub(super) fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) {
        self.family(name, "gauge", help);
        values.into_iter().for_each(|(of, value)| self.sample(name, label, of, number(value)));
    }

    /// Gauges with several labels.
    pub(super) fn table<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        rows: impl IntoIterator<Item = ([&'static str; N], f64)>,
    ) {
        self.family(name, "gauge", help);
        for (values, value) in rows {
            let pairs = labels.iter().zip(values).map(|(label, of)| format!("{label}=\"{}\"", escaped(of)));
            let pairs = pairs.collect::<Vec<_>>().join(",");
            let _ = writeln!(self.text, "{name}{{{pairs}}} {}", number(value));
        }
    }

    /// A gauge of 1 whose labels say something.
    pub(super) fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) {
        self.family(name, "gauge", help);
        let labels: Vec<_> =
            labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escaped(of))).collect();
        let _ = writeln!(self.text, "{name}{{{}}} 1", labels.join(","));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram<'_>) {
        self.family(name, "histogram", help);
        let (bucket, mut below) = (format!("{name}_bucket"), 0);
        for (place, count) in histogram.counts.iter().enumerate() {
            below += count;
            let bound = histogram.bounds.get(place).map_or("+Inf".to_owned(), |bound| format!("{bound:?}"));
            self.sample(&bucket, "le", &bound, below);
        }
        self.sample(&format!("{name}_sum"), "", "", number(histogram.sum));
        self.sample(&format!("{name}_count"), "", "", below);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let family = match self.format {
            Format::OpenMetrics if kind == "counter" => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}");
    }

    fn sample(&mut self, name: &str, label: &str, of: &str, value: impl Display) {
        let _ = match label {
            "" => writeln!(self.text, "{name} {value}"),
            _ => writeln!(self.text, "{name}{{{label}=\"{}\"}} {value}", escaped(of)),
        };
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// As both formats write numbers.
fn number(value: f64) -> String {
    if value.is_nan() { "NaN".into() } else { value.to_string() }
}

pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_given_to_who_asks_for_it_by_name() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;\
                          q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html,*/*;q=0.8", Format::Text),
            ("text/plain, application/openmetrics-text;q=0.1", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    fn text(format: Format) -> String {
        let mut out = Exposition::new(format);
        out.counters("a_total", "Counts a.", "kind", [("x", 3.0), ("\"\n\\", 0.0)]);
        out.gauge("b", "Says b.", f64::NAN);
        let histogram = Histogram { bounds: &[0.5, 1.0], counts: &[2, 0, 1], sum: 9.25 };
        out.histogram("c_seconds", "Times c.", &histogram);
        out.table("e", "Lists e.", ["a", "b"], [(["1", "x"], 2.0)]);
        out.info("d_info", "Tells d.", &[("version", "1"), ("commit", "e")]);
        out.finish()
    }

    #[test]
    fn both_formats_are_written_as_they_are_specified() {
        let rest = "a_total{kind=\"x\"} 3\na_total{kind=\"\\\"\\n\\\\\"} 0\n\
                    # HELP b Says b.\n# TYPE b gauge\nb NaN\n\
                    # HELP c_seconds Times c.\n# TYPE c_seconds histogram\n\
                    c_seconds_bucket{le=\"0.5\"} 2\nc_seconds_bucket{le=\"1.0\"} 2\nc_seconds_bucket{le=\"+Inf\"} 3\n\
                    c_seconds_sum 9.25\nc_seconds_count 3\n\
                    # HELP e Lists e.\n# TYPE e gauge\ne{a=\"1\",b=\"x\"} 2\n\
                    # HELP d_info Tells d.\n# TYPE d_info gauge\nd_info{version=\"1\",commit=\"e\"} 1\n";
        let head = "# HELP a_total Counts a.\n# TYPE a_total counter\n";
        assert_eq!(text(Format::Text), format!("{head}{rest}"));
        let head = "# HELP a Counts a.\n# TYPE a counter\n";
        assert_eq!(text(Format::OpenMetrics), format!("{head}{rest}# EOF\n"));
    }
}
