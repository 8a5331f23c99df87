//! Fields that nobody knows are refused where ignoring one would do something else than was asked for.

use crate::bad_input::places;
use crate::client::Reply;
use crate::receiver::Receiver;
use crate::running::Running;
use serde_json::{Value, json};

#[track_caller]
fn refused(reply: &Reply, field: &str, message: &str) {
    assert_eq!(places(reply), [format!("body.{field}")]);
    assert_eq!(reply.json()["detail"][0]["msg"], message);
}

#[tokio::test]
async fn a_replay_with_a_misspelt_dry_run_does_not_start() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(500, "no").await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "job-status"})).await;
    server.message(&app, "a").await;
    receiver.next().await;
    let endpoint = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    for action in ["recover", "replay-missing", "bulk-replay"] {
        let path = format!("{endpoint}/{action}");
        let body = json!({"since": "2020-01-01T00:00:00Z", "dry_run": true}).to_string();
        refused(&server.client.post(&path, body).await, "dry_run", "unknown field; did you mean \"dryRun\"?");
        let body = json!({"since": "2020-01-01T00:00:00Z", "quarterly": true}).to_string();
        let reply = server.client.post(&path, body).await;
        assert_eq!(places(&reply), ["body.quarterly"]);
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.starts_with("unknown field; there are: since, until, "), "{message}");
    }
    // What a bulk replay alone has is unknown to the others.
    let body = json!({"since": "2020-01-01T00:00:00Z", "status": 2}).to_string();
    assert_eq!(places(&server.client.post(&format!("{endpoint}/recover"), body).await), ["body.status"]);
    let reply = server.client.post(&format!("{endpoint}/resume"), r#"{"recovr": true}"#).await;
    refused(&reply, "recovr", "unknown field; did you mean \"recover\"?");
    let tasks = server.client.get("/background-task").await.expect(200);
    assert_eq!(tasks["data"], json!([]), "nothing was started");
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_with_a_misspelt_field_is_neither_made_nor_changed() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    let list = format!("/app/{app}/endpoint");
    let wrong = json!({"url": "https://example.com/", "event_types": ["a"]}).to_string();
    let meant = "unknown field; did you mean \"eventTypes\"?";
    refused(&server.client.post(&list, wrong.clone()).await, "event_types", meant);
    refused(&server.client.put(&format!("{list}/door"), wrong.clone()).await, "event_types", meant);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);

    let made = server.endpoint(&app, json!({"uid": "door", "eventTypes": ["a"]})).await;
    refused(&server.client.put(&format!("{list}/door"), wrong.clone()).await, "event_types", meant);
    refused(
        &server.client.patch(&format!("{list}/door"), r#"{"event_types": null}"#).await,
        "event_types",
        meant,
    );
    let shown = server.client.get(&format!("{list}/door")).await.expect(200);
    assert_eq!(shown, made, "nothing has changed");

    // What was read can be sent back, with one of the two names for the same; it makes no new one.
    let mut shown = shown;
    shown.as_object_mut().unwrap().remove("filterTypes");
    server.client.put(&format!("{list}/door"), shown.to_string()).await.expect(200);
    server.client.patch(&format!("{list}/door"), shown.to_string()).await.expect(200);
    let copy = server.client.post(&list, shown.to_string()).await;
    assert_eq!(places(&copy), ["body.blocked", "body.createdAt", "body.health", "body.id", "body.updatedAt"]);

    // The other ways to an endpoint.
    for list in ["/operational-webhook/endpoint", "/ingest/source/spring/endpoint"] {
        if list.contains("source") {
            let source = r#"{"name": "s", "uid": "spring", "type": "generic-webhook"}"#;
            server.client.post("/ingest/source", source).await.expect(201);
        }
        let wrong = json!({"url": "https://example.com/", "throttle_rate": 1}).to_string();
        let meant = "unknown field; did you mean \"throttleRate\"?";
        refused(&server.client.post(list, wrong.clone()).await, "throttle_rate", meant);
        refused(&server.client.put(&format!("{list}/one"), wrong).await, "throttle_rate", meant);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_message_with_a_misspelt_field_is_not_sent() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    for (more, field, meant) in [
        (json!({"event_id": "1"}), "event_id", "eventId"),
        (json!({"deliver_at": "2030-01-01T00:00:00Z"}), "deliver_at", "deliverAt"),
        (json!({"channel": ["c"]}), "channel", "channels"),
        (json!({"Tags": null}), "Tags", "tags"),
    ] {
        let mut body = json!({"eventType": "a", "payload": {"any_name": {"is": "fine here"}}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let message = format!("unknown field; did you mean \"{meant}\"?");
        refused(&server.client.post(&path, body.to_string()).await, field, &message);

        let batch = json!({"messages": [body, {"eventType": "a", "payload": {}}]}).to_string();
        let reply = server.client.post(&format!("{path}/batch"), batch).await.expect(202);
        assert_eq!(
            (&reply["results"][0]["status"], &reply["results"][1]["status"]),
            (&json!(422), &json!(202))
        );
        assert_eq!(reply["results"][0]["error"]["detail"][0]["msg"], message);
    }
    let batch = json!({"messages": [{"eventType": "a", "payload": {}}], "atomic": true}).to_string();
    assert_eq!(places(&server.client.post(&format!("{path}/batch"), batch).await), ["body.atomic"]);
    let raw = json!({"eventType": "a", "payload": {}, "transformationsParams": {"raw_payload": "x"}});
    refused(
        &server.client.post(&path, raw.to_string()).await,
        "transformationsParams.raw_payload",
        "unknown field; did you mean \"rawPayload\"?",
    );
    // All that is wrong is said at once.
    let reply = server.client.post(&path, r#"{"event_type": "a", "payload": 1}"#).await;
    assert_eq!(places(&reply), ["body.event_type", "body.eventType", "body.payload"]);
    assert_eq!(server.stored(&app).await, [1, 0, 4]);
    server.stop().await;
}

/// Every field that the document of Svix has, as its SDKs write what was not set.
#[tokio::test]
async fn what_official_sdks_send_unasked_is_accepted() {
    let server = Running::start().await;
    let app = server.application().await;
    let message = json!({
        "application": null, "channels": null, "deliverAt": null, "eventId": null, "eventType": "a", "payload": {},
        "payloadRetentionHours": null, "payloadRetentionPeriod": 90, "tags": null, "transformationsParams": null,
    });
    server.client.post(&format!("/app/{app}/msg"), message.to_string()).await.expect(202);
    let endpoint = json!({
        "channels": null, "description": "", "disabled": false, "eventTypes": null, "filterTypes": null, "metadata": {},
        "rateLimit": null, "throttleRate": null, "uid": "door", "url": "https://example.com/", "version": 1,
    });
    let filtered = |remove: &[&str]| {
        let mut body = endpoint.clone();
        body.as_object_mut().unwrap().retain(|name, _| !remove.contains(&name.as_str()));
        body
    };
    let mut new: Value = filtered(&["filterTypes"]);
    new["secret"] = Value::Null;
    new["headers"] = Value::Null;
    server.client.post(&format!("/app/{app}/endpoint"), new.to_string()).await.expect(201);
    let changed = filtered(&["eventTypes"]).to_string();
    server.client.put(&format!("/app/{app}/endpoint/door"), changed).await.expect(200);
    let patched = filtered(&["filterTypes"]).to_string();
    server.client.patch(&format!("/app/{app}/endpoint/door"), patched).await.expect(200);
    for (action, body) in [
        ("recover", json!({"since": "2020-01-01T00:00:00Z", "until": null})),
        ("replay-missing", json!({"since": "2020-01-01T00:00:00Z", "until": null})),
        (
            "bulk-replay",
            json!({"since": "2020-01-01T00:00:00Z", "until": null, "channel": null, "eventTypes": null,
            "status": null, "statusCodeClass": null, "tag": null}),
        ),
    ] {
        let path = format!("/app/{app}/endpoint/door/{action}");
        server.client.post(&path, body.to_string()).await.expect(202);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_document_allows_no_other_fields_in_these_bodies() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let schemas = &document["components"]["schemas"];
    for name in [
        "MessageIn",
        "MessageBatchIn",
        "EndpointIn",
        "EndpointUpdate",
        "EndpointPatch",
        "ReplayIn",
        "BulkReplayIn",
        "ResumeIn",
        "JobIn",
        "DispatchIn",
        "TransformationsParams",
    ] {
        assert_eq!(schemas[name]["additionalProperties"], json!(false), "{name}: {}", schemas[name]);
    }
    assert!(schemas["BulkReplayIn"]["properties"]["since"].is_object());
    assert!(schemas["BulkReplayIn"]["properties"]["statusCodeClass"].is_object());
    server.stop().await;
}
