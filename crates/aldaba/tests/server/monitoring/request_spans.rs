//! The spans of requests to the API, and how they lead to attempts; receivers that are told of them.

use super::traces::{CALLER, send, tracing_to};
use crate::sources::stage::{InboundSource, SECRET, now, standard};
use crate::support::collector::Collector;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_for;
use bytes::Bytes;
use http::Method;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn every_request_that_submits_one_message_is_the_first_span_of_its_trace() {
    let mut collector = Collector::start().await;
    let server = Running::with(tracing_to(&collector.url())).await;
    let receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/hook")})).await;
    let of_endpoint = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    let url = receiver.url("/path-canary?query-canary");
    let requests = [
        ("/app/{app_id}/dispatch", format!("/app/{app}/dispatch"), json!({"url": url, "payload": {}})),
        (
            "/app/{app_id}/job",
            format!("/app/{app}/job"),
            json!({"jobId": "1", "jobType": "a", "status": "completed", "webhookUrl": url}),
        ),
        (
            "/app/{app_id}/endpoint/{endpoint_id}/send-example",
            format!("{of_endpoint}/send-example"),
            json!({"eventType": "svix.ping"}),
        ),
    ];
    for (route, path, body) in requests {
        server.client.post(&path, body.to_string()).await.expect(202);
        let request = collector.request(&format!("POST /api/v1{route}")).await;
        let message = request.attributes["aldaba.message.id"].clone();
        let spans = collector.spans_of(&message, 3).await;
        for span in &spans {
            assert_eq!(span.trace, request.trace, "{route}");
            assert!(span.id == request.id || span.parent == request.id, "{route}: {spans:#?}");
        }
        assert_eq!(request.attributes["http.response.status_code"], "202");
    }
    // A sender of webhooks has no say in it.
    let source = InboundSource::new(&server, "standard-webhooks", json!({"config": {"secret": SECRET}}))
        .await
        .forwarding(&receiver, json!({}))
        .await;
    let event = br#"{"type": "a"}"#;
    let mut headers = standard("webhook", SECRET, "msg_1", now(), event);
    headers.push(("traceparent".into(), CALLER.into()));
    source.send_signed(&headers, &event[..]).await.expect(200);
    let request = collector.request("POST /in/{token}").await;
    assert_ne!(request.trace, CALLER[3..35]);
    let message = request.attributes["aldaba.message.id"].clone();
    let spans = collector.spans_of(&message, 3).await;
    assert!(
        spans
            .iter()
            .all(|span| span.trace == request.trace && span.attributes["aldaba.message.id"] == message)
    );
    let exported = collector.bodies.concat();
    let token = source.inside();
    for secret in ["path-canary", "query-canary", token.rsplit('/').next().unwrap()] {
        assert!(!exported.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
    server.stop().await;
}

#[tokio::test]
async fn requests_about_many_messages_or_an_endpoint_are_spans_that_lead_to_their_attempts() {
    let mut collector = Collector::start().await;
    let server = Running::with(tracing_to(&collector.url())).await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/hook")})).await;
    let endpoint = endpoint["id"].as_str().unwrap().to_owned();
    let batch = json!({"messages": [{"eventType": "a", "payload": {}}, {"eventType": "a", "payload": {}}]});
    let sent = server.client.post(&format!("/app/{app}/msg/batch"), batch.to_string()).await.expect(202);
    let request = collector.request("POST /api/v1/app/{app_id}/msg/batch").await;
    let mut roots = Vec::new();
    for result in sent["results"].as_array().unwrap() {
        let spans = collector.spans_of(result["id"].as_str().unwrap(), 2).await;
        assert_eq!((spans[0].name.as_str(), spans[1].parent.as_str()), ("accept commit", &*spans[0].id));
        roots.push((spans[0].trace.clone(), spans[0].id.clone()));
    }
    assert_eq!(request.links, roots);
    // Where the caller names a trace, all is one.
    let path = format!("/app/{app}/msg/batch");
    let body = Bytes::from(batch.to_string());
    server.client.send(Method::POST, &path, &[("traceparent", CALLER)], body).await.expect(202);
    let joined = wait_for("the request", async || {
        collector.all_within(Duration::from_millis(100)).await;
        collector.spans.iter().find(|span| span.kind == 2 && span.trace == CALLER[3..35]).cloned()
    })
    .await;
    assert_eq!((joined.parent.as_str(), joined.links.len()), (&CALLER[36..52], 2));
    let message = sent["results"][0]["id"].as_str().unwrap();
    let resend = format!("/app/{app}/msg/{message}/endpoint/{endpoint}/resend");
    server.client.post(&resend, "").await.expect(202);
    let request =
        collector.request("POST /api/v1/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/resend").await;
    assert_eq!(request.links, roots[..1]);
    let of_endpoint = format!("/app/{app}/endpoint/{endpoint}");
    let since = r#"{"since": "2026-01-01T00:00:00Z"}"#;
    for (action, body, status) in [
        ("resume", "{}", 200),
        ("recover", since, 202),
        ("replay-missing", since, 202),
        ("bulk-replay", since, 202),
    ] {
        server.client.post(&format!("{of_endpoint}/{action}"), body).await.expect(status);
        let request = collector
            .request(&format!("POST /api/v1/app/{{app_id}}/endpoint/{{endpoint_id}}/{action}"))
            .await;
        assert_eq!(request.attributes["aldaba.endpoint.id"], endpoint, "as in attempts");
        assert_eq!(request.attributes["http.response.status_code"], status.to_string());
    }
    // A refused one too; one that only reads has none.
    server.client.post("/app/nobody/msg", "{}").await.expect(404);
    server.client.get(&of_endpoint).await.expect(200);
    let refused = collector.request("POST /api/v1/app/{app_id}/msg").await;
    assert_eq!(refused.attributes["http.response.status_code"], "404");
    assert!(collector.spans.iter().all(|span| !span.name.starts_with("GET")));
    receiver.next().await;
    server.stop().await;
}

#[tokio::test]
async fn a_wire_profile_tells_its_receivers_the_trace_without_the_setting_and_without_a_collector() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let profile = json!({
        "name": "traced", "signature": null,
        "headers": {"traceparent": "{traceparent}", "x-webhook-id": "{id}"},
    });
    server.client.post("/profile", profile.to_string()).await.expect(201);
    let traced = server.endpoint(&app, json!({"url": receiver.url("/traced"), "profile": "traced"})).await;
    server.endpoint(&app, json!({"url": receiver.url("/plain")})).await;
    send(&server, &app, &[("traceparent", CALLER)]).await;
    for _ in 0..2 {
        let arrival = receiver.next().await;
        let told = arrival.headers.get("traceparent").map(|told| told.to_str().unwrap());
        match arrival.path.as_str() {
            "/traced" => {
                let told = told.unwrap();
                assert!(told.starts_with(&CALLER[..36]) && told.ends_with("-01"), "{told}");
            }
            _ => assert_eq!(told, None),
        }
    }
    assert_eq!(traced["profile"], "traced");
    server.stop().await;
}
