//! `GET /health/live` and `GET /health/ready`.

use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use aldaba_engine::{Clock, SteppedClock, SystemClock};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// The state of a check.
fn state(report: &Value, name: &str) -> String {
    let checks = report["checks"].as_array().unwrap();
    let check =
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
    if check["state"] != "ok" {
        assert!(check["detail"].is_string() && check["action"].is_string(), "{check}");
    }
    check["state"].as_str().unwrap().to_owned()
}

async fn ready_until(client: &Client, is_it: impl Fn(u16, &Value) -> bool) -> Value {
    for _ in 0..100 {
        let reply = client.get("/health/ready").await;
        let report = reply.json();
        if is_it(reply.status.as_u16(), &report) {
            return report;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never so: {:?}", client.get("/health/ready").await);
}

#[expect(clippy::disallowed_methods, reason = "how long an answer takes is what is tested")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn a_server_that_works_is_live_and_ready_for_anybody_who_asks() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    assert_eq!(nobody.get("/health/live?probe=1").await.expect(200), json!({"status": "ok"}));
    let report = nobody.get("/health/ready?probe=1").await.expect(200);
    let ok = |name: &str| json!({"name": name, "state": "ok"});
    let checks = ["store", "space", "delivering", "queue", "background", "clock"].map(ok);
    assert_eq!(report, json!({"status": "ready", "checks": checks}));
    server.stop().await;
}

#[tokio::test]
async fn a_store_that_hangs_makes_it_not_ready_while_it_is_live_and_it_is_ready_again_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/aldaba.db");
    let server = Running::within(folder, |_| {}).await;
    let other = Connection::open(file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let nobody = server.client.anonymous();
    ready_until(&nobody, |status, report| status == 503 && state(report, "store") == "failing").await;
    let begun = now();
    for _ in 0..20 {
        assert_eq!(nobody.get("/health/live").await.expect(200), json!({"status": "ok"}));
    }
    assert!(now() - begun < Duration::from_secs(1), "it depends on nothing");
    let report = nobody.get("/health/ready").await.expect(503);
    assert_eq!(report["status"], "not_ready");
    assert_eq!(state(&report, "space"), "ok");
    other.execute_batch("ROLLBACK").unwrap();
    let report = ready_until(&nobody, |status, _| status == 200).await;
    assert_eq!(state(&report, "store"), "ok");
    server.stop().await;
}

#[tokio::test]
async fn a_disk_without_room_makes_it_not_ready() {
    let server = Running::with(|config| config.store.low_space_bytes = u64::MAX).await;
    let report = server.client.anonymous().get("/health/ready").await.expect(503);
    assert_eq!(state(&report, "space"), "failing");
    assert_eq!(state(&report, "store"), "ok", "results can still be written");
    server.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_not_trusted_is_a_warning() {
    let clock = Arc::new(SteppedClock::new(Arc::new(SystemClock::new()), 0));
    let server = Running::on_clock(tempfile::tempdir().unwrap(), clock.clone(), |_| {}).await;
    let nobody = server.client.anonymous();
    assert_eq!(state(&nobody.get("/health/ready").await.expect(200), "clock"), "ok");
    clock.set_offset(400 * 24 * 3_600_000);
    assert!(clock.now() > SystemClock::new().now());
    ready_until(&nobody, |status, report| status == 200 && state(report, "clock") == "warning").await;
    clock.set_offset(0);
    ready_until(&nobody, |status, report| status == 200 && state(report, "clock") == "ok").await;
    server.stop().await;
}

#[tokio::test]
async fn endpoints_that_wait_long_for_their_turn_are_a_warning() {
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let server = Running::with(|config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.engine.in_flight = 2;
        config.limits.queue_age = Duration::from_secs(1);
    })
    .await;
    let nobody = server.client.anonymous();
    for number in 0..6 {
        let app = server.application().await;
        let url = format!("http://{address}/{number}");
        server.endpoint(&app, json!({ "url": url })).await;
        server.message(&app, "a").await;
    }
    let report =
        ready_until(&nobody, |status, report| status == 200 && state(report, "queue") == "warning").await;
    assert_eq!(report["status"], "ready", "messages are accepted");
    drop((silent, server));
}

#[tokio::test]
async fn the_store_is_tried_once_a_second_however_many_ask() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    nobody.get("/health/ready").await.expect(200);
    let log = server.data().join("aldaba.db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let (before, begun) = (size(), now());
    let mut asked = 0;
    while now() - begun < Duration::from_millis(1500) {
        nobody.get("/health/ready").await.expect(200);
        asked += 1;
    }
    // A commit of a setting takes two pages or three.
    let written = (size() - before) / 4096;
    assert!(asked > 50 && written <= 30, "{asked} questions wrote {written} pages");
    server.stop().await;
}

#[tokio::test]
async fn a_receiver_that_answers_leaves_no_warning() {
    let server = Running::with(|config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.limits.queue_age = Duration::from_secs(1);
    })
    .await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    for _ in 0..20 {
        server.message(&app, "a").await;
        receiver.next().await;
        let report = server.client.anonymous().get("/health/ready").await.expect(200);
        assert_eq!(state(&report, "queue"), "ok");
    }
    server.stop().await;
}
