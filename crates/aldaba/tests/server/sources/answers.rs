//! The answers to a sender; refused requests store nothing.

use crate::sources::stage::{InboundSource, SECRET, now, standard};
use crate::support::client::Reply;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use aldaba::config::Config;
use aldaba_engine::{Installation, NewSource, Setup, SourceSettings, SystemClock, SystemEntropy};
use aldaba_store::Actor;
use axum::body::Body;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

async fn inbound<'a>(server: &'a Running, more: Value) -> InboundSource<'a> {
    let mut body = json!({"config": {"secret": SECRET}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    InboundSource::new(server, "standard-webhooks", body).await
}

async fn send(inbound: &InboundSource<'_>, id: &str, body: &str) -> Reply {
    inbound.send_signed(&standard("webhook", SECRET, id, now(), body.as_bytes()), body.to_owned()).await
}

#[tokio::test]
async fn e4_ten_copies_at_once_are_one_message_and_nine_duplicates() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let inbound = inbound(&server, json!({})).await.forwarding(&receiver, json!({})).await;
    let answers = join_all((0..10).map(|_| send(&inbound, "same", r#"{"n":1}"#))).await;
    let answers: Vec<_> = answers.iter().map(|reply| reply.expect(200)).collect();
    assert_eq!(answers.iter().filter(|body| **body == json!({"received": true})).count(), 1);
    let repeat = json!({"received": true, "duplicate": true});
    assert_eq!(answers.iter().filter(|body| **body == repeat).count(), 9);
    assert_eq!(receiver.next().await.body, r#"{"n":1}"#);
    receiver.nothing_more().await;
    assert_eq!(inbound.messages().await.len(), 1);
    let counters = inbound.counters().await;
    assert_eq!((&counters["received"], &counters["duplicates"]), (&json!(1), &json!(9)));
    server.stop().await;
}

#[tokio::test]
async fn e9_bad_input_is_refused_and_neither_stored_nor_forwarded() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let inbound = inbound(&server, json!({})).await.forwarding(&receiver, json!({})).await;
    send(&inbound, "first", r#"{"n":1}"#).await.expect(200);
    receiver.next().await;
    let body = r#"{"n":2}"#;
    let signed = |id: &str, at: u64, body: &str| standard("webhook", SECRET, id, at, body.as_bytes());
    let other = standard("webhook", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "x", now(), body.as_bytes());
    let nameless: Vec<_> =
        signed("", now(), body).into_iter().filter(|(name, _)| name != "webhook-id").collect();
    let long = "x".repeat(300);
    for (what, reply, status) in [
        ("wrong signature", inbound.send_signed(&other, body).await, 401),
        ("no signature", inbound.send(&[], body).await, 401),
        ("another body", inbound.send_signed(&signed("x", now(), "{}"), body).await, 401),
        ("too old", inbound.send_signed(&signed("x", now() - 600, body), body).await, 401),
        ("too new", inbound.send_signed(&signed("x", now() + 600, body), body).await, 401),
        ("no id", inbound.send_signed(&nameless, body).await, 400),
        ("a long id", inbound.send_signed(&signed(&long, now(), body), body).await, 400),
        ("an id with a space", inbound.send_signed(&signed("a b", now(), body), body).await, 400),
        ("another body under the id", send(&inbound, "first", body).await, 409),
        ("too large", inbound.send(&[], Bytes::from(vec![b'x'; (1 << 20) + 1])).await, 413),
    ] {
        let said = reply.expect(status);
        if what == "no id" {
            assert_eq!(said["detail"], "the event has no id: there is none in `header:webhook-id`");
        }
        assert!(said["code"].is_string() && said["detail"].is_string(), "{what}: {said}");
        assert!(!reply.headers.contains_key("www-authenticate"), "{what}");
        let said = said.to_string();
        assert!(!said.contains("v1,") && !said.contains(SECRET), "{what}: {said}");
    }
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let reply =
            server.client.anonymous().send(method.clone(), &inbound.inside(), &[], Bytes::new()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.headers["allow"].to_str().unwrap()),
            (405, "POST"),
            "{method}"
        );
    }
    for path in [format!("{}/", inbound.inside()), format!("{}//", inbound.inside())] {
        let reply = server.client.anonymous().get(&path).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.headers["allow"]),
            (405, &"POST".parse().unwrap()),
            "{path}"
        );
    }
    for token in ["nobodys", "..%2F", &"x".repeat(500)] {
        let path = format!("//in/{token}");
        server.client.anonymous().post(&path, body).await.expect(404);
    }
    receiver.nothing_more().await;
    assert_eq!(inbound.messages().await.len(), 1);
    let log = inbound.log().await;
    assert_eq!(log.len(), 17, "the unknown have no log");
    let statuses: Vec<_> =
        log.iter().rev().take(10).map(|row| row["status_code"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 400, 400, 400, 409, 413]);
    for row in &log {
        assert_eq!(
            (&row["headers"], &row["payload"], &row["source_id"]),
            (&json!({}), &json!(""), &inbound.source["id"])
        );
        assert!(!row["error_text"].as_str().unwrap().is_empty());
    }
    let page = server.client.get(&inbound.path("/log?limit=2")).await.expect(200);
    let rest = inbound.path(&format!("/log?limit=250&iterator={}", page["iterator"].as_str().unwrap()));
    assert_eq!(server.client.get(&rest).await.expect(200)["data"].as_array().unwrap().len(), 15);
    let counters = inbound.counters().await;
    assert_eq!((&counters["refused"], &counters["conflicts"]), (&json!(17), &json!(1)));
    server.stop().await;
}

