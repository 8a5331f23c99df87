//! The metrics say what has happened, exactly.

use crate::sources::stage::{InboundSource, SECRET, now, standard};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use aldaba_delivery::alert::AlertRule;
use bytes::Bytes;
use http::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGE: &str = include_str!("../../../../../docs/metrics.md");

fn local(config: &mut Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
}

async fn scrape(server: &Running) -> String {
    let reply = server.client.anonymous().get("//metrics").await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(reply.body.to_vec()).unwrap()
}

/// The value of a series.
#[track_caller]
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
}

#[track_caller]
fn is_about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// One message to three endpoints: one succeeds at once, one at its second attempt, and one never.
async fn script(server: &Running) -> (String, Vec<Receiver>) {
    let app = server.application().await;
    let policy = json!({"name": "short", "schedule": {"type": "list", "delays": ["1s"]}});
    server.client.post("/policy", policy.to_string()).await.expect(201);
    let seen = Arc::new(AtomicUsize::new(0));
    let second = move |_: &_| if seen.fetch_add(1, Ordering::Relaxed) == 0 { 500 } else { 200 };
    let receivers = vec![
        Receiver::answering(200, "ok").await,
        Receiver::judging(SocketAddr::from(([127, 0, 0, 1], 0)), "", second).await,
        Receiver::answering(503, "no").await,
    ];
    for (receiver, uid) in receivers.iter().zip(["good", "late", "bad"]) {
        server.endpoint(&app, json!({"url": receiver.url("/"), "uid": uid, "policy": "short"})).await;
    }
    server.message(&app, "type.a").await;
    wait_until("all deliveries have ended", async || {
        let text = scrape(server).await;
        value(&text, "webhook_deliveries_delivered_total") == 2.0
            && value(&text, "webhook_deliveries_dead_total{reason=\"exhausted\"}") == 1.0
    })
    .await;
    (app, receivers)
}

#[tokio::test]
async fn a6_attempts_durations_and_retries_are_counted_exactly_and_as_the_api_lists_them() {
    let server = Running::with(local).await;
    let (app, receivers) = script(&server).await;
    let text = scrape(&server).await;
    let attempts =
        |status: &str| value(&text, &format!("webhook_delivery_attempts_total{{status=\"{status}\"}}"));
    assert_eq!((attempts("success"), attempts("retry"), attempts("failed")), (2.0, 2.0, 1.0));
    assert_eq!(value(&text, "webhook_delivery_duration_seconds_count"), 5.0);
    assert_eq!(value(&text, "webhook_delivery_duration_seconds_bucket{le=\"+Inf\"}"), 5.0);
    assert!(value(&text, "webhook_delivery_duration_seconds_sum") < 60.0);
    assert_eq!(value(&text, "webhook_delivery_retries_total"), 2.0);
    assert_eq!(value(&text, "webhook_messages_accepted_total"), 1.0);
    assert_eq!(value(&text, "webhook_deliveries_created_total"), 3.0);
    let mut listed = [0.0; 2];
    for uid in ["good", "late", "bad"] {
        let page = server.client.get(&format!("/app/{app}/attempt/endpoint/{uid}")).await.expect(200);
        for attempt in page["data"].as_array().unwrap() {
            listed[usize::from(attempt["status"] == 0)] += 1.0;
        }
    }
    assert_eq!(listed, [3.0, 2.0]);
    drop(receivers);
    server.stop().await;
}

