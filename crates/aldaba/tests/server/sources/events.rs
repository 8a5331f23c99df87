//! What becomes of an event that came in: it goes out as it came, and its state can be looked at.

use crate::sources::stage::InboundSource;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use bytes::Bytes;
use http::{HeaderValue, Method};
use serde_json::{Value, json};

#[tokio::test]
async fn a_body_goes_out_byte_by_byte_with_the_chosen_headers() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let chosen = json!({"forwardHeaders": ["X-Topic", "authorization"], "eventIdFrom": ["header:x-id"]});
    let inbound =
        InboundSource::new(&server, "generic-webhook", chosen).await.forwarding(&receiver, json!({})).await;
    let bodies: [&[u8]; 6] = [
        b"",
        b" { \"b\" : 1.0, \"a\":\"\\u00e9\" }\n",
        b"<xml attr='\xc3\xb1'/>",
        b"\x00\xff\xfe binary \x1f\x8b",
        b"a=1&b=2",
        b"[1,2]",
    ];
    for (number, body) in bodies.iter().enumerate() {
        let id = number.to_string();
        let headers = [
            ("x-id", id.as_str()),
            ("content-type", "application/x-own; a=\"b\""),
            ("content-encoding", "identity"),
            ("x-topic", "one"),
            ("x-topic", "two, three"),
            ("authorization", "Basic abc"),
            ("x-other", "not chosen"),
            ("webhook-id", "theirs"),
            ("user-agent", "theirs"),
            ("cookie", "a=b"),
        ];
        let sent = inbound.send(&headers, Bytes::copy_from_slice(body)).await.expect(200);
        assert_eq!(sent, json!({"received": true}), "{number}");
        let arrival = receiver.next().await;
        assert_eq!(&arrival.body[..], *body);
        assert_eq!(arrival.headers["content-type"], "application/x-own; a=\"b\"");
        assert_eq!(arrival.headers["content-encoding"], "identity");
        let topics: Vec<_> = arrival.headers.get_all("x-topic").iter().collect();
        assert_eq!(topics, [&HeaderValue::from_static("one"), &HeaderValue::from_static("two, three")]);
        assert_eq!(arrival.headers["authorization"], "Basic abc");
        for name in ["x-other", "cookie", "x-id"] {
            assert!(!arrival.headers.contains_key(name), "{name}");
        }
        assert_ne!(arrival.headers["webhook-id"], "theirs");
        assert_ne!(arrival.headers["user-agent"], "theirs");
        assert_eq!(arrival.headers["content-length"], body.len().to_string());
    }
    // As callers see them.
    let shown = |id: &str| {
        let path = format!("/app/{}/msg/{id}", inbound.app());
        let client = &server.client;
        async move { client.get(&path).await.expect(200)["payload"].clone() }
    };
    assert_eq!(shown("0").await, json!({"raw": ""}));
    assert_eq!(shown("1").await, json!({"b": 1.0, "a": "é"}));
    assert_eq!(shown("2").await, json!({"raw": "<xml attr='ñ'/>"}));
    assert_eq!(shown("3").await, json!({"base64": "AP/+IGJpbmFyeSAfiw=="}));
    assert_eq!(shown("5").await, json!({"raw": "[1,2]"}));
    // What the attempt went out with is worked out again.
    let attempts = server.client.get(&format!("/app/{}/attempt/msg/2", inbound.app())).await.expect(200);
    let attempt = attempts["data"][0]["id"].as_str().unwrap();
    let path = format!("/app/{}/msg/2/attempt/{attempt}/headers", inbound.app());
    let sent = server.client.get(&path).await.expect(200);
    assert_eq!(sent["sentHeaders"]["content-type"], "application/x-own; a=\"b\"", "{sent}");
    assert!(!sent.to_string().contains("Basic abc"), "{sent}");
    server.stop().await;
}

