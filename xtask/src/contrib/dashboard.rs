//! The dashboard: a panel for each rule with its threshold, and panels for what an operator needs besides.

use aldaba_delivery::Language;
use aldaba_delivery::alert::{AlertRule, Comparison, Unit};
use serde_json::{Value, json};

/// The columns of a dashboard, and those of a panel.
const WIDTH: u64 = 24;
const PANEL_WIDTH: u64 = 8;
const PANEL_HEIGHT: u64 = 7;

/// A panel: what it shows, in which unit, and its queries with their legends.
struct Panel {
    title: String,
    about: String,
    unit: &'static str,
    queries: Vec<(String, &'static str)>,
    threshold: Option<(f64, Comparison)>,
}

fn panel(title: &str, about: &str, unit: &'static str, queries: &[(&str, &'static str)]) -> Panel {
    let queries = queries.iter().map(|(query, legend)| (query.replace("$target", TARGET_INSIDE), *legend));
    Panel { title: title.into(), about: about.into(), unit, queries: queries.collect(), threshold: None }
}

/// Only of the servers that were chosen.
const TARGET_INSIDE: &str = r#"job=~"$job", instance=~"$instance""#;

/// What is shown besides the values of rules.
fn others() -> Vec<Panel> {
    vec![
        panel(
            "Attempts per second",
            "Attempts by what came of them",
            "reqps",
            &[("sum by (status) (rate(webhook_delivery_attempts_total{$target}[5m]))", "{{status}}")],
        ),
        panel(
            "Duration of attempts",
            "Half of all attempts, 95 % and 99 % of them take no longer",
            "s",
            &[
                (
                    "histogram_quantile(0.5, sum by (le) (rate(webhook_delivery_duration_seconds_bucket{$target}[5m])))",
                    "p50",
                ),
                (
                    "histogram_quantile(0.95, sum by (le) (rate(webhook_delivery_duration_seconds_bucket{$target}[5m])))",
                    "p95",
                ),
                (
                    "histogram_quantile(0.99, sum by (le) (rate(webhook_delivery_duration_seconds_bucket{$target}[5m])))",
                    "p99",
                ),
            ],
        ),
        panel(
            "Retries per second",
            "Attempts that were not the first of their delivery",
            "reqps",
            &[("sum(rate(webhook_delivery_retries_total{$target}[5m]))", "retries")],
        ),
        panel(
            "Messages and deliveries per second",
            "What was accepted, what began to wait, and what was delivered",
            "reqps",
            &[
                ("sum(rate(webhook_messages_accepted_total{$target}[5m]))", "messages accepted"),
                ("sum(rate(webhook_deliveries_created_total{$target}[5m]))", "deliveries created"),
                ("sum(rate(webhook_deliveries_delivered_total{$target}[5m]))", "deliveries delivered"),
            ],
        ),
        panel(
            "Dead letter by reason",
            "Deliveries in the dead letter list",
            "short",
            &[("sum by (reason) (webhook_dead_letter_size{$target})", "{{reason}}")],
        ),
        panel(
            "Held hosts, lanes and requests in flight",
            "What the scheduler has in memory",
            "short",
            &[
                ("sum(aldaba_held_hosts{$target})", "held hosts"),
                ("sum by (state) (aldaba_lanes{$target})", "lanes {{state}}"),
                ("sum(aldaba_deliveries_in_flight{$target})", "in flight"),
            ],
        ),
        panel(
            "Commits",
            "How long commits take: half of them, and 99 %",
            "s",
            &[
                (
                    "histogram_quantile(0.5, sum by (le) (rate(aldaba_store_commit_seconds_bucket{$target}[5m])))",
                    "p50",
                ),
                (
                    "histogram_quantile(0.99, sum by (le) (rate(aldaba_store_commit_seconds_bucket{$target}[5m])))",
                    "p99",
                ),
            ],
        ),
        panel(
            "Write-ahead log",
            "Its size on the disk",
            "bytes",
            &[("sum(aldaba_store_wal_bytes{$target})", "log")],
        ),
        panel(
            "Refused requests per second",
            "Answers of the API with an error, by code",
            "reqps",
            &[("sum by (code) (rate(aldaba_requests_refused_total{$target}[5m]))", "{{code}}")],
        ),
        panel(
            "Duplicates of inbound events",
            "The share of the events of sources that were received before",
            "percentunit",
            &[("webhook_duplicate_rate{$target}", "duplicates")],
        ),
        panel(
            "Alerts that fire",
            "For the server and for organizations",
            "short",
            &[(
                "sum by (rule, scope) (aldaba_alerts_firing{$target}) > 0 or vector(0)",
                "{{rule}} {{scope}}",
            )],
        ),
    ]
}

