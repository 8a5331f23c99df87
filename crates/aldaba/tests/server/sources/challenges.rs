//! Senders that ask first whether this is their receiver.

use crate::sources::stage::{InboundSource, hex, mac, now};
use crate::support::client::Reply;
use crate::support::running::Running;
use bytes::Bytes;
use http::Method;
use serde_json::json;

fn version_zero(at: u64, body: &str) -> String {
    format!("v0={}", hex(&mac(b"the secret", &[format!("v0:{at}:{body}").as_bytes()])))
}

async fn ask(inbound: &InboundSource<'_>, method: Method, query: &str, body: &'static str) -> Reply {
    let path = format!("{}?{query}", inbound.inside());
    inbound.server.client.anonymous().send(method, &path, &[], Bytes::from(body)).await
}

#[tokio::test]
async fn slack_and_zoom_are_answered_once_their_signature_holds() {
    let server = Running::start().await;
    let config = json!({"config": {"secret": "the secret"}});
    let (at, stamp) = (now(), now().to_string());
    let slack = InboundSource::new(&server, "slack", config.clone()).await;
    let body = r#"{"type": "url_verification", "challenge": "3eZbrw1a"}"#;
    let signature = version_zero(at, body);
    let headers = [("x-slack-request-timestamp", stamp.as_str()), ("x-slack-signature", &signature)];
    let reply = slack.send(&headers, body).await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"3eZbrw1a"[..]));
    assert_eq!(reply.headers["x-content-type-options"], "nosniff");
    slack.send(&[], body).await.expect(401);
    let zoom = InboundSource::new(&server, "zoom", config).await;
    let body = r#"{"event": "endpoint.url_validation", "payload": {"plainToken": "qgg8vlvZRS6"}}"#;
    let signature = version_zero(at, body);
    let headers = [("x-zm-request-timestamp", stamp.as_str()), ("x-zm-signature", &signature)];
    let answer = zoom.send(&headers, body).await.expect(200);
    assert_eq!(answer["encryptedToken"], hex(&mac(b"the secret", &[b"qgg8vlvZRS6"])));
    zoom.send(&[("x-zm-signature", "v0=00"), headers[0]], body).await.expect(401);
    for inbound in [slack, zoom] {
        assert_eq!(inbound.messages().await.len(), 0, "a challenge is no event");
        assert_eq!(inbound.counters().await["challenges"], 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn only_meta_may_use_get() {
    let server = Running::start().await;
    let config = json!({"config": {"secret": "the secret", "verifyToken": "typed in"}});
    let meta = InboundSource::new(&server, "meta", config).await;
    let asked = |token: &str| format!("hub.mode=subscribe&hub.verify_token={token}&hub.challenge=1158201444");
    let reply = ask(&meta, Method::GET, &asked("typed+in"), "").await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"1158201444"[..]));
    assert_eq!(ask(&meta, Method::GET, &asked("guessed"), "").await.expect(403)["code"], "not_verified");
    let counters = meta.counters().await;
    assert_eq!((&counters["challenges"], &counters["refused"]), (&json!(1), &json!(1)));
    let reply = ask(&meta, Method::GET, "", "").await;
    assert_eq!((reply.status.as_u16(), reply.headers["allow"].to_str().unwrap()), (405, "GET, POST"));
    assert_eq!(ask(&meta, Method::PUT, &asked("typed+in"), "").await.status, 405);
    let other = InboundSource::new(&server, "generic-webhook", json!({})).await;
    assert_eq!(ask(&other, Method::GET, &asked("typed+in"), "").await.status, 405);
    assert_eq!(meta.messages().await.len(), 0);
    server.stop().await;
}

#[tokio::test]
async fn microsoft_graph_challenges_client_state_and_duplicates_work() {
    let server = Running::start().await;
    let graph =
        InboundSource::new(&server, "microsoft-graph", json!({"config": {"clientState": "between us"}}))
            .await;
    let reply = ask(&graph, Method::POST, "validationToken=Validation%3A+Testing+%3Cb%3E", "").await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"Validation: Testing <b>"[..]));
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    let body = |states: &[&str]| {
        let value: Vec<_> =
            states.iter().map(|state| json!({"clientState": state, "changeType": "updated"})).collect();
        json!({ "value": value }).to_string()
    };
    for (states, status) in [
        (&["between us"][..], 200),
        (&["between us", "between us"][..], 200),
        (&["between us", "guessed"][..], 401),
        (&["guessed"][..], 401),
        (&[][..], 401),
    ] {
        graph.send(&[], body(states)).await.expect(status);
    }
    graph.send(&[], r#"{"value": [{"changeType": "updated"}]}"#).await.expect(401);
    graph.send(&[], "no json").await.expect(401);
    assert_eq!(graph.messages().await.len(), 2);
    // Its events have no ids, and many have the same bytes.
    assert_eq!(graph.send(&[], body(&["between us"])).await.expect(200), json!({"received": true}));
    let messages = graph.messages().await;
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message["eventId"].is_null()), "{messages:?}");
    let event = graph.event(messages[0]["id"].as_str().unwrap(), "processed").await;
    assert!(event["eventId"].is_null(), "{event}");
    // Unless the owner configures an id.
    server.client.patch(&graph.path(""), r#"{"eventIdFrom": ["body-digest"]}"#).await.expect(200);
    for duplicate in [false, true] {
        let answer = graph.send(&[], body(&["between us"])).await.expect(200);
        assert_eq!(answer["duplicate"] == true, duplicate, "{answer}");
    }
    // Elsewhere a query means nothing.
    let other = InboundSource::new(&server, "generic-webhook", json!({})).await;
    assert_eq!(
        ask(&other, Method::POST, "validationToken=x", "{}").await.expect(200),
        json!({"received": true})
    );
    server.stop().await;
}

#[tokio::test]
async fn endless_challenges_are_limited_and_events_are_not() {
    let server = Running::with(|config| config.limits.rates.source = 2).await;
    let config = json!({"config": {"clientState": "between us"}});
    let graph = InboundSource::new(&server, "microsoft-graph", config).await;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(ask(&graph, Method::POST, "validationToken=x", "").await.status.as_u16());
    }
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    let body = r#"{"value": [{"clientState": "between us", "changeType": "updated"}]}"#;
    graph.send(&[], body).await.expect(200);
    server.stop().await;
}
