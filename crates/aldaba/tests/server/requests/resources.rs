use crate::support::running::Running;
use serde_json::{Value, json};

fn is_time(value: &Value) -> bool {
    // 2026-01-02T03:04:05.123456Z
    value.as_str().is_some_and(|text| text.len() == 27 && text.ends_with('Z') && &text[10..11] == "T")
}

#[tokio::test]
async fn an_application_is_shown_as_it_was_made() {
    let server = Running::start().await;
    let body = json!({"name": "Acme", "uid": "acme", "metadata": {"b": "2", "a": "1"}});
    let made = server.client.post("/app/", body.to_string()).await.expect(201);
    assert_eq!(made["name"], "Acme");
    assert_eq!(made["uid"], "acme");
    assert_eq!(made["metadata"], body["metadata"]);
    assert_eq!(made["throttleRate"], Value::Null);
    assert!(made.get("rateLimit").is_none());
    assert!(is_time(&made["createdAt"]) && is_time(&made["updatedAt"]), "{made}");
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("app_") && id.len() == 31);
    assert_eq!(server.client.get(&format!("/app/{id}")).await.expect(200), made);
    assert_eq!(server.client.get("/app/acme/").await.expect(200), made);
    let there = server.client.post("/app?get_if_exists=true", body.to_string()).await.expect(200);
    assert_eq!(there, made);
    let without_uid = server.client.post("/app", r#"{"name":"a"}"#).await.expect(201);
    assert!(without_uid.get("uid").is_none());
}

#[tokio::test]
async fn an_endpoint_is_shown_as_it_was_made() {
    let server = Running::start().await;
    let app = server.application().await;
    let plain = server.endpoint(&app, json!({"url": "https://Example.com"})).await;
    assert_eq!(plain["url"], "https://example.com/");
    for (field, value) in [
        ("description", json!("")),
        ("disabled", json!(false)),
        ("version", json!(1)),
        ("uid", Value::Null),
        ("eventTypes", Value::Null),
        ("filterTypes", Value::Null),
        ("channels", Value::Null),
        ("throttleRate", Value::Null),
        ("rateLimit", Value::Null),
        ("metadata", json!({})),
        ("policy", json!("standard")),
        ("profile", Value::Null),
    ] {
        assert_eq!(plain.get(field), Some(&value), "{field}");
    }
    assert!(is_time(&plain["createdAt"]) && is_time(&plain["updatedAt"]));
    let full = json!({"uid": "mine", "description": "d", "disabled": true, "version": 3, "filterTypes": ["b", "a", "b"],
        "channels": ["c:1"], "rateLimit": 7, "metadata": {"k": "v"}, "policy": "job-status", "profile": "svix",
        "secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"});
    let full = server.endpoint(&app, full).await;
    assert_eq!(full["eventTypes"], json!(["a", "b"]));
    assert_eq!(full["filterTypes"], full["eventTypes"]);
    assert_eq!((&full["throttleRate"], &full["rateLimit"]), (&json!(7), &json!(7)));
    assert_eq!((&full["policy"], &full["profile"]), (&json!("job-status"), &json!("svix")));
    assert!(full.get("secret").is_none());
    assert_eq!(server.client.get(&format!("/app/{app}/endpoint/mine")).await.expect(200), full);
    let secret = server.client.get(&format!("/app/{app}/endpoint/mine/secret")).await.expect(200);
    assert_eq!(secret, json!({"key": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}));
    let made =
        server.client.get(&format!("/app/{app}/endpoint/{}/secret", plain["id"].as_str().unwrap())).await;
    assert!(made.expect(200)["key"].as_str().unwrap().starts_with("whsec_"));
}

#[tokio::test]
async fn credentials_in_a_url_are_never_shown() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({"url": "https://user:hunter2@example.com/x"})).await;
    assert_eq!(made["url"], "https://example.com/x");
    assert!(
        !server.client.get(&format!("/app/{app}/endpoint")).await.expect(200).to_string().contains("hunter2")
    );
}

#[tokio::test]
async fn a_message_is_shown_as_it_was_sent_with_content_or_without() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let body = r#"{"eventType":"a.b","data":{"n":12345678901234567890123,"x":1.0},"eventId":"e1","channels":["b","a"]}"#;
    let sent = server.client.post(&path, body).await;
    let shown = sent.expect(202);
    assert!(sent.body.windows(34).any(|w| w == br#"{"n":12345678901234567890123,"x":1"#));
    assert_eq!((&shown["eventType"], &shown["eventId"]), (&json!("a.b"), &json!("e1")));
    assert_eq!(shown["channels"], json!(["a", "b"]));
    assert!(is_time(&shown["timestamp"]));
    let id = shown["id"].as_str().unwrap();
    assert_eq!(server.client.get(&format!("{path}/{id}")).await.expect(200), shown);
    assert_eq!(server.client.get(&format!("{path}/e1")).await.expect(200), shown);
    let bare = server.client.get(&format!("{path}/{id}?with_content=false")).await.expect(200);
    assert_eq!(bare["payload"], json!({}));
    let bare = server
        .client
        .post(&format!("{path}?with_content=false"), r#"{"eventType":"a","payload":{"x":1}}"#)
        .await;
    let bare = bare.expect(202);
    assert_eq!(
        (&bare["payload"], &bare["eventId"], &bare["channels"]),
        (&json!({}), &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn a_deleted_resource_is_gone_and_its_uid_is_free() {
    let server = Running::start().await;
    server.client.post("/app", r#"{"name":"a","uid":"a"}"#).await.expect(201);
    let endpoint = server.endpoint("a", json!({"uid": "e"})).await;
    server.client.delete("/app/a/endpoint/e").await.expect(204);
    server.client.get(&format!("/app/a/endpoint/{}", endpoint["id"].as_str().unwrap())).await.expect(404);
    server.client.delete("/app/a/endpoint/e").await.expect(404);
    server.endpoint("a", json!({"uid": "e"})).await;
    server.message("a", "x").await;
    server.client.delete("/app/a").await.expect(204);
    server.client.delete("/app/a").await.expect(404);
    server.client.get("/app/a").await.expect(404);
    let message = r#"{"eventType":"a","payload":{}}"#;
    server.client.post("/app/a/msg", message).await.expect(404);
    server.client.post("/app", r#"{"name":"a","uid":"a"}"#).await.expect(201);
    assert_eq!(server.stored("a").await, [1, 0, 0]);
}

#[tokio::test]
async fn two_servers_live_in_one_process() {
    let (one, other) = tokio::join!(Running::start(), Running::start());
    let app = one.application().await;
    other.client.get(&format!("/app/{app}")).await.expect(404);
    one.stop().await;
    other.client.get("/health").await.expect(200);
}