#[tokio::test]
async fn a7_and_d10_rates_are_over_windows_that_survive_a_restart() {
    let server = Running::with(local).await;
    let (_, receivers) = script(&server).await;
    let rates = |text: &str| {
        is_about(value(text, "webhook_delivery_failure_rate"), 0.6);
        is_about(value(text, "webhook_delivery_success_rate"), 2.0 / 3.0);
        is_about(value(text, "webhook_retry_rate"), 2.0 / 3.0);
        is_about(value(text, "webhook_avg_retries_per_delivery"), 2.0 / 3.0);
        let latency = value(text, "webhook_delivery_p95_latency");
        assert!((0.5..30.0).contains(&latency), "{latency}");
        let p99 = value(text, "webhook_delivery_duration_seconds_p99");
        assert!((0.0..30.0).contains(&p99), "{p99}");
        assert_eq!(value(text, "webhook_queue_length"), 0.0);
        assert!(value(text, "webhook_duplicate_rate").is_nan(), "no source has received anything");
    };
    rates(&scrape(&server).await);
    let folder = server.stop().await;
    let again = Running::within(folder, local).await;
    let text = scrape(&again).await;
    rates(&text);
    wait_until("somebody has looked", async || value(&scrape(&again).await, "webhook_failed_count") == 0.0)
        .await;
    let attempts = value(&text, "webhook_delivery_attempts_total{status=\"success\"}");
    assert_eq!(attempts, 0.0, "counters begin with the process");
    drop(receivers);
    again.stop().await;
}

