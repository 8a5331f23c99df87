//! Sources as a resource.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::sources::stage::InboundSource;
use crate::support::running::{Running, token};
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_source_is_returned_unchanged_without_its_secrets() {
    let server = Running::start().await;
    let given = json!({
        "name": "La puerta", "uid": "inbound", "type": "hmac", "metadata": {"team": "cobros"},
        "config": {"secret": "never shown", "secrets": ["nor this"], "header": "x-signed", "encoding": "base64"},
        "eventIdFrom": ["header:x-id", "$.data['the id']"], "eventTypeFrom": ["$.kind"], "filterTypes": ["b", "a"],
        "filterHeaders": [{"name": "x-live", "values": ["1"]}, {"name": "x-any"}], "forwardHeaders": ["x-id"],
        "answer": {"status": 201, "contentType": "text/plain", "body": "ok"},
        "duplicateWindowDays": 90, "onOtherBody": "duplicate",
    });
    let made = server.client.post_once("/ingest/source", "k", given.to_string()).await.expect(201);
    assert_eq!(made, server.client.post_once("/ingest/source", "k", given.to_string()).await.expect(201));
    for name in [
        "name",
        "uid",
        "type",
        "metadata",
        "eventIdFrom",
        "eventTypeFrom",
        "filterTypes",
        "filterHeaders",
        "forwardHeaders",
        "answer",
        "duplicateWindowDays",
        "onOtherBody",
    ] {
        assert_eq!(made[name], given[name], "{name}");
    }
    assert_eq!(made["config"], json!({"header": "x-signed", "encoding": "base64"}));
    assert!(made["id"].as_str().unwrap().starts_with("src_"));
    assert!(!made.to_string().contains("never shown") && !made.to_string().contains("nor this"));
    assert_eq!(server.client.get("/ingest/source/inbound").await.expect(200), made);
    let listed = server.client.get("/ingest/source").await.expect(200);
    assert_eq!(listed["data"], json!([made]));
    let app = made["appId"].as_str().unwrap();
    let application = server.client.get(&format!("/app/{app}")).await.expect(200);
    assert_eq!(
        (&application["name"], &application["metadata"]["sourceId"]),
        (&json!("Source: La puerta"), &made["id"])
    );
    // Its log of changes says what, and no values.
    let audit = server.client.get(&format!("/audit?app_id={app}")).await.expect(200).to_string();
    assert!(audit.contains("source.create") && !audit.contains("never shown"), "{audit}");
    let reader = server.client.post("/api-key", r#"{"name": "r", "scope": "read"}"#).await.expect(201);
    let reader = server.client.with_token(reader["key"].as_str().unwrap());
    let read = reader.get("/ingest/source/inbound").await.expect(200);
    assert_eq!((&read["id"], &read["ingestUrl"]), (&made["id"], &Value::Null), "who has it can send");
    server.stop().await;
}

#[tokio::test]
async fn a_source_is_changed_by_put_and_patch_and_keeps_its_url() {
    let server = Running::start().await;
    let put = |key: &str, body: Value| {
        let path = format!("/ingest/source/{key}");
        let client = &server.client;
        async move { client.put(&path, body.to_string()).await }
    };
    let made = put("inbound", json!({"name": "one", "type": "github", "config": {"secret": "s1"}}))
        .await
        .expect(201);
    assert_eq!(made["uid"], "inbound");
    let changed = put("inbound", json!({"name": "two", "type": "stripe", "config": {"secret": "s2"}}))
        .await
        .expect(200);
    assert_eq!(
        (&changed["uid"], &changed["type"], &changed["name"]),
        (&json!("inbound"), &json!("stripe"), &json!("two"))
    );
    for same in ["id", "ingestUrl", "appId", "createdAt"] {
        assert_eq!(changed[same], made[same], "{same}");
    }
    put("src_23rb8YdGqMT0qIzpgGwdXfHirMu", json!({"name": "x", "type": "generic-webhook"})).await.expect(404);
    put("inbound", json!({"name": "two", "type": "stripe"})).await.expect(422);
    let path = format!("/ingest/source/{}", made["id"].as_str().unwrap());
    let patch = |body: Value| server.client.patch(&path, body.to_string());
    let patched = patch(json!({"name": "three", "metadata": {"a": "b"}})).await.expect(200);
    assert_eq!(
        (&patched["name"], &patched["type"], &patched["metadata"]),
        (&json!("three"), &json!("stripe"), &json!({"a": "b"}))
    );
    let patched = patch(json!({"toleranceSeconds": 60, "filterTypes": ["a"]})).await.expect(200);
    assert_eq!((&patched["toleranceSeconds"], &patched["filterTypes"]), (&json!(60), &json!(["a"])));
    let patched = patch(json!({"filterTypes": null, "uid": null})).await.expect(200);
    assert_eq!(
        (&patched["filterTypes"], &patched["uid"], &patched["toleranceSeconds"]),
        (&Value::Null, &Value::Null, &json!(60))
    );
    patch(json!({"type": "github"})).await.expect(422);
    patch(json!({"type": "generic-webhook"})).await.expect(422);
    patch(json!({"type": "slack", "config": {"secret": "s3"}})).await.expect(200);
    assert_eq!(patch(json!({})).await.expect(200)["type"], "slack");
    for wrong in [
        json!({"name": null}),
        json!({"name": ""}),
        json!({"config": null}),
        json!({"config": {"secret": ""}}),
        json!([1]),
    ] {
        patch(wrong.clone()).await.expect(422);
    }
    let taken = json!({"name": "a", "uid": "taken", "type": "generic-webhook"});
    server.client.post("/ingest/source", taken.to_string()).await.expect(201);
    server.client.post("/ingest/source", taken.to_string()).await.expect(409);
    patch(json!({"uid": "taken"})).await.expect(409);
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_source_is_explained_and_not_created() {
    let server = Running::start().await;
    let base = json!({"name": "a", "type": "stripe", "config": {"secret": "s"}});
    let long = "x".repeat(2000);
    for (field, value) in [
        ("name", json!(null)),
        ("name", json!("")),
        ("name", json!("x".repeat(257))),
        ("name", json!("a\u{0}b")),
        ("uid", json!("src_mine")),
        ("uid", json!("a b")),
        ("type", json!("cron")),
        ("type", json!(null)),
        ("type", json!("")),
        ("type", json!(5)),
        ("config", json!({})),
        ("config", json!({"secret": 5})),
        ("config", json!({"secret": " s "})),
        ("config", json!({"secret": long})),
        ("config", json!({"secret": "s", "secrets": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]})),
        ("config", json!({"secret": "s", "verifyToken": "x"})),
        ("config", json!({"secret": "s", "unknown": "x"})),
        ("config", json!("s")),
        ("eventIdFrom", json!(["x-id"])),
        ("eventIdFrom", json!(["$."])),
        ("eventIdFrom", json!("$.id")),
        ("eventIdFrom", json!(vec!["$.id"; 11])),
        ("eventTypeFrom", json!(["header:a b"])),
        ("eventTypeFrom", json!([5])),
        ("filterTypes", json!(vec!["a"; 101])),
        ("filterHeaders", json!([{"values": ["a"]}])),
        ("filterHeaders", json!([{"name": "a b"}])),
        ("filterHeaders", json!({"name": "a"})),
        ("forwardHeaders", json!(["webhook-id"])),
        ("forwardHeaders", json!(["svix-signature"])),
        ("forwardHeaders", json!(["Host"])),
        ("forwardHeaders", json!(["connection"])),
        ("forwardHeaders", json!(["a\r\nb"])),
        ("answer", json!({"status": 302})),
        ("answer", json!({"status": "200"})),
        ("answer", json!({"contentType": "a\nb"})),
        ("answer", json!({"body": "x".repeat(5000)})),
        ("answer", json!({"headers": {}})),
        ("answer", json!("ok")),
        ("toleranceSeconds", json!(0)),
        ("toleranceSeconds", json!(100_000)),
        ("duplicateWindowDays", json!(0)),
        ("duplicateWindowDays", json!(400)),
        ("duplicateWindowDays", json!("30")),
        ("onOtherBody", json!("ignore")),
        ("metadata", json!({"a": 5})),
        ("secret", json!("beside `config`")),
        ("secrets", json!(["beside `config`"])),
        ("verifyToken", json!("beside `config`")),
    ] {
        let mut body = base.clone();
        body[field] = value.clone();
        let reply = server.client.post("/ingest/source", body.to_string()).await;
        assert_eq!(reply.status, 422, "{field}: {value}: {:?}", reply.body);
        assert!(
            reply.json()["detail"][0]["loc"].to_string().contains(field),
            "{field}: {value}: {:?}",
            reply.body
        );
    }
    for (kind, config, field) in [
        ("stripe", json!(null), "secret"),
        ("telnyx", json!({}), "publicKey"),
        ("telnyx", json!({"publicKey": "YWJj"}), "publicKey"),
        ("slack", json!({"secret": ""}), "secret"),
    ] {
        let body = json!({"name": "a", "type": kind, "config": config});
        let said = server.client.post("/ingest/source", body.to_string()).await.expect(422);
        assert_eq!(said["detail"][0]["loc"][2], field, "{kind}: {said}");
    }
    for (kind, config) in [
        ("generic-webhook", json!({"secret": "s"})),
        ("meta", json!({"secret": "s"})),
        ("meta", json!({"verifyToken": "s"})),
        ("branded", json!({"secret": "s"})),
        ("branded", json!({"secret": "s", "brand": "a b"})),
        ("hmac", json!({"secret": "s"})),
        ("hmac", json!({"secret": "s", "header": "x", "algorithm": "md5"})),
        ("hmac", json!({"secret": "s", "header": "x", "signed": "{timestamp}.{body}"})),
        ("hmac", json!({"secret": "s", "header": "x", "timestampHeader": "y"})),
        ("hmac", json!({"secret": "s", "header": "x", "signed": "{nothing}"})),
        ("microsoft-graph", json!({})),
        ("microsoft-graph", json!({"clientState": ""})),
        ("svix", json!({"secret": "not standard"})),
        ("telnyx", json!({"publicKey": "no key"})),
        ("github", json!({"secret": ""})),
    ] {
        let body = json!({"name": "a", "type": kind, "config": config});
        server.client.post("/ingest/source", body.to_string()).await.expect(422);
    }
    let cron = json!({"name": "a", "type": "cron", "config": {"schedule": "* * * * *", "payload": "{}"}});
    let said = server.client.post("/ingest/source", cron.to_string()).await.expect(422);
    let [problem] = &said["detail"].as_array().unwrap()[..] else { panic!("one thing is wrong: {said}") };
    assert!(problem["msg"].as_str().unwrap().contains("generic-webhook"), "it names what there is: {said}");
    // Where a secret may be left out, one in the wrong place would leave everything unverified.
    let beside = json!({"name": "a", "type": "github", "secret": "s"});
    server.client.post("/ingest/source", beside.to_string()).await.expect(422);
    let no_window = json!({"name": "a", "type": "github", "config": {"secret": "s"}, "toleranceSeconds": 5});
    server.client.post("/ingest/source", no_window.to_string()).await.expect(422);
    for nothing in ["/ingest/source", "/app"] {
        assert_eq!(server.client.get(nothing).await.expect(200)["data"], json!([]), "{nothing}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_application_goes_with_its_source_and_not_without_it() {
    let server = Running::start().await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({})).await;
    server.client.post(&inbound.path("/endpoint"), r#"{"url": "https://example.com/"}"#).await.expect(201);
    let refused = server.client.delete(&format!("/app/{}", inbound.app())).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains(inbound.id()), "{refused}");
    inbound.send(&[], "1").await.expect(200);
    server.client.delete(&inbound.path("")).await.expect(204);
    inbound.send(&[], "2").await.expect(404);
    for path in [
        inbound.path(""),
        inbound.path("/endpoint"),
        inbound.path("/event"),
        format!("/app/{}", inbound.app()),
    ] {
        server.client.get(&path).await.expect(404);
    }
    server.client.delete(&inbound.path("")).await.expect(404);
    server.stop().await;
}

#[tokio::test]
async fn the_grace_period_of_tailscale_is_respected() {
    let server = Running::start().await;
    let config = |grace: u64| json!({"secret": "s", "timestampGraceSeconds": grace});
    let inbound = InboundSource::new(&server, "tailscale", json!({"config": config(60)})).await;
    assert_eq!(inbound.source["toleranceSeconds"], 60);
    let patched =
        server.client.patch(&inbound.path(""), json!({"config": config(90)}).to_string()).await.expect(200);
    assert_eq!(patched["toleranceSeconds"], 90);
    let both = json!({"config": config(90), "toleranceSeconds": 30});
    let said = server.client.patch(&inbound.path(""), both.to_string()).await.expect(422);
    assert!(said.to_string().contains("timestampGraceSeconds"), "{said}");
    let same = json!({"config": config(30), "toleranceSeconds": 30});
    server.client.patch(&inbound.path(""), same.to_string()).await.expect(200);
    let other = json!({"config": {"secret": "t"}});
    let kept = server.client.patch(&inbound.path(""), other.to_string()).await.expect(200);
    assert_eq!(kept["toleranceSeconds"], 30, "what is not given stays");
    server.stop().await;
}

#[tokio::test]
async fn the_application_of_a_source_takes_only_what_comes_in_through_it() {
    let server = Running::start().await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"eventIdFrom": ["$.id"]})).await;
    let (app, url) = (inbound.app(), "https://example.com/");
    let endpoint =
        server.client.post(&inbound.path("/endpoint"), json!({"url": url}).to_string()).await.expect(201);
    let message = json!({"eventType": "a", "eventId": "taken", "payload": {}});
    for (path, body) in [
        ("msg", message.clone()),
        ("msg", json!({"eventType": "a", "payload": {}})),
        ("msg/batch", json!({"messages": [message.clone()]})),
        ("dispatch", json!({"url": url, "payload": {}, "eventId": "taken"})),
        ("job", json!({"jobId": "j", "jobType": "t", "status": "completed", "webhookUrl": url})),
    ] {
        let said = server.client.post(&format!("/app/{app}/{path}"), body.to_string()).await.expect(409);
        let detail = said["detail"].as_str().unwrap();
        assert!(detail.contains(inbound.id()) && detail.contains("Nothing was stored"), "{path}: {said}");
    }
    assert_eq!(inbound.messages().await.len(), 0);
    let received = inbound.send(&[], r#"{"id": "taken"}"#).await.expect(200);
    assert_eq!(received, json!({"received": true}), "the id is the sender's");
    // An example for an endpoint is not an event of a sender, and has no id.
    let example = json!({"description": "", "schemas": {"1": {"examples": [{"a": 1}]}}});
    server.client.put("/event-type/shown", example.to_string()).await.expect(201);
    let path = format!("/app/{app}/endpoint/{}/send-example", endpoint["id"].as_str().unwrap());
    let sent = server.client.post(&path, r#"{"eventType": "shown"}"#).await.expect(202);
    assert_eq!(sent["eventId"], serde_json::Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn the_paths_that_sdks_have_lead_to_the_same() {
    let server = Running::start().await;
    let hosted = |method: Method, path: &str, body: Value| {
        let path = format!("//ingest/api/v1/source{path}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let client = &server.client;
        async move { client.send(method, &path, &[], body.into()).await }
    };
    let made = hosted(
        Method::POST,
        "",
        json!({"name": "ab", "type": "clerk", "config": {"secret": crate::sources::stage::SECRET}}),
    );
    let made = made.await.expect(201);
    let id = made["id"].as_str().unwrap();
    assert_eq!(hosted(Method::GET, &format!("/{id}"), Value::Null).await.expect(200), made);
    assert_eq!(server.client.get(&format!("/ingest/source/{id}")).await.expect(200), made);
    assert_eq!(hosted(Method::GET, "?limit=1", Value::Null).await.expect(200)["data"], json!([made]));
    let endpoint =
        hosted(Method::POST, &format!("/{id}/endpoint"), json!({"url": "https://example.com/", "uid": "e"}));
    let endpoint = endpoint.await.expect(201);
    let one = format!("/{id}/endpoint/e");
    assert_eq!(hosted(Method::GET, &one, Value::Null).await.expect(200), endpoint);
    hosted(Method::PUT, &one, json!({"url": "https://example.com/2"})).await.expect(200);
    let secret = hosted(Method::GET, &format!("{one}/secret"), Value::Null).await.expect(200);
    hosted(Method::POST, &format!("{one}/secret/rotate"), json!({})).await.expect(200);
    assert_ne!(hosted(Method::GET, &format!("{one}/secret"), Value::Null).await.expect(200), secret);
    hosted(Method::PUT, &format!("{one}/headers"), json!({"headers": {"x-a": "b"}})).await.expect(204);
    let headers = hosted(Method::GET, &format!("{one}/headers"), Value::Null).await.expect(200);
    assert_eq!(headers["headers"], json!({"x-a": "b"}));
    hosted(Method::DELETE, &one, Value::Null).await.expect(204);
    assert_eq!(
        hosted(Method::GET, &format!("/{id}/endpoint"), Value::Null).await.expect(200)["data"],
        json!([])
    );
    hosted(Method::POST, &format!("/{id}/dashboard"), json!({})).await.expect(404);
    hosted(Method::DELETE, &format!("/{id}"), Value::Null).await.expect(204);
    server.stop().await;
}

#[tokio::test]
async fn others_do_not_find_a_source() {
    let server = Running::start().await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({"uid": "inbound"})).await;
    inbound.send(&[("webhook-id", "e1")], "{}").await.expect(200);
    let stranger = server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(stranger.get("/ingest/source").await.expect(200)["data"], json!([]));
    for key in [inbound.id(), "inbound"] {
        for rest in ["", "/endpoint", "/event", "/event/e1", "/log"] {
            stranger.get(&format!("/ingest/source/{key}{rest}")).await.expect(404);
        }
        stranger.delete(&format!("/ingest/source/{key}")).await.expect(404);
        stranger.patch(&format!("/ingest/source/{key}"), "{}").await.expect(404);
        stranger.post(&format!("/ingest/source/{key}/token/rotate"), "").await.expect(404);
    }
    // A key for the source's application reaches that, and no source.
    let key = json!({"name": "k", "scope": "admin", "appId": inbound.app()});
    let key = server.client.post("/api-key", key.to_string()).await.expect(201);
    let key = server.client.with_token(key["key"].as_str().unwrap());
    key.get(&format!("/app/{}/msg/e1", inbound.app())).await.expect(200);
    key.get("/ingest/source").await.expect(403);
    key.get(&inbound.path("/event")).await.expect(403);
    server.stop().await;
}

#[tokio::test]
async fn verification_ends_only_with_an_explicit_change() {
    let server = Running::start().await;
    let signed = json!({"name": "a", "uid": "inbound", "type": "stripe", "config": {"secret": "s"}});
    let made = server.client.post("/ingest/source", signed.to_string()).await.expect(201);
    assert_eq!(made["verified"], true);
    let patch = |body: Value| server.client.patch("/ingest/source/inbound", body.to_string());
    let put = |body: Value| server.client.put("/ingest/source/inbound", body.to_string());
    let github = |config: Value| json!({"name": "a", "type": "github", "config": config});
    for said in [
        patch(json!({"type": "github"})).await.expect(422),
        patch(json!({"type": "github", "config": {}})).await.expect(422),
        patch(json!({"type": "easypost", "config": null})).await.expect(422),
        patch(json!({"type": "generic-webhook"})).await.expect(422),
        put(json!({"name": "a", "type": "github"})).await.expect(422),
        put(github(json!(null))).await.expect(422),
        put(github(json!({"secrets": []}))).await.expect(422),
    ] {
        assert!(said.to_string().contains("config"), "{said}");
    }
    let now = server.client.get("/ingest/source/inbound").await.expect(200);
    assert_eq!((&now["type"], &now["verified"]), (&json!("stripe"), &json!(true)));
    // With a secret nothing is lost.
    let changed = patch(json!({"type": "github", "config": {"secret": "s2"}})).await.expect(200);
    assert_eq!((&changed["type"], &changed["verified"]), (&json!("github"), &json!(true)));
    // What an answer shows can be sent back: the secret is not in it.
    assert_eq!(patch(json!({"config": {}})).await.expect(200)["verified"], true);
    patch(json!({"name": "b"})).await.expect(200);
    assert_eq!(patch(json!({"config": {"secret": null}})).await.expect(200)["verified"], false);
    // A source without verification can lose none.
    assert_eq!(put(json!({"name": "a", "type": "github"})).await.expect(200)["verified"], false);
    assert_eq!(put(github(json!({"secret": "s3"}))).await.expect(200)["verified"], true);
    assert_eq!(put(github(json!({"secret": null}))).await.expect(200)["verified"], false);
    assert_eq!(put(github(json!({"secret": "s4"}))).await.expect(200)["verified"], true);
    // The name of this type says it.
    let changed = patch(json!({"type": "generic-webhook", "config": {}})).await.expect(200);
    assert_eq!(changed["verified"], false);
    server.stop().await;
}
