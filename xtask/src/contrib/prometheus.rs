//! The rules file and its tests. A text in quotes is written as JSON, which YAML reads as well.

use aldaba_delivery::Language;
use aldaba_delivery::alert::{AlertLimits, AlertRule, Comparison};
use aldaba_delivery::format_duration;
use serde_json::Value;
use std::fmt::Write as _;

/// How often Prometheus evaluates the rules: as often as the server judges them.
const INTERVAL: u64 = 15;
/// Values of a series for each phase of a test: good, bad, between both thresholds, good.
const PHASE: usize = 12;

const HEAD: &str = "# Made by `cargo xtask contrib` from the alert rules of the server: docs/alerts.md. Change thresholds there, or copy a rule.\n";

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The rules that Prometheus can evaluate.
fn evaluated() -> impl Iterator<Item = (AlertRule, AlertLimits, String)> {
    AlertRule::ALL.into_iter().filter_map(|rule| {
        let limits = rule.default_limits();
        Some((rule, limits, rule.prometheus_expression(&limits)?))
    })
}

pub(super) fn rules() -> String {
    let mut text = format!("{HEAD}groups:\n  - name: aldaba\n    interval: {INTERVAL}s\n    rules:\n");
    for (rule, limits, expression) in evaluated() {
        let _ = writeln!(text, "      - alert: {}\n        expr: |-", rule.prometheus_name());
        for line in expression.lines() {
            let _ = writeln!(text, "          {line}");
        }
        if !limits.hold.is_zero() {
            let _ = writeln!(text, "        for: {}", format_duration(limits.hold));
        }
        let severity = rule.severity().name();
        let _ = writeln!(text, "        labels:\n          severity: {severity}\n          rule: {rule}");
        let _ = writeln!(text, "        annotations:");
        for (name, annotation) in annotations(rule, r#"{{ printf "%.3f" $value }}"#) {
            let _ = writeln!(text, "          {name}: {}", quoted(&annotation));
        }
    }
    text
}

fn annotations(rule: AlertRule, value: &str) -> [(&'static str, String); 4] {
    let texts = rule.texts(Language::English);
    [
        ("summary", texts.title().to_owned()),
        ("description", texts.meaning().to_owned()),
        ("what_to_do", texts.what_to_do().to_owned()),
        ("value", value.to_owned()),
    ]
}

/// For each rule: it fires after its time, goes on between both thresholds, and ends.
pub(super) fn tests() -> String {
    let mut text =
        format!("{HEAD}rule_files:\n  - aldaba.rules.yml\nevaluation_interval: {INTERVAL}s\ntests:\n");
    for (rule, limits, _) in evaluated() {
        test(&mut text, rule, &limits);
    }
    text
}

fn test(text: &mut String, rule: AlertRule, limits: &AlertLimits) {
    let beyond = |limit: f64, by: f64| match rule.comparison() {
        Comparison::Above => limit + by,
        Comparison::Below => limit - by,
    };
    let distance = (limits.threshold - limits.resolve).abs();
    let step = if distance == 0.0 { 1.0 } else { distance };
    let (good, bad) = (beyond(limits.resolve, -step / 2.0), beyond(limits.threshold, step / 2.0));
    let between = (limits.threshold + limits.resolve) / 2.0;
    let has_two = distance > 0.0;
    let phases = [good, bad, if has_two { between } else { bad }, good];
    let metric = rule.metric().unwrap_or_default();
    let labels = r#"instance="a:8071", job="aldaba""#;
    let name = rule.prometheus_name();
    let _ = writeln!(text, "  - name: {rule}\n    interval: {INTERVAL}s\n    input_series:");
    let series = |text: &mut String, series: &str, values: &str| {
        let _ = writeln!(text, "      - series: {}\n        values: {}", quoted(series), quoted(values));
    };
    match rule {
        // A moment, which comes closer.
        AlertRule::CertificateExpiring => {
            let at = limits.threshold as u64 + 60;
            series(text, &format!("{metric}{{{labels}, kind=\"listener\"}}"), &format!("{at}x{}", PHASE * 4));
            let later = at + 1_000_000;
            series(
                text,
                &format!("{metric}{{{labels}, kind=\"ca_file\"}}"),
                &format!("{later}x{}", PHASE * 4),
            );
        }
        _ => {
            let values: Vec<_> = phases.iter().map(|value| format!("{value}x{}", PHASE - 1)).collect();
            let more = match rule {
                AlertRule::DeadLetterSize => ", reason=\"exhausted\"",
                AlertRule::TaskRestarting => ", state=\"restarting\"",
                _ => "",
            };
            series(text, &format!("{metric}{{{labels}{more}}}"), &values.join(" "));
        }
    }
    if rule == AlertRule::QueueLength {
        series(text, &format!("webhook_queue_deferred{{{labels}}}"), &format!("0x{}", PHASE * 4));
    }
    if rule.sample().is_some() {
        for (counter, label) in [
            ("webhook_delivery_attempts_total", ", status=\"success\""),
            ("webhook_deliveries_delivered_total", ""),
            ("webhook_deliveries_dead_total", ", reason=\"exhausted\""),
        ] {
            series(text, &format!("{counter}{{{labels}{label}}}"), &format!("0+100x{}", PHASE * 4));
        }
    }
    let moment = |phase: usize, step: usize| (phase * PHASE + step) as u64 * INTERVAL;
    let _ = writeln!(text, "    alert_rule_test:");
    let mut expect = |at: u64, value: Option<f64>| {
        let _ = writeln!(text, "      - eval_time: {at}s\n        alertname: {name}");
        let Some(value) = value else {
            let _ = writeln!(text, "        exp_alerts: []");
            return;
        };
        let severity = rule.severity().name();
        let _ = writeln!(
            text,
            "        exp_alerts:\n          - exp_labels: {{severity: {severity}, rule: {rule}, instance: \"a:8071\", job: aldaba}}\n            exp_annotations:"
        );
        for (name, annotation) in annotations(rule, &format!("{value:.3}")) {
            let _ = writeln!(text, "              {name}: {}", quoted(&annotation));
        }
    };
    let hold = usize::try_from(limits.hold.as_secs().div_ceil(INTERVAL)).unwrap_or(0);
    match rule {
        AlertRule::CertificateExpiring => {
            expect(45, None);
            expect(75, Some(limits.threshold - 15.0));
        }
        _ => {
            expect(moment(0, PHASE - 1), None);
            if hold > 0 {
                expect(moment(1, hold - 1), None);
            }
            expect(moment(1, hold), Some(bad));
            expect(moment(2, PHASE - 1), Some(phases[2]));
            expect(moment(3, 1), None);
        }
    }
}