fn of_rule(rule: AlertRule) -> Option<Panel> {
    let texts = rule.texts(Language::English);
    let value = rule.prometheus_value()?;
    let metric = rule.metric()?;
    // Where the query has labels already, more are added.
    let query = match value.contains(&format!("{metric}{{")) {
        true => value.replace(&format!("{metric}{{"), &format!("{metric}{{{TARGET_INSIDE}, ")),
        false => value.replace(metric, &format!("{metric}{{{TARGET_INSIDE}}}")),
    };
    let unit = match rule.unit() {
        Unit::Ratio => "percentunit",
        Unit::Number => "short",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
    };
    Some(Panel {
        title: texts.meaning().into(),
        about: format!("Alert: {}. {}", texts.title(), texts.what_to_do()),
        unit,
        queries: vec![(query, "{{instance}}")],
        threshold: Some((rule.default_limits().threshold, rule.comparison())),
    })
}

pub(super) fn dashboard() -> String {
    let panels = AlertRule::ALL.into_iter().filter_map(of_rule).chain(others());
    let panels: Vec<_> = (0..).zip(panels).map(|(number, panel)| render(number, &panel)).collect();
    let variable = |name: &str, query: &str| {
        json!({
            "name": name, "label": name, "type": "query", "query": {"query": query, "refId": name},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "includeAll": true, "multi": true, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
            "refresh": 2, "sort": 1,
        })
    };
    let dashboard = json!({
        "uid": "aldaba",
        "title": "Aldaba",
        "description": "Made by `cargo xtask contrib` from the alert rules of the server.",
        "tags": ["webhooks"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "current": {}, "label": "data source"},
            variable("job", "label_values(webhook_queue_length, job)"),
            variable("instance", "label_values(webhook_queue_length{job=~\"$job\"}, instance)"),
        ]},
        "panels": panels,
    });
    format!("{dashboard:#}\n")
}

fn render(number: u64, panel: &Panel) -> Value {
    let columns = WIDTH / PANEL_WIDTH;
    let place = json!({
        "x": number % columns * PANEL_WIDTH, "y": number / columns * PANEL_HEIGHT, "w": PANEL_WIDTH, "h": PANEL_HEIGHT,
    });
    let targets = panel.queries.iter().zip('A'..).map(|((query, legend), letter)| {
        json!({
            "refId": letter.to_string(), "expr": query, "legendFormat": legend,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
        })
    });
    let (steps, style) = match panel.threshold {
        None => (json!([{"color": "green", "value": null}]), "off"),
        Some((threshold, Comparison::Above)) => {
            (json!([{"color": "green", "value": null}, {"color": "red", "value": threshold}]), "dashed")
        }
        Some((threshold, Comparison::Below)) => {
            (json!([{"color": "red", "value": null}, {"color": "green", "value": threshold}]), "dashed")
        }
    };
    json!({
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": place,
        "targets": targets.collect::<Vec<_>>(),
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": {"thresholdsStyle": {"mode": style}, "fillOpacity": 10},
            },
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    })
}