#[tokio::test]
async fn endpoint_filters_apply_to_json_and_other_bodies() {
    let server = Running::delivering().await;
    let (mut all, mut some) = (Receiver::answering(200, "").await, Receiver::answering(200, "").await);
    let inbound =
        InboundSource::new(&server, "generic-webhook", json!({})).await.forwarding(&all, json!({})).await;
    let filter = json!({"filter": {"payload": "$.amount", "gt": 10}});
    let inbound = inbound.forwarding(&some, filter).await;
    for body in [&br#"{"amount": 11}"#[..], br#"{"amount": 9}"#, b"<amount>11</amount>", b"\xff\xfe", b""] {
        inbound.send(&[], Bytes::copy_from_slice(body)).await.expect(200);
        assert_eq!(&all.next().await.body[..], body);
    }
    assert_eq!(some.next().await.body, r#"{"amount": 11}"#);
    some.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn e10_an_event_is_processing_then_failed_and_after_a_replay_processed() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(400, "no thanks").await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventIdFrom": ["$.id"]})).await;
    let nobody = inbound.send(&[], r#"{"id": "for-nobody"}"#).await.expect(200);
    assert_eq!(nobody, json!({"received": true}));
    let event = inbound.event("for-nobody", "processed").await;
    assert_eq!((&event["deliveries"], &event["processedAt"]), (&json!(0), &event["receivedAt"]));
    let policy = json!({
        "name": "twice", "schedule": {"type": "list", "delays": ["1s"]}, "limit": {"attempts": 2},
    });
    server.client.post("/policy", policy.to_string()).await.expect(201);
    let inbound = inbound.forwarding(&receiver, json!({"policy": "twice"})).await;
    inbound.send(&[], r#"{"id": "evt/7"}"#).await.expect(200);
    let event = inbound.event("evt%2F7", "processing").await;
    assert_eq!((&event["eventId"], &event["deliveries"]), (&json!("evt/7"), &json!(1)));
    for name in ["processedAt", "failedAt", "error"] {
        assert_eq!(event[name], Value::Null, "{name}");
    }
    receiver.next().await;
    receiver.next().await;
    let failed = inbound.event("evt%2F7", "failed").await;
    assert!(failed["error"].as_str().unwrap().contains("400"), "{failed}");
    assert!(failed["failedAt"].is_string() && failed["processedAt"].is_null());
    assert_eq!(failed["receivedAt"], event["receivedAt"]);
    // It is no duplicate that was answered and forgotten: it lies in the dead letter.
    let dead = server.client.get(&format!("/app/{}/delivery?state=dead", inbound.app())).await;
    assert!(dead.status.is_success(), "{:?}", dead.body);
    let listed = |status: &str| {
        let path = inbound.path(&format!("/event?status={status}"));
        let client = &server.client;
        async move {
            let list = client.get(&path).await.expect(200);
            list["data"].as_array().unwrap().iter().map(|event| event["eventId"].clone()).collect::<Vec<_>>()
        }
    };
    assert_eq!(listed("failed").await, ["evt/7"]);
    assert_eq!(listed("processed").await, ["for-nobody"]);
    receiver.answer(200);
    let endpoints = server.client.get(&inbound.path("/endpoint")).await.expect(200);
    let endpoint = endpoints["data"][0]["id"].as_str().unwrap().to_owned();
    let since = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    let recover = format!("/app/{}/endpoint/{endpoint}/recover", inbound.app());
    server.client.post(&recover, since).await.expect(202);
    receiver.next().await;
    let processed = inbound.event("evt%2F7", "processed").await;
    assert_eq!((&processed["error"], &processed["failedAt"]), (&Value::Null, &Value::Null));
    assert!(processed["processedAt"].as_str().unwrap() > failed["failedAt"].as_str().unwrap());
    assert_eq!(listed("failed").await, [""; 0]);
    let by_message = inbound.event(processed["id"].as_str().unwrap(), "processed").await;
    assert_eq!(by_message, processed);
    server.client.get(&inbound.path("/event?status=lost")).await.expect(422);
    server.client.get(&inbound.path("/event/nobodys")).await.expect(404);
    let first = server.client.get(&inbound.path("/event?limit=1")).await.expect(200);
    let next = format!("/event?limit=1&iterator={}", first["iterator"].as_str().unwrap());
    assert_eq!(server.client.get(&inbound.path(&next)).await.expect(200)["data"][0]["eventId"], "for-nobody");
    server.stop().await;
}

#[tokio::test]
async fn e10_a_repeat_of_an_event_that_has_failed_opens_it_again() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(400, "no thanks").await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventIdFrom": ["$.id"]})).await;
    let policy =
        json!({"name": "once", "schedule": {"type": "list", "delays": ["1s"]}, "limit": {"attempts": 1}});
    server.client.post("/policy", policy.to_string()).await.expect(201);
    let inbound = inbound.forwarding(&receiver, json!({"policy": "once"})).await;
    let body = r#"{"id": "evt-1", "n": 1}"#;
    assert_eq!(inbound.send(&[], body).await.expect(200), json!({"received": true}));
    let id = receiver.next().await.headers["webhook-id"].clone();
    let failed = inbound.event("evt-1", "failed").await;
    assert_eq!(failed["error"], "HTTP 400: Bad Request");
    // Another body with its id is a conflict, whatever its state.
    inbound.send(&[], r#"{"id": "evt-1", "n": 2}"#).await.expect(409);
    // It fails again, and the next repeat opens it again.
    for _ in 0..2 {
        let said = inbound.send(&[], body).await.expect(200);
        assert_eq!(said, json!({"received": true, "reopened": true}));
        let arrival = receiver.next().await;
        assert_eq!((&arrival.headers["webhook-id"], &arrival.body[..]), (&id, body.as_bytes()));
        inbound.event("evt-1", "failed").await;
    }
    receiver.answer(200);
    let said = inbound.send(&[], body).await.expect(200);
    assert_eq!(said, json!({"received": true, "reopened": true}));
    receiver.next().await;
    let processed = inbound.event("evt-1", "processed").await;
    assert_eq!((&processed["error"], &processed["failedAt"]), (&Value::Null, &Value::Null));
    assert_eq!(processed["receivedAt"], failed["receivedAt"]);
    // From now on it is a duplicate like any other.
    let said = inbound.send(&[], body).await.expect(200);
    assert_eq!(said, json!({"received": true, "duplicate": true}));
    receiver.nothing_more().await;
    let counters = inbound.counters().await;
    assert_eq!(
        (&counters["received"], &counters["reopened"], &counters["duplicates"]),
        (&json!(1), &json!(3), &json!(1))
    );
    assert_eq!(inbound.messages().await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn e10_of_ten_repeats_at_once_one_opens_a_failed_event() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(410, "").await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventIdFrom": ["$.id"]})).await;
    let inbound = inbound.forwarding(&receiver, json!({"policy": "quick"})).await;
    let body = r#"{"id": "evt-1"}"#;
    inbound.send(&[], body).await.expect(200);
    receiver.next().await;
    inbound.event("evt-1", "failed").await;
    receiver.answer(200);
    let said = futures_util::future::join_all((0..10).map(|_| inbound.send(&[], body))).await;
    let reopened = said.iter().filter(|reply| reply.expect(200)["reopened"] == true).count();
    let duplicates = said.iter().filter(|reply| reply.expect(200)["duplicate"] == true).count();
    assert_eq!((reopened, duplicates), (1, 9));
    receiver.next().await;
    receiver.nothing_more().await;
    inbound.event("evt-1", "processed").await;
    server.stop().await;
}

#[tokio::test]
async fn e10_an_event_whose_only_endpoint_was_deleted_is_explained_and_the_next_endpoint_gets_events() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(503, "").await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventIdFrom": ["$.id"]})).await;
    let inbound = inbound.forwarding(&receiver, json!({"policy": "standard"})).await;
    let body = r#"{"id": "evt-1"}"#;
    inbound.send(&[], body).await.expect(200);
    inbound.event("evt-1", "processing").await;
    let endpoints = server.client.get(&inbound.path("/endpoint")).await.expect(200);
    let endpoint = endpoints["data"][0]["id"].as_str().unwrap().to_owned();
    server.client.delete(&inbound.path(&format!("/endpoint/{endpoint}"))).await.expect(204);
    let failed = inbound.event("evt-1", "failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("The endpoint was deleted before it had the event"), "{failed}");
    // It has no endpoint, and keeps its state.
    let said = inbound.send(&[], body).await.expect(200);
    assert_eq!(said, json!({"received": true, "duplicate": true}));
    inbound.event("evt-1", "failed").await;
    let mut next = Receiver::answering(200, "").await;
    let inbound = inbound.forwarding(&next, json!({})).await;
    let said = inbound.send(&[], body).await.expect(200);
    assert_eq!(said, json!({"received": true, "reopened": true}));
    assert_eq!(next.next().await.body, body);
    assert_eq!(inbound.event("evt-1", "processed").await["error"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn an_event_type_with_a_schema_is_held_to_it() {
    let server = Running::start().await;
    let schema = json!({
        "name": "paid", "description": "", "validate": true,
        "schemas": {"1": {"type": "object", "required": ["amount"]}},
    });
    server.client.post("/event-type", schema.to_string()).await.expect(201);
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventTypeFrom": ["$.type"]})).await;
    inbound.send(&[], r#"{"type": "paid", "amount": 1}"#).await.expect(200);
    inbound.send(&[], r#"{"type": "paid"}"#).await.expect(422);
    assert_eq!(inbound.messages().await.len(), 1);
    let path = inbound.inside();
    server.client.anonymous().send(Method::POST, &path, &[], "x".into()).await.expect(200);
    server.stop().await;
}