#[tokio::test]
async fn another_body_may_be_taken_for_a_repeat_and_what_is_deleted_cannot_be_compared() {
    let server = Running::start().await;
    let tolerant = inbound(&server, json!({"onOtherBody": "duplicate"})).await;
    send(&tolerant, "first", "{}").await.expect(200);
    assert_eq!(send(&tolerant, "first", r#"{"attempt":2}"#).await.expect(200)["duplicate"], true);
    let strict = inbound(&server, json!({})).await;
    send(&strict, "first", "{}").await.expect(200);
    send(&strict, "first", r#"{"attempt":2}"#).await.expect(409);
    server.client.delete(&format!("/app/{}/msg/first/content", strict.app())).await.expect(204);
    assert_eq!(send(&strict, "first", r#"{"attempt":2}"#).await.expect(200)["duplicate"], true);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_of_its_own_is_given_for_all_that_is_safe() {
    let server = Running::start().await;
    let own =
        json!({"answer": {"status": 202, "contentType": "text/xml", "body": "<ok/>"}, "filterTypes": ["a"]});
    let inbound = inbound(&server, own).await;
    for (id, body) in [("one", r#"{"type":"a"}"#), ("one", r#"{"type":"a"}"#), ("two", r#"{"type":"b"}"#)] {
        let reply = send(&inbound, id, body).await;
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (202, &b"<ok/>"[..]));
        assert_eq!(reply.headers["content-type"], "text/xml");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        assert_eq!(reply.headers["content-security-policy"], "sandbox; default-src 'none'");
    }
    let refused = inbound.send(&[], "{}").await;
    refused.expect(401);
    assert_eq!(refused.headers["content-security-policy"], "sandbox; default-src 'none'");
    assert_eq!(inbound.messages().await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn filtered_events_are_acknowledged_and_not_stored() {
    let server = Running::start().await;
    let filters = json!({
        "filterTypes": ["orders/create", "b"],
        "eventTypeFrom": ["header:x-topic", "$.type"],
        "filterHeaders": [{"name": "X-Shop", "values": ["one", "two"]}, {"name": "x-live"}],
    });
    let inbound = InboundSource::new(&server, "generic-webhook", filters).await;
    let ignored = json!({"received": true, "ignored": true});
    let both = [("x-shop", "two"), ("x-live", "")];
    for (topic, headers, body, taken) in [
        ("orders/create", &both[..], "1", true),
        ("orders.create", &both[..], "2", true),
        ("orders/paid", &both[..], "3", false),
        ("", &both[..], r#"{"type": "b"}"#, true),
        ("", &both[..], "4", false),
        ("b", &both[..1], "5", false),
        ("b", &[("x-shop", "three"), ("x-live", "1")][..], "6", false),
        ("b", &[][..], "7", false),
    ] {
        let headers: Vec<_> = headers.iter().copied().chain([("x-topic", topic)]).collect();
        let expected = if taken { json!({"received": true}) } else { ignored.clone() };
        assert_eq!(inbound.send(&headers, body).await.expect(200), expected, "{body}");
    }
    let messages = inbound.messages().await;
    let mut types: Vec<_> = messages.iter().map(|message| message["eventType"].as_str().unwrap()).collect();
    // Those of one moment are in any order.
    types.sort_unstable();
    assert_eq!(types, ["b", "orders.create", "orders.create"]);
    assert_eq!(inbound.counters().await["ignored"], 5);
    // A filtered event may be sent again after the filter has changed.
    server.client.patch(&inbound.path(""), r#"{"filterTypes": null}"#).await.expect(200);
    assert_eq!(inbound.send(&both, "4").await.expect(200), json!({"received": true}));
    server.stop().await;
}

#[tokio::test]
async fn a_full_server_answers_with_retry_after() {
    let server = Running::with(|config| config.limits.body_bytes = 4096).await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({})).await;
    let reply = inbound.send(&[], vec![b'x'; 5000]).await;
    assert_eq!(
        (reply.expect(503)["code"].as_str(), &reply.headers["retry-after"]),
        (Some("busy"), &"1".parse().unwrap())
    );
    server.stop().await;
    let server = Running::with(|config| config.store.low_space_bytes = u64::MAX).await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({})).await;
    let reply = inbound.send(&[], "{}").await;
    assert_eq!(
        (reply.expect(507)["code"].as_str(), &reply.headers["retry-after"]),
        (Some("disk_full"), &"10".parse().unwrap())
    );
    assert_eq!(inbound.messages().await.len(), 0);
    server.stop().await;
    let server = Running::with(|config| config.limits.rates.source = 2).await;
    let (inbound, other) = (
        InboundSource::new(&server, "generic-webhook", json!({})).await,
        InboundSource::new(&server, "generic-webhook", json!({})).await,
    );
    let answers = join_all((0..6).map(|number| inbound.send(&[], number.to_string()))).await;
    let refused: Vec<_> = answers.iter().filter(|reply| reply.status == 429).collect();
    assert!(refused.len() >= 2 && refused.len() < 6, "{answers:?}");
    assert!(refused.iter().all(|reply| reply.headers.contains_key("retry-after")));
    other.send(&[], "{}").await.expect(200);
    server.client.get("/app").await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn events_are_refused_while_the_store_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.folder = folder.path().join("data");
    let entropy: Arc<dyn aldaba_engine::Entropy> = Arc::new(SystemEntropy::new());
    let setup = Setup {
        store: config.store.clone(),
        clock: Arc::new(SystemClock::new()),
        entropy: entropy.clone(),
        encryption_key: Some([7; 32]),
        wire: Default::default(),
        overrides: config.overrides,
        engine: config.engine.clone(),
    };
    let Installation { engine, .. } = Installation::start(setup).await.unwrap();
    let api = aldaba::server::api(&engine, &*entropy, &config).await.unwrap();
    let org = aldaba_engine::default_organization();
    let new = NewSource {
        org,
        uid: None,
        name: "a".into(),
        metadata: "{}".into(),
        kind: "generic-webhook".into(),
        settings: SourceSettings::default(),
        secrets: Default::default(),
    };
    let directory = engine.directory().by(&Arc::new(Actor::program(org)));
    let (aldaba_engine::CreateOutcome::Created(source) | aldaba_engine::CreateOutcome::Existing(source)) =
        directory.create_source(new, None).await.unwrap();
    let path = format!("/in/{}", engine.directory().source_token(&source).unwrap());
    let send = |body: &'static str| {
        let request =
            Request::builder().method(Method::POST).uri(path.clone()).body(Body::from(body)).unwrap();
        let api = api.clone();
        async move { api.oneshot(request).await.unwrap() }
    };
    assert_eq!(send("one").await.status(), 200, "memory knows the source from now on");
    engine.shutdown(Duration::from_secs(5)).await;
    let answer = send("two").await;
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn strangers_use_up_nothing_of_what_the_sender_may_send() {
    let server = Running::with(|config| config.limits.rates.source = 2).await;
    let inbound = inbound(&server, json!({})).await;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(inbound.send(&[], "{}").await.status.as_u16());
    }
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
    send(&inbound, "one", "{}").await.expect(200);
    // The sender's own requests have a limit too.
    let answers =
        join_all((0..12).map(|number| send(&inbound, "many", if number == 0 { "{}" } else { "{ }" }))).await;
    assert!(answers.iter().any(|reply| reply.status == 429), "{answers:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_request_refused_unread_does_not_count_toward_the_rate() {
    let server = Running::with(|config| config.limits.rates.source = 20).await;
    let inbound = inbound(&server, json!({})).await;
    // Many more concurrent requests than may wait for verification. The refused ones are not attributed to any sender.
    let body = Bytes::from(vec![b'x'; 60 << 10]);
    let strangers = standard("webhook", SECRET, "stranger", now(), b"another body");
    let answers = join_all((0..120).map(|_| inbound.send_signed(&strangers, body.clone()))).await;
    assert!(answers.iter().all(|reply| reply.status != 200));
    for number in 0..10 {
        send(&inbound, &number.to_string(), "{}").await.expect(200);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_repeat_is_one_though_a_younger_schema_would_refuse_it() {
    let server = Running::start().await;
    let inbound = inbound(&server, json!({})).await;
    let body = r#"{"type":"user.created","n":"text"}"#;
    send(&inbound, "first", body).await.expect(200);
    let schema = json!({"description": "", "validate": true, "schemas": {"1": {"type": "object", "properties": {"n": {"type": "number"}}}}});
    server.client.put("/event-type/user.created", schema.to_string()).await.expect(201);
    assert_eq!(send(&inbound, "first", body).await.expect(200)["duplicate"], true);
    send(&inbound, "first", r#"{"type":"user.created","n":"other"}"#).await.expect(409);
    send(&inbound, "second", body).await.expect(422);
    send(&inbound, "third", r#"{"type":"user.created","n":3}"#).await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn a_body_without_a_content_type_is_not_sent_as_json() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({}))
        .await
        .forwarding(&receiver, json!({}))
        .await;
    inbound.send(&[], "bytes").await.expect(200);
    assert_eq!(receiver.next().await.headers["content-type"], "application/octet-stream");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_no_client_could_read_is_refused() {
    let server = Running::start().await;
    for (answer, status) in [
        (json!({"status": 204, "body": "text"}), 422),
        (json!({"status": 205, "body": "text"}), 422),
        (json!({"contentType": ""}), 422),
        (json!({"contentType": " "}), 422),
        (json!({"contentType": "text/ñ"}), 422),
        (json!({"contentType": "text/plain\r\nx: y"}), 422),
        (json!({"contentType": "text/plain; charset=utf-8", "body": "ñ\r\nx: y"}), 201),
        (json!({"status": 204}), 201),
    ] {
        let source = json!({"name": "a", "type": "generic-webhook", "answer": answer});
        server.client.post("/ingest/source", source.to_string()).await.expect(status);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_store_that_takes_long_is_not_waited_for_and_the_event_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/aldaba.db");
    let server = Running::within(folder, |_| {}).await;
    let inbound = inbound(&server, json!({})).await;
    send(&inbound, "before", "{}").await.expect(200);
    let other = rusqlite::Connection::open(file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reply = tokio::time::timeout(Duration::from_secs(15), send(&inbound, "while", "{}")).await.unwrap();
    assert_eq!(reply.expect(503)["code"], "late");
    assert!(reply.headers.contains_key("retry-after"));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(send(&inbound, "while", "{}").await.expect(200)["duplicate"], true);
    assert_eq!(inbound.messages().await.len(), 2);
    assert_eq!(inbound.counters().await["received"], 2);
    server.stop().await;
}
