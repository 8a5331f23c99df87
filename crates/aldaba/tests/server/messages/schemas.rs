//! Payloads are checked against the schemas of their event types.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::requests::bad_input::places;
use crate::support::running::{Running, token};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn described(server: &Running, name: &str, schemas: Value) {
    let body = json!({"description": "", "validate": true, "schemas": schemas}).to_string();
    let made = server.client.put(&format!("/event-type/{name}"), body).await;
    assert!(made.status.is_success(), "{:?}", made.body);
}

fn message(event_type: &str, payload: &Value) -> String {
    json!({"eventType": event_type, "payload": payload}).to_string()
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_refused_with_all_that_is_wrong() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let line = json!({"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}});
    let schema = json!({"type": "object", "required": ["id"], "properties": {"lines": {"type": "array", "items": line}}});
    described(&server, "order", json!({"1": schema})).await;
    server.client.post(&path, message("order", &json!({"id": 1, "lines": [{"count": 1}]}))).await.expect(202);
    let wrong = json!({"lines": [{"count": 1}, {"count": "x"}, {"count": 0}]});
    let refused = server.client.post(&path, message("order", &wrong)).await;
    assert_eq!(
        places(&refused),
        ["body.payload", "body.payload.lines.[1].count", "body.payload.lines.[2].count"]
    );
    assert_eq!(refused.json()["detail"][0]["msg"], "\"id\" is a required property (schema version 1)");
    let many = message("order", &json!({"id": 1, "lines": vec![5; 100]}));
    let many = server.client.post(&path, many).await.expect(422);
    let many = many["detail"].as_array().unwrap();
    assert_eq!((many.len(), &many[20]["msg"]), (21, &json!("and 80 more problems that are not listed")));
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
    // The older name of the field.
    let data = r#"{"eventType": "order", "data": {}}"#;
    assert_eq!(places(&server.client.post(&path, data).await), ["body.payload"]);
}

#[tokio::test]
async fn the_checked_payload_is_the_sent_payload() {
    let server = Running::start().await;
    let app = server.application().await;
    described(&server, "order", json!({"1": {"required": ["id"]}})).await;
    let send = async |raw: &str| {
        let parameters = json!({ "rawPayload": raw });
        let body = json!({"eventType": "order", "payload": {"id": 1}, "transformationsParams": parameters});
        server.client.post(&format!("/app/{app}/msg"), body.to_string()).await
    };
    send(r#"{"id": 2}"#).await.expect(202);
    for unfit in [r#"{"other": 2}"#, "id=2", "<id>2</id>", ""] {
        assert_eq!(places(&send(unfit).await), ["body.payload"], "{unfit}");
    }
}

#[tokio::test]
async fn every_message_of_a_batch_is_checked() {
    let server = Running::start().await;
    let app = server.application().await;
    described(&server, "order", json!({"1": {"required": ["id"]}})).await;
    let large = json!({"filling": "x".repeat(20_000)});
    let messages = json!([
        {"eventType": "order", "payload": {"id": 1}},
        {"eventType": "order", "payload": {}},
        {"eventType": "other", "payload": {}},
        {"eventType": "order", "payload": large},
        {"eventType": "order", "payload": {"id": 2}, "version": "7"},
    ]);
    let body = json!({ "messages": messages }).to_string();
    let answer = server.client.post(&format!("/app/{app}/msg/batch"), body).await.expect(202);
    let results = answer["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [202, 422, 202, 422, 422]);
    assert_eq!(results[1]["error"]["detail"][0]["loc"], json!(["body", "payload"]));
    assert_eq!(results[4]["error"]["detail"][0]["loc"], json!(["body", "version"]));
    assert_eq!(server.stored(&app).await, [1, 0, 2]);
}

#[tokio::test]
async fn types_that_do_not_ask_for_it_take_every_payload() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = json!({"description": "", "schemas": {"1": {"required": ["id"]}}}).to_string();
    server.client.put("/event-type/order", body).await.expect(201);
    described(&server, "other", json!({"1": false})).await;
    for event_type in ["order", "unknown"] {
        let sent = json!({"eventType": event_type, "payload": {}, "version": "7"}).to_string();
        server.client.post(&format!("/app/{app}/msg"), sent).await.expect(202);
    }
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    let theirs = other.post("/app", r#"{"name": "a"}"#).await.expect(201)["id"].clone();
    let path = format!("/app/{}/msg", theirs.as_str().unwrap());
    other.post(&path, message("other", &json!({}))).await.expect(202);
    server.client.post(&format!("/app/{app}/msg"), message("other", &json!({}))).await.expect(422);
}

#[tokio::test]
async fn a_version_chooses_the_schema_and_else_the_newest_counts() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let needs = |name: &str| json!({"required": [name]});
    described(&server, "order", json!({"2": needs("two"), "10": needs("ten"), "9": needs("nine")})).await;
    for (version, field) in
        [(Value::Null, "ten"), (json!("2"), "two"), (json!(9), "nine"), (json!("10"), "ten")]
    {
        for (given, status) in [(field, 202), ("other", 422)] {
            let body = json!({"eventType": "order", "payload": {given: 1}, "version": version});
            server.client.post(&path, body.to_string()).await.expect(status);
        }
    }
    let unknown = json!({"eventType": "order", "payload": {"ten": 1}, "version": "3"}).to_string();
    let refused = server.client.post(&path, unknown).await;
    assert_eq!(places(&refused), ["body.version"]);
    assert!(refused.json()["detail"][0]["msg"].as_str().unwrap().contains("2, 9, 10"));
}

#[tokio::test]
async fn a_change_of_a_schema_counts_from_the_next_message_on_also_after_a_restart() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let (empty, full) = (message("order", &json!({})), message("order", &json!({"id": 1})));
    let send =
        async |server: &Running, body: &str| server.client.post(&path, body.to_owned()).await.status.as_u16();
    assert_eq!(send(&server, &empty).await, 202);
    described(&server, "order", json!({"1": {"required": ["id"]}})).await;
    assert_eq!((send(&server, &empty).await, send(&server, &full).await), (422, 202));
    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!((send(&server, &empty).await, send(&server, &full).await), (422, 202));
    server.client.delete("/event-type/order").await.expect(204);
    assert_eq!(send(&server, &empty).await, 422, "an archived type is still checked");
    server.client.patch("/event-type/order", r#"{"validate": false}"#).await.expect(200);
    assert_eq!(send(&server, &empty).await, 202);
    server.client.patch("/event-type/order", r#"{"validate": true}"#).await.expect(200);
    assert_eq!(send(&server, &empty).await, 422);
    server.client.delete("/event-type/order?expunge=true").await.expect(204);
    assert_eq!(send(&server, &empty).await, 202);
}

#[tokio::test]
async fn a_repeat_of_an_accepted_message_is_answered_after_a_schema_change() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let body = message("order", &json!({}));
    let first = server.client.post_once(&path, "k", body.clone()).await.expect(202);
    described(&server, "order", json!({"1": {"required": ["id"]}})).await;
    assert_eq!(server.client.post_once(&path, "k", body.clone()).await.expect(202), first);
    server.client.post_once(&path, "k2", body).await.expect(422);
}

#[tokio::test]
async fn an_unknown_application_comes_before_a_payload_that_does_not_fit() {
    let server = Running::start().await;
    described(&server, "order", json!({"1": false})).await;
    server.client.post("/app/none/msg", message("order", &json!({}))).await.expect(404);
}

#[tokio::test]
async fn large_payloads_are_checked_and_hostile_ones_end() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let items = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    described(&server, "large", json!({"1": {"properties": {"items": {"items": items}}}})).await;
    let mut payload = json!({"items": vec![json!({"n": 1}); 50_000]});
    server.client.post(&path, message("large", &payload)).await.expect(202);
    payload["items"][49_999]["n"] = json!("x");
    let refused = server.client.post(&path, message("large", &payload)).await;
    assert_eq!(places(&refused), ["body.payload.items.[49999].n", "body.payload"]);

    let again = json!({"$ref": "#"});
    let twice = json!({"type": "object", "properties": {"a": {"anyOf": [again, again]}, "b": false}});
    described(&server, "twice", json!({"1": twice})).await;
    let mut nested = json!({"b": 1});
    for _ in 0..100 {
        nested = json!({"a": nested});
    }
    assert_eq!(places(&server.client.post(&path, message("twice", &nested)).await), ["body.payload"]);
    let pattern = json!({"properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}}});
    described(&server, "pattern", json!({"1": pattern})).await;
    let long = json!({"a": "ab".repeat(400_000)});
    let refused = server.client.post(&path, message("pattern", &long)).await;
    assert_eq!(places(&refused), ["body.payload"]);
    assert!(refused.json()["detail"][0]["msg"].as_str().unwrap().contains("takes too long"));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this measures")]
async fn a_batch_shares_one_validation_budget_and_delays_no_other_request() {
    let server = Running::start().await;
    let app = server.application().await;
    let again = json!({"$ref": "#"});
    let twice = json!({"type": "object", "properties": {"a": {"anyOf": [again, again]}, "b": false}});
    described(&server, "twice", json!({"1": twice})).await;
    let mut nested = json!({"b": 1});
    for _ in 0..30 {
        nested = json!({"a": nested});
    }
    let message = |payload: &Value| json!({"eventType": "twice", "payload": payload});
    let messages = vec![message(&nested); 500];
    let body = json!({ "messages": messages }).to_string();
    let path = format!("/app/{app}/msg/batch");
    let mut request = std::pin::pin!(server.client.post(&path, body));
    let mut longest = Duration::ZERO;
    let reply = loop {
        let begun = Instant::now();
        let ping = async {
            server.client.get("/health/ping").await.expect(204);
            // The pace of the measurement.
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        tokio::select! {
            biased;
            reply = &mut request => {
                longest = longest.max(begun.elapsed());
                break reply.expect(202);
            }
            () = ping => longest = longest.max(begun.elapsed()),
        }
    };
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    let results = reply["results"].as_array().unwrap();
    let looked_at = results.iter().take_while(|result| result["status"] == 422).count();
    assert!((40..=70).contains(&looked_at), "{looked_at}");
    for result in &results[looked_at..] {
        assert_eq!((&result["status"], &result["retryAfter"]), (&json!(429), &json!(1)), "{result}");
        assert_eq!(result["error"]["code"], "batch_too_costly");
        let text = result["error"]["detail"].as_str().unwrap();
        assert!(text.contains("send it alone, or in a smaller batch"), "{text}");
    }
    // In a smaller batch each message gets its own error.
    let body = json!({"messages": [message(&nested), message(&json!({}))]}).to_string();
    let reply = server.client.post(&path, body).await.expect(202);
    assert_eq!((&reply["results"][0]["status"], &reply["results"][1]["status"]), (&json!(422), &json!(202)));
}

#[tokio::test]
async fn a_thousand_usual_messages_fit_into_the_allowance_of_a_batch() {
    let server = Running::start().await;
    let app = server.application().await;
    let field = |n: usize| {
        (format!("field{n}"), json!({"type": "string", "minLength": 1, "pattern": "^[a-z0-9 ]+$"}))
    };
    let properties: serde_json::Map<_, _> = (0..20).map(field).collect();
    let schema = json!({"type": "object", "required": ["field0"], "properties": properties});
    described(&server, "usual", json!({"1": schema})).await;
    let fields: serde_json::Map<_, _> = (0..20)
        .map(|n| (format!("field{n}"), json!(format!("the value of field {n}, or so").replace(',', ""))))
        .collect();
    let body = json!({"messages": vec![json!({"eventType": "usual", "payload": fields}); 1000]}).to_string();
    let reply = server.client.post(&format!("/app/{app}/msg/batch"), body).await.expect(202);
    assert_eq!(reply["accepted"], 1000, "{}", reply["results"][999]);
}