#[tokio::test]
async fn a7_the_queue_length_is_what_waits_and_d10_an_endpoint_that_is_gone_has_failed() {
    let server = Running::with(local).await;
    let app = server.application().await;
    let gone = Receiver::answering(410, "").await;
    server.endpoint(&app, json!({"url": gone.url("/")})).await;
    let in_an_hour = jiff::Timestamp::from_second(i64::try_from(now()).unwrap() + 3600).unwrap();
    let later = json!({"eventType": "a", "payload": {}, "deliverAt": in_an_hour.to_string()});
    server.client.post(&format!("/app/{app}/msg"), later.to_string()).await.expect(202);
    assert_eq!(value(&scrape(&server).await, "webhook_queue_length"), 1.0);
    server.message(&app, "a").await;
    wait_until("the endpoint is given up", async || {
        value(&scrape(&server).await, "webhook_failed_count") == 1.0
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_cancelled_has_not_failed() {
    let server = Running::with(local).await;
    let app = server.application().await;
    let receiver = Receiver::answering(200, "").await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let in_an_hour = jiff::Timestamp::from_second(i64::try_from(now()).unwrap() + 3600).unwrap();
    let later = json!({"eventType": "a", "payload": {}, "deliverAt": in_an_hour.to_string()});
    server.client.post(&format!("/app/{app}/msg"), later.to_string()).await.expect(202);
    server.client.send(Method::DELETE, &format!("/app/{app}"), &[], Bytes::new()).await.expect(204);
    let cancelled = "webhook_deliveries_dead_total{reason=\"cancelled\"}";
    wait_until("it is cancelled", async || value(&scrape(&server).await, cancelled) == 1.0).await;
    assert!(value(&scrape(&server).await, "webhook_delivery_success_rate").is_nan());
    server.stop().await;
}

#[tokio::test]
async fn what_nobody_has_looked_at_yet_is_no_number() {
    let server = Running::with(|config| config.engine.store_watch_interval = None).await;
    let text = scrape(&server).await;
    for series in [
        "webhook_failed_count",
        "webhook_oldest_waiting_seconds",
        "webhook_queue_deferred",
        "webhook_dead_letter_size{reason=\"exhausted\"}",
        "aldaba_accepting",
    ] {
        assert!(value(&text, series).is_nan(), "{series}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_messages_for_low_space_is_not_accepting() {
    let server = Running::with(|config| config.store.low_space_bytes = u64::MAX).await;
    assert_eq!(value(&scrape(&server).await, "aldaba_accepting"), 0.0);
    server.stop().await;
    let server = Running::start().await;
    wait_until("it accepts", async || value(&scrape(&server).await, "aldaba_accepting") == 1.0).await;
    server.stop().await;
}

#[tokio::test]
async fn e7_the_duplicate_rate_of_sources_is_a_metric_that_survives_a_restart() {
    let server = Running::delivering().await;
    let inbound =
        InboundSource::new(&server, "standard-webhooks", json!({"config": {"secret": SECRET}})).await;
    for id in ["one", "two", "one", "one"] {
        let headers = standard("webhook", SECRET, id, now(), b"{}");
        inbound.send_signed(&headers, "{}".to_owned()).await.expect(200);
    }
    let seen = |text: &str| value(text, "webhook_duplicate_rate");
    wait_until("the duplicates are counted", async || (seen(&scrape(&server).await) - 0.5).abs() < 1e-9)
        .await;
    let text = scrape(&server).await;
    assert_eq!(value(&text, "webhook_inbound_events_total{result=\"new\"}"), 2.0);
    assert_eq!(value(&text, "webhook_inbound_events_total{result=\"duplicate\"}"), 2.0);
    let again = Running::within(server.stop().await, |_| {}).await;
    is_about(seen(&scrape(&again).await), 0.5);
    again.stop().await;
}

#[tokio::test]
async fn what_an_operator_needs_is_there() {
    let server = Running::with(local).await;
    let (_, receivers) = script(&server).await;
    server.client.anonymous().get("/app").await.expect(401);
    server.client.get("/app/unknown").await.expect(404);
    let text = scrape(&server).await;
    let refused = |code: &str| value(&text, &format!("aldaba_requests_refused_total{{code=\"{code}\"}}"));
    assert_eq!((refused("authentication_failed"), refused("not_found"), refused("busy")), (1.0, 1.0, 0.0));
    assert!(value(&text, "aldaba_store_commit_seconds_count") >= 5.0);
    assert!(value(&text, "aldaba_store_commit_operations_sum") >= 5.0);
    assert!(value(&text, "aldaba_disk_free_bytes") > 0.0);
    assert!(value(&text, "aldaba_store_wal_bytes") >= 0.0);
    assert!(value(&text, "aldaba_background_tasks{state=\"running\"}") >= 8.0);
    assert_eq!(value(&text, "aldaba_background_tasks{state=\"restarting\"}"), 0.0);
    assert_eq!(value(&text, "aldaba_clock_trusted"), 1.0);
    assert!(value(&text, "process_resident_memory_bytes") > 1e6);
    assert!(value(&text, "process_open_fds") > 3.0);
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("aldaba_build_info{{version=\"{version}\",commit=\"")), "{text}");
    drop(receivers);
    server.stop().await;
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_is_there_and_no_label_is_an_id() {
    let server = Running::start().await;
    let text = scrape(&server).await;
    let exported: BTreeSet<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let (name, kind) = (cells.next()?.strip_suffix('`')?, cells.next()?);
        ["counter", "gauge", "histogram"].contains(&kind).then_some((name, kind))
    };
    let documented: BTreeSet<(&str, &str)> = PAGE.lines().filter_map(row).collect();
    assert_eq!(exported, documented);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        let (labels, _) = labels.split_once('}').unwrap();
        for label in labels.split(',').filter(|label| !label.starts_with("version=")) {
            let (name, value) = label.split_once('=').unwrap();
            let value = value.trim_matches('"');
            let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let is_bound = name == "le" && (value == "+Inf" || value.parse::<f64>().is_ok());
            let is_rule = name == "rule" && AlertRule::from_name(value).is_some();
            assert!(is_bound || is_rule || is_word && value.len() < 40, "{line}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn open_metrics_is_answered_to_those_who_ask_for_it() {
    let server = Running::start().await;
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let client = server.client.anonymous();
    let reply = client.send(Method::GET, "//metrics", &[("accept", accept)], Bytes::new()).await;
    assert_eq!(reply.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    assert!(text.ends_with("\n# EOF\n"));
    assert!(
        text.contains("# TYPE webhook_delivery_attempts counter\nwebhook_delivery_attempts_total{"),
        "{text}"
    );
    let head = client.send(Method::HEAD, "//metrics", &[], Bytes::new()).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    server.stop().await;
}
