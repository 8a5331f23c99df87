//! Unknown fields are rejected, because ignoring one could change the meaning of a request.

use crate::messages::dead_letter::{id, list, until};
use crate::requests::bad_input::places;
use crate::requests::parameters::refused_parameter;
use crate::support::client::Reply;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

fn items(page: &Value) -> &[Value] {
    page["data"].as_array().expect("a list")
}

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

    // A representation can be sent back, with one of two equivalent names; it creates no new resource.
    let mut shown = shown;
    shown.as_object_mut().unwrap().remove("filterTypes");
    server.client.put(&format!("{list}/door"), shown.to_string()).await.expect(200);
    server.client.patch(&format!("{list}/door"), shown.to_string()).await.expect(200);
    let copy = server.client.post(&list, shown.to_string()).await;
    let read_only = ["blocked", "createdAt", "failureCount", "health", "id", "status", "updatedAt"];
    assert_eq!(places(&copy), read_only.map(|name| format!("body.{name}")));

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

#[tokio::test]
async fn a_discard_that_asks_for_something_unknown_discards_nothing() {
    let server = Running::delivering().await;
    let (app, receiver) = (server.application().await, Receiver::answering(404, "").await);
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "public-api"})).await;
    for _ in 0..2 {
        server.message(&app, "a").await;
    }
    let dead = until(&server, "/dead-letter", 2).await;
    let one = format!("/app/{app}/delivery/{}", id(&dead[0]));
    let discard = format!("/app/{app}/delivery/discard");
    let reply = server.client.post(&discard, json!({"ids": [id(&dead[0])]}).to_string()).await;
    let known = "state, endpoint, eventType, reason, before, after, iterator";
    refused(&reply, "ids", &format!("unknown field; there are: {known}"));
    let reply = server.client.post(&discard, r#"{"event_type": "b"}"#).await;
    refused(&reply, "event_type", "unknown field; did you mean \"eventType\"?");
    let takes_none =
        "unknown parameter; this request takes none; fields belong into the JSON body, if it has one";
    let reply = server.client.post(&format!("{discard}?endpoint=other"), "{}").await;
    refused_parameter(&reply, "endpoint", takes_none);
    refused_parameter(&server.client.delete(&format!("{one}?dryRun=true")).await, "dryRun", takes_none);
    let body = Bytes::from_static(br#"{"dryRun": true}"#);
    let reply = server.client.send(Method::DELETE, &one, &[], body).await;
    refused(&reply, "dryRun", "unknown field; this request takes none");
    let cancel = format!("/app/{app}/endpoint/{}/cancel-msgs", made["id"].as_str().unwrap());
    let reply = server.client.post(&cancel, r#"{"createdBefore": "2030-01-01T00:00:00Z", "tag": "x"}"#).await;
    refused(&reply, "tag", "unknown field; there are: createdBefore");
    assert_eq!(list(&server, "/dead-letter").await.len(), 2);

    // An empty object says nothing either way.
    let reply = server.client.send(Method::DELETE, &one, &[], Bytes::from_static(b" {} ")).await;
    reply.expect(204);
    assert_eq!(list(&server, "/dead-letter").await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn access_with_a_misspelt_restriction_is_not_given() {
    let server = Running::start().await;
    let app = server.application().await;
    let portal = format!("/auth/app-portal-access/{app}");
    for (body, field, meant) in [
        (json!({"read_only": true}), "read_only", "readOnly"),
        (json!({"Capabilities": ["ViewBase"]}), "Capabilities", "capabilities"),
        (json!({"session_id": "one"}), "session_id", "sessionId"),
    ] {
        let message = format!("unknown field; did you mean \"{meant}\"?");
        refused(&server.client.post(&portal, body.to_string()).await, field, &message);
    }
    let reply = server.client.post(&format!("/auth/dashboard-access/{app}"), r#"{"readOnly": true}"#).await;
    refused(&reply, "readOnly", "unknown field; this request takes none");

    for (more, field, meant) in [
        (json!({"app_id": app}), "app_id", "appId"),
        (json!({"expires_at": "2030-01-01T00:00:00Z"}), "expires_at", "expiresAt"),
    ] {
        let mut body = json!({"name": "k", "scope": "send"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let message = format!("unknown field; did you mean \"{meant}\"?");
        refused(&server.client.post("/api-key", body.to_string()).await, field, &message);
    }
    assert_eq!(list(&server, "/api-key").await, Vec::<Value>::new());
    let key = server.client.post("/api-key", r#"{"name": "k", "scope": "send"}"#).await.expect(201);
    let path = format!("/api-key/{}", key["id"].as_str().unwrap());
    let reply = server.client.patch(&path, r#"{"name": "k", "ends": null}"#).await;
    refused(&reply, "ends", "unknown field; there are: name");

    // No other session ends.
    let given = server.client.post(&portal, r#"{"sessionId": "one"}"#).await.expect(200);
    let guest = server.client.with_token(given["token"].as_str().unwrap());
    let expire = format!("/auth/app/{app}/expire-all");
    let reply = server.client.post(&expire, r#"{"session_ids": ["two"]}"#).await;
    refused(&reply, "session_ids", "unknown field; did you mean \"sessionIds\"?");
    let reply = guest.post("/auth/logout", r#"{"sessionId": "two"}"#).await;
    refused(&reply, "sessionId", "unknown field; this request takes none");
    guest.get("/auth/whoami").await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn a_source_with_a_misspelt_field_is_neither_made_nor_changed() {
    let server = Running::start().await;
    let github =
        json!({"name": "s", "uid": "s", "type": "github", "config": {"secret": "it's a secret to all"}});
    let with = |more: Value| {
        let mut body = github.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let reply = server.client.post("/ingest/source", with(json!({"filter_types": ["push"]}))).await;
    refused(&reply, "filter_types", "unknown field; did you mean \"filterTypes\"?");
    let unverified = json!({"name": "s", "type": "generic-webhook", "secrett": "x"}).to_string();
    assert_eq!(places(&server.client.post("/ingest/source", unverified).await), ["body.secrett"]);
    let reply = server.client.post("/ingest/source", with(json!({"secret": "x"}))).await;
    refused(&reply, "secret", "belongs into `config`");
    let condition = json!({"filterHeaders": [{"name": "x", "value": ["y"]}]});
    let reply = server.client.post("/ingest/source", with(condition)).await;
    refused(&reply, "filterHeaders.[0].value", "unknown field; did you mean \"values\"?");
    let reply = server.client.post("/ingest/source", with(json!({"answer": {"content_type": "x"}}))).await;
    refused(&reply, "answer.content_type", "unknown field; did you mean \"contentType\"?");
    assert_eq!(list(&server, "/ingest/source").await, Vec::<Value>::new());

    let made = server.client.post("/ingest/source", github.to_string()).await.expect(201);
    let path = "/ingest/source/s";
    let reply = server.client.patch(path, r#"{"tolerance_seconds": 1}"#).await;
    refused(&reply, "tolerance_seconds", "unknown field; did you mean \"toleranceSeconds\"?");
    let reply = server.client.put(path, with(json!({"eventTypes": ["a"]}))).await;
    assert_eq!(places(&reply), ["body.eventTypes"]);
    let reply = server.client.post(&format!("{path}/token/rotate"), r#"{"gracePeriodSeconds": 60}"#).await;
    refused(&reply, "gracePeriodSeconds", "unknown field; this request takes none");
    let shown = server.client.get(path).await.expect(200);
    assert_eq!(shown, made, "nothing has changed");

    // A representation can be sent back, with the secret that is not shown.
    let mut back = shown;
    back["config"] = github["config"].clone();
    server.client.put(path, back.to_string()).await.expect(200);
    server.client.patch(path, back.to_string()).await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn an_application_with_a_misspelt_field_is_not_made_by_any_way() {
    let server = Running::start().await;
    let wrong = json!({"name": "n", "uid": "new", "throttle_rate": 1});
    let meant = "unknown field; did you mean \"throttleRate\"?";
    refused(&server.client.post("/app", wrong.to_string()).await, "throttle_rate", meant);
    refused(&server.client.put("/app/new", wrong.to_string()).await, "throttle_rate", meant);
    let message = json!({"eventType": "a", "payload": {}, "application": wrong}).to_string();
    refused(&server.client.post("/app/new/msg", message).await, "application.throttle_rate", meant);
    let access = json!({"application": wrong}).to_string();
    let reply = server.client.post("/auth/app-portal-access/new", access).await;
    refused(&reply, "application.throttle_rate", meant);
    assert_eq!(list(&server, "/app").await, Vec::<Value>::new());

    let made = server.client.post("/app", r#"{"name": "n", "uid": "new"}"#).await.expect(201);
    refused(&server.client.patch("/app/new", r#"{"throttle_rate": 1}"#).await, "throttle_rate", meant);
    server.client.put("/app/new", made.to_string()).await.expect(200);
    server.client.patch("/app/new", made.to_string()).await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn secrets_and_event_types_stay_as_they_are_where_a_field_is_misspelt() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    let made = server.endpoint(&app, json!({})).await;
    let endpoint = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    let secret = server.client.get(&format!("{endpoint}/secret")).await.expect(200);
    let rotate = format!("{endpoint}/secret/rotate");
    let reply = server.client.post(&rotate, r#"{"grace_period_seconds": 0}"#).await;
    refused(&reply, "grace_period_seconds", "unknown field; did you mean \"gracePeriodSeconds\"?");
    assert_eq!(server.client.get(&format!("{endpoint}/secret")).await.expect(200), secret);
    let spec = json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "webhooks": {}});
    let import = json!({"spec": spec, "replaceAll": true, "dry_run": true}).to_string();
    let reply = server.client.post("/event-type/import/openapi", import).await;
    refused(&reply, "dry_run", "unknown field; did you mean \"dryRun\"?");
    assert_eq!(server.client.get("/event-type/a").await.expect(200)["archived"], false);
    let example = format!("{endpoint}/send-example");
    let reply = server.client.post(&example, r#"{"eventType": "a", "index": 1}"#).await;
    refused(&reply, "index", "unknown field; there are: eventType, exampleIndex");
    let reply = server.client.delete("/event-type/a?expung=true").await;
    refused_parameter(&reply, "expung", "unknown parameter; did you mean \"expunge\"?");
    server.client.delete("/event-type/a?expunge=true").await.expect(204);
    for (path, body) in [
        (
            "/policy",
            json!({"name": "p", "schedule": {"type": "list", "delays": ["1s"]}, "limits": {"attempts": 1}}),
        ),
        ("/profile", json!({"name": "p", "extends": "standard", "signatures": "none"})),
    ] {
        let reply = server.client.post(path, body.to_string()).await;
        let unknown = if path == "/policy" { "body.limits" } else { "body.signatures" };
        assert!(places(&reply).contains(&unknown.to_owned()), "{:?}", reply.json());
    }
    server.stop().await;
}

#[tokio::test]
async fn an_unknown_parameter_starts_and_deletes_nothing() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let endpoint = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    let takes_none =
        "unknown parameter; this request takes none; fields belong into the JSON body, if it has one";
    for action in ["recover", "replay-missing", "bulk-replay"] {
        let path = format!("{endpoint}/{action}?dryRun=true");
        let reply = server.client.post(&path, r#"{"since": "2020-01-01T00:00:00Z"}"#).await;
        refused_parameter(&reply, "dryRun", takes_none);
    }
    refused_parameter(
        &server.client.post(&format!("{endpoint}/resume?recover=1"), "").await,
        "recover",
        takes_none,
    );
    let message = r#"{"eventType": "a", "payload": {}}"#;
    let reply = server.client.post(&format!("/app/{app}/msg?with_contents=false"), message).await;
    refused_parameter(&reply, "with_contents", "unknown parameter; did you mean \"with_content\"?");
    let reply = server.client.post("/app?get_if_exist=true", r#"{"name": "n", "uid": "u"}"#).await;
    refused_parameter(&reply, "get_if_exist", "unknown parameter; did you mean \"get_if_exists\"?");
    for path in [&endpoint, &format!("/app/{app}")] {
        refused_parameter(&server.client.delete(&format!("{path}?dry_run=1")).await, "dry_run", takes_none);
    }
    let tasks = server.client.get("/background-task").await.expect(200);
    assert_eq!(tasks["data"], json!([]), "nothing was started");
    assert_eq!(server.stored(&app).await, [1, 1, 0]);
    let reply = server.client.get(&format!("/app/{app}?with_more=true")).await;
    refused_parameter(&reply, "with_more", takes_none);
    // A caller without the right to change it gets only that error.
    let reply = server.client.anonymous().delete(&format!("/app/{app}?dry_run=1")).await;
    reply.expect(401);
    server.stop().await;
}

/// Every field of Svix's document, with the value that its SDKs send for unset fields.
#[tokio::test]
async fn parameters_that_official_sdks_always_send_are_accepted() {
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
    let application = json!({"name": "n", "uid": "sdk", "throttleRate": null, "metadata": {}});
    for (path, body, status) in [
        ("/app?get_if_exists=true", application.clone(), 201),
        (
            "/auth/app-portal-access/sdk",
            json!({"application": application, "capabilities": null, "expiry": null, "featureFlags": [],
            "readOnly": null, "sessionId": null}),
            200,
        ),
        ("/auth/app/sdk/expire-all", json!({"expiry": null, "sessionIds": []}), 204),
        (
            "/event-type/import/openapi",
            json!({"dryRun": true, "replaceAll": false, "spec": {"openapi": "3.1.0", "info": {}, "webhooks": {}},
            "specRaw": null}),
            200,
        ),
        (
            "/ingest/source",
            json!({"name": "s", "uid": null, "metadata": {}, "type": "generic-webhook", "config": {}}),
            201,
        ),
    ] {
        server.client.post(path, body.to_string()).await.expect(status);
    }
    let door = format!("/app/{app}/endpoint/door");
    let rotate = json!({"key": null, "gracePeriodSeconds": null}).to_string();
    server.client.post(&format!("{door}/secret/rotate"), rotate).await.expect(200);
    let cancel = r#"{"createdBefore": "2020-01-01T00:00:00Z"}"#;
    server.client.post(&format!("{door}/cancel-msgs"), cancel).await.expect(204);
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
        "ApplicationIn",
        "ApplicationPatch",
        "AppPortalAccessIn",
        "ApplicationTokenExpireIn",
        "ApiKeyIn",
        "ApiKeyPatch",
        "CancelIn",
        "DiscardIn",
        "EventExampleIn",
        "EventTypeImportOpenApiIn",
        "RotateIn",
        "SourceIn",
        "SourcePatch",
        "HeaderCondition",
        "SourceAnswer",
        "AlertEmailIn",
        "EventTypeIn",
        "EventTypePatch",
        "EventTypeUpdate",
        "HeadersIn",
        "HeadersPatch",
        "IdentityIn",
        "MessagePrecheckIn",
        "SearchIn",
        "PolicyIn",
        "PolicyUpdate",
        "PolicyLimit",
        "PolicyTimeouts",
        "PolicyRetryAfter",
        "PolicyProbe",
        "PolicyRetention",
        "ProfileIn",
        "ProfileUpdate",
        "ProfileSignature",
    ] {
        assert_eq!(schemas[name]["additionalProperties"], json!(false), "{name}: {}", schemas[name]);
    }
    for name in ["PolicySchedule", "PolicyJitter", "PolicyRedirects", "PolicyGate", "PolicyEndpointFails"] {
        for form in schemas[name]["oneOf"].as_array().unwrap() {
            assert_eq!(form["additionalProperties"], json!(false), "{name}: {form}");
        }
    }
    assert!(schemas["BulkReplayIn"]["properties"]["since"].is_object());
    assert!(schemas["BulkReplayIn"]["properties"]["statusCodeClass"].is_object());
    server.stop().await;
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused_with_the_one_that_was_meant() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let endpoint = made["id"].as_str().unwrap();
    for (path, name, meant) in [
        ("/dead-letter?limt=3".to_owned(), "limt", "limit"),
        ("/dead-letter?apps=nope".to_owned(), "apps", "app"),
        ("/audit?acton=x".to_owned(), "acton", "action"),
        (format!("/app/{app}/delivery?status=dead"), "status", "state"),
        (format!("/app/{app}/job?job_id=1"), "job_id", "jobId"),
        (format!("/app/{app}/dispatch?statu=failed"), "statu", "status"),
        ("/host?limits=1".to_owned(), "limits", "limit"),
        ("/policy/quick/preview?outtage=5s".to_owned(), "outtage", "outage"),
        ("/api-key?ordr=ascending".to_owned(), "ordr", "order"),
        (format!("/app/{app}/endpoint/{endpoint}/health?limt=1"), "limt", "limit"),
        (format!("/app/{app}/msg?limt=3"), "limt", "limit"),
        (format!("/app/{app}/msg?event_typs=a"), "event_typs", "event_types"),
        ("/app?ordr=ascending".to_owned(), "ordr", "order"),
    ] {
        let reply = server.client.get(&path).await;
        refused_parameter(&reply, name, &format!("unknown parameter; did you mean \"{meant}\"?"));
    }
    let takes_none =
        "unknown parameter; this request takes none; fields belong into the JSON body, if it has one";
    for path in ["/policy?nam=a", "/profile?nam=a", "/auth/whoami?nam=a"] {
        refused_parameter(&server.client.get(path).await, "nam", takes_none);
    }
}

#[tokio::test]
async fn a_parameter_is_known_by_each_of_its_names() {
    let server = Running::start().await;
    let app = server.application().await;
    server.message(&app, "a").await;
    for name in ["app", "app_id"] {
        server.client.get(&format!("/dead-letter?{name}=nope")).await.expect(404);
        server.client.get(&format!("/audit?{name}=nope")).await.expect(404);
        assert_ne!(items(&server.client.get(&format!("/audit?{name}={app}")).await.expect(200)).len(), 0);
    }
    for name in ["event_types", "eventTypes", "event_type", "eventType"] {
        let found = async |path: String| items(&server.client.get(&path).await.expect(200)).len();
        assert_eq!(found(format!("/app/{app}/msg?{name}=a")).await, 1, "{name}");
        assert_eq!(found(format!("/app/{app}/msg?{name}=b")).await, 0, "{name}");
        assert_eq!(found(format!("/app/{app}/delivery?{name}=b")).await, 0, "{name}");
    }
    let made = server.endpoint(&app, json!({})).await;
    for name in ["endpoint", "endpoint_id"] {
        let wanted = made["id"].as_str().unwrap();
        assert_eq!(
            items(&server.client.get(&format!("/app/{app}/delivery?{name}={wanted}")).await.expect(200))
                .len(),
            0
        );
        server.client.get(&format!("/app/{app}/delivery?{name}=nobody")).await.expect(404);
    }
    let reply = server.client.get(&format!("/dead-letter?app={app}&app_id=nope")).await;
    reply.expect(422);
    assert_eq!(places(&reply), ["query.app", "query.app_id"]);
}
