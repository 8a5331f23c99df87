//! Traces, from the request to the attempts.

use crate::support::collector::Collector;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use aldaba_engine::{CollectorUrl, SampleRate};
use bytes::Bytes;
use http::Method;
use serde_json::json;
use std::time::Duration;

pub(super) const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Everything is exported to this collector.
pub(super) fn tracing_to(url: &str) -> impl FnOnce(&mut Config) + use<> {
    let url = CollectorUrl::parse(url).unwrap();
    move |config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.traces.collector = Some(url);
        config.traces.sample = SampleRate::new(1.0).unwrap();
    }
}

pub(super) async fn send(server: &Running, app: &str, headers: &[(&str, &str)]) -> String {
    let body = Bytes::from_static(br#"{"eventType": "a", "payload": {"a": 1}}"#);
    let path = format!("/app/{app}/msg");
    let sent = server.client.send(Method::POST, &path, headers, body).await.expect(202);
    sent["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_is_one_trace_from_the_request_over_the_commit_to_each_attempt() {
    let mut collector = Collector::start().await;
    let server = Running::with(tracing_to(&collector.url())).await;
    let receiver = Receiver::answering(500, "").await;
    let app = server.application().await;
    let endpoint =
        server.endpoint(&app, json!({"url": receiver.url("/secret"), "policy": "job-status"})).await;
    let message = send(&server, &app, &[]).await;
    let spans = collector.spans_of(&message, 5).await;
    let [request, commit, attempts @ ..] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((request.name.as_str(), request.kind), ("POST /api/v1/app/{app_id}/msg", 2));
    assert_eq!(request.attributes["http.response.status_code"], "202");
    assert_eq!(
        (commit.name.as_str(), commit.kind, commit.parent.as_str()),
        ("accept commit", 1, &*request.id)
    );
    assert!(request.parent.is_empty() && !request.failed && !commit.failed);
    assert!(request.begun <= commit.begun && commit.ended <= request.ended);
    for (attempt, number) in attempts.iter().zip(1..) {
        assert_eq!((attempt.name.as_str(), attempt.kind, &attempt.parent), ("attempt", 3, &request.id));
        assert_eq!(attempt.attributes["aldaba.attempt"], number.to_string());
        assert_eq!(attempt.attributes["aldaba.endpoint.id"], endpoint["id"]);
        assert_eq!(attempt.attributes["aldaba.application.id"], app);
        assert_eq!(attempt.attributes["http.response.status_code"], "500");
        assert_eq!(attempt.attributes["server.port"], receiver.address.port().to_string());
        assert!(attempt.failed && attempt.ended >= attempt.begun);
    }
    assert!(spans.iter().all(|span| span.trace == request.trace));
    // Seconds apart, by the policy: the times of day are right.
    let apart = Duration::from_nanos(attempts[2].begun - attempts[0].begun);
    assert!((Duration::from_millis(2900)..Duration::from_secs(20)).contains(&apart), "{apart:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_message_joins_its_callers_trace_and_receivers_are_told_of_it_where_that_is_asked_for() {
    let mut collector = Collector::start().await;
    let url = collector.url();
    let traced = tracing_to(&url);
    let server = Running::with(|config| {
        traced(config);
        config.traces.sample = SampleRate::new(0.0).unwrap();
        config.traces.pass_on = true;
    })
    .await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let message = send(&server, &app, &[("traceparent", CALLER)]).await;
    let told = receiver.next().await.headers["traceparent"].to_str().unwrap().to_owned();
    let spans = collector.spans_of(&message, 3).await;
    assert!(spans.iter().all(|span| span.trace == CALLER[3..35]), "{spans:#?}");
    let request = spans.iter().find(|span| span.kind == 2).unwrap();
    assert_eq!(request.parent, CALLER[36..52]);
    let attempt = spans.iter().find(|span| span.kind == 3).unwrap();
    assert_eq!(told, format!("00-{}-{}-01", attempt.trace, attempt.id));
    // Of a batch each message is a part of the trace; what the caller does not sample is passed on as that.
    let batch = json!({"messages": [{"eventType": "a", "payload": {}}, {"eventType": "a", "payload": {}}]});
    let batch = Bytes::from(batch.to_string());
    let unsampled = CALLER.replace("-01", "-00");
    let path = format!("/app/{app}/msg/batch");
    server.client.send(Method::POST, &path, &[("traceparent", &unsampled)], batch).await.expect(202);
    for _ in 0..2 {
        let told = receiver.next().await.headers["traceparent"].to_str().unwrap().to_owned();
        assert!(told.starts_with(&CALLER[..36]) && told.ends_with("-00"), "{told}");
    }
    // An endpoint's own header stays.
    let path = format!("/app/{app}/endpoint/{}/headers", endpoint["id"].as_str().unwrap());
    server.client.put(&path, r#"{"headers": {"traceparent": "mine"}}"#).await.expect(204);
    send(&server, &app, &[]).await;
    assert_eq!(receiver.next().await.headers["traceparent"], "mine");
    collector.all_within(Duration::from_millis(1500)).await;
    assert_eq!(collector.spans.len(), 3, "nothing else is sampled");
    server.stop().await;
}

#[tokio::test]
async fn an_attempt_after_a_restart_belongs_to_the_same_trace() {
    let mut collector = Collector::start().await;
    let server = Running::with(tracing_to(&collector.url())).await;
    let app = server.application().await;
    let receiver = Receiver::answering(500, "").await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "persistent"})).await;
    let message = send(&server, &app, &[]).await;
    let before = collector.spans_of(&message, 3).await;
    let server = Running::within(server.stop().await, tracing_to(&collector.url())).await;
    receiver.answer(200);
    let after = loop {
        collector.all_within(Duration::from_millis(100)).await;
        if let Some(span) = collector.spans.iter().find(|span| span.kind == 3 && !span.failed) {
            break span.clone();
        }
    };
    assert_eq!(after.trace, before[0].trace);
    assert_eq!(after.parent, before[0].id, "it hangs on the request of the former run");
    server.stop().await;
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = away.local_addr().unwrap();
    drop(away);
    let server = Running::with(tracing_to(&format!("http://{address}"))).await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let first = send(&server, &app, &[]).await;
    receiver.next().await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    send(&server, &app, &[]).await;
    receiver.next().await;
    // It comes: nothing that waited is lost.
    let arriving = Receiver::at(address, 200, "").await;
    let mut collector = Collector { receiver: arriving, spans: Vec::new(), bodies: Vec::new() };
    assert_eq!(collector.spans_of(&first, 3).await.len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn what_a_collector_refuses_is_dropped_and_what_it_cannot_take_now_is_sent_again() {
    let mut collector = Collector::start().await;
    collector.receiver.answer(503);
    let server = Running::with(tracing_to(&collector.url())).await;
    let app = server.application().await;
    let message = send(&server, &app, &[]).await;
    collector.receiver.next().await;
    collector.receiver.answer(200);
    assert_eq!(collector.spans_of(&message, 2).await.len(), 2);
    collector.receiver.answer(400);
    send(&server, &app, &[]).await;
    collector.receiver.next().await;
    collector.receiver.answer(200);
    let kept = send(&server, &app, &[]).await;
    assert_eq!(collector.spans_of(&kept, 2).await.len(), 2);
    assert_eq!(collector.of_messages().len(), 4, "the refused ones are not sent again");
    server.stop().await;
}

#[tokio::test]
async fn the_last_spans_are_exported_at_a_stop() {
    let mut collector = Collector::start().await;
    let server = Running::with(tracing_to(&collector.url())).await;
    let app = server.application().await;
    let message = send(&server, &app, &[]).await;
    server.stop().await;
    assert_eq!(collector.spans_of(&message, 2).await.len(), 2);
}

#[tokio::test]
async fn two_servers_of_one_process_have_traces_of_their_own() {
    let (mut one, other) = (Collector::start().await, Collector::start().await);
    let first = Running::with(tracing_to(&one.url())).await;
    let second = Running::with(tracing_to(&other.url())).await;
    let app = first.application().await;
    let message = send(&first, &app, &[]).await;
    first.stop().await;
    second.stop().await;
    assert_eq!(one.spans_of(&message, 2).await.len(), 2);
    let mut other = other;
    other.all_within(Duration::ZERO).await;
    assert!(other.spans.is_empty());
}

#[tokio::test]
async fn without_the_settings_nothing_is_sent_and_nobody_is_told() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    send(&server, &app, &[("traceparent", CALLER)]).await;
    assert!(!receiver.next().await.headers.contains_key("traceparent"));
    wait_until("it is delivered", async || server.stored(&app).await[2] == 1).await;
    server.stop().await;
}
