//! The audit log, seen from outside: every route that changes something leaves a row.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::support::client::Client;
use crate::support::running::{Running, token};
use crate::support::waiting::next_id_moment;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

async fn log(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/audit?limit=250{query}")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

fn actions(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["action"].as_str().unwrap()).collect()
}

/// Routes that change something, by their operation, and the row that each leaves. A new route that changes
/// something belongs here; one that has no row needs a reason.
const ROWS: &[(&str, &str)] = &[
    ("v1.application.create", "application.create"),
    ("v1.application.update", "application.update"),
    ("v1.application.patch", "application.update"),
    ("v1.application.patch-alert-email", "application.update"),
    ("v1.application.delete", "application.delete"),
    ("v1.application.erase", "application.erase"),
    ("v1.event-type.create", "event_type.create"),
    ("v1.event-type.update", "event_type.update"),
    ("v1.event-type.patch", "event_type.update"),
    ("v1.event-type.delete", "event_type.update"),
    ("v1.event-type.import-openapi", "event_type.import"),
    ("v1.endpoint.create", "endpoint.create"),
    ("v1.endpoint.update", "endpoint.update"),
    ("v1.endpoint.patch", "endpoint.update"),
    ("v1.endpoint.delete", "endpoint.delete"),
    ("v1.endpoint.rotate-secret", "endpoint.secret.rotate"),
    ("v1.endpoint.update-headers", "endpoint.headers.update"),
    ("v1.endpoint.patch-headers", "endpoint.headers.update"),
    ("v1.endpoint.update-mtls", "endpoint.mtls.update"),
    ("v1.endpoint.delete-mtls", "endpoint.mtls.update"),
    ("v1.endpoint.resume", "endpoint.resume"),
    ("v1.endpoint.recover", "replay.start"),
    ("v1.endpoint.replay-missing", "replay.start"),
    ("v1.endpoint.bulk-replay", "replay.start"),
    ("v1.background-task.cancel", "replay.cancel"),
    ("v1.endpoint.cancel-msgs", "delivery.cancel"),
    ("v1.delivery.discard-many", "delivery.discard"),
    ("v1.delivery.discard", "delivery.discard"),
    ("v1.message-attempt.resend", "message.resend"),
    ("v1.message.expunge-content", "message.expunge"),
    ("v1.message-attempt.expunge-content", "attempt.expunge"),
    ("v1.host.release", "host.release"),
    ("v1.alert.acknowledge", "alert.acknowledge"),
    ("v1.policy.create", "policy.create"),
    ("v1.policy.update", "policy.update"),
    ("v1.policy.delete", "policy.delete"),
    ("v1.profile.create", "profile.create"),
    ("v1.profile.update", "profile.update"),
    ("v1.profile.delete", "profile.delete"),
    ("v1.event-type.create", "event_type.create"),
    ("v1.event-type.update", "event_type.update"),
    ("v1.event-type.patch", "event_type.update"),
    ("v1.event-type.delete", "event_type.delete"),
    ("v1.event-type.import-openapi", "event_type.import"),
    ("v1.api-key.create", "api_key.create"),
    ("v1.api-key.patch", "api_key.update"),
    ("v1.api-key.revoke", "api_key.revoke"),
    ("v1.authentication.app-portal-access", "portal_access.create"),
    ("v1.authentication.dashboard-access", "portal_access.create"),
    ("v1.authentication.expire-all", "portal_access.expire"),
    ("v1.authentication.logout", "token.revoke"),
    ("v1.operational-webhook.endpoint.create", "endpoint.create"),
    ("v1.operational-webhook.endpoint.update", "endpoint.update"),
    ("v1.operational-webhook.endpoint.delete", "endpoint.delete"),
    ("v1.operational-webhook.endpoint.rotate-secret", "endpoint.secret.rotate"),
    ("v1.operational-webhook.endpoint.update-headers", "endpoint.headers.update"),
    ("v1.ingest.source.create", "source.create"),
    ("v1.ingest.source.upsert", "source.update"),
    ("v1.ingest.source.patch", "source.update"),
    ("v1.ingest.source.delete", "source.delete"),
    ("v1.ingest.source.rotate-token", "source.token.rotate"),
    ("v1.ingest.endpoint.create", "endpoint.create"),
    ("v1.ingest.endpoint.upsert", "endpoint.update"),
    ("v1.ingest.endpoint.delete", "endpoint.delete"),
    ("v1.ingest.endpoint.rotate-secret", "endpoint.secret.rotate"),
    ("v1.ingest.endpoint.set-headers", "endpoint.headers.update"),
];
/// Messages are the business itself, and have a history of their own. Others only read.
const WITHOUT: &[&str] = &[
    "v1.message.create",
    "v1.dispatch.create",
    "v1.job.create",
    "v1.message.create-batch",
    "v1.message.precheck",
    "v1.message.search",
    "v1.admin.redrive-dlq",
    "v1.endpoint.send-example",
    "in.receive",
];

#[tokio::test]
async fn every_changing_route_has_a_known_audit_row() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let mut changing = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for (method, operation) in methods.as_object().unwrap() {
            if method != "get" {
                changing.insert(operation["operationId"].as_str().unwrap().to_owned());
            }
        }
    }
    let known: BTreeSet<_> = ROWS.iter().map(|(id, _)| *id).chain(WITHOUT.iter().copied()).collect();
    let missing: Vec<_> = changing.iter().filter(|id| !known.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "say which row of the audit log these leave: {missing:?}");
    let gone: Vec<_> = known.iter().filter(|id| !changing.contains(**id)).collect();
    assert!(gone.is_empty(), "there are no such routes: {gone:?}");
}

#[test]
fn the_documentation_names_every_action() {
    let documented = include_str!("../../../../../docs/audit.md");
    let mut actions = BTreeSet::new();
    for line in documented.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, kinds, verbs, _] = cells[..] else { continue };
        for kind in kinds.split(", ").map(|kind| kind.trim_matches('`')) {
            let verbs = verbs.split('`').filter(|verb| verb.starts_with('.'));
            actions.extend(verbs.map(|verb| format!("{kind}{verb}")));
        }
    }
    for (_, action) in ROWS {
        assert!(actions.contains(*action), "docs/audit.md lacks {action}");
    }
}

#[tokio::test]
async fn every_change_has_an_audit_row_and_a_refused_one_has_none() {
    let server = Running::start().await;
    let key = json!({"name": "the shop", "scope": "admin"}).to_string();
    let key = server.client.post("/api-key", key).await.expect(201);
    let client = server.client.with_token(key["key"].as_str().unwrap());
    let app =
        client.post("/app", r#"{"name":"a","uid":"a"}"#).await.expect(201)["id"].as_str().unwrap().to_owned();
    client.post("/app", r#"{"name":"a","uid":"a"}"#).await.expect(409);
    client.post("/app?get_if_exists=true", r#"{"name":"a","uid":"a"}"#).await.expect(200);
    client.patch(&format!("/app/{app}"), r#"{"name":"b"}"#).await.expect(200);
    client.post("/event-type", r#"{"name":"paid","description":""}"#).await.expect(201);
    client.post("/event-type", r#"{"name":"paid","description":""}"#).await.expect(409);
    client.delete("/event-type/paid").await.expect(204);
    let made =
        client.post(&format!("/app/{app}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(201);
    let endpoint = made["id"].as_str().unwrap();
    let path = format!("/app/{app}/endpoint/{endpoint}");
    let changed = r#"{"url":"https://user:pass@example.com/x","description":"their shop","eventTypes":null}"#;
    client.patch(&path, changed).await.expect(200);
    client.patch(&path, r#"{"url":"nonsense"}"#).await.expect(422);
    client.post(&format!("{path}/secret/rotate"), "{}").await.expect(200);
    client.put(&format!("{path}/headers"), r#"{"headers":{"x-a":"quite secret"}}"#).await.expect(204);
    client.post(&format!("{path}/resume"), "").await.expect(200);
    client.delete(&format!("{path}/mtls")).await.expect(204);
    let since = r#"{"since":"2026-01-01T00:00:00Z"}"#;
    client.post(&format!("{path}/recover"), since).await.expect(202);
    client
        .post(&format!("{path}/recover"), r#"{"since":"2026-01-01T00:00:00Z","dryRun":true}"#)
        .await
        .expect(200);
    let policy = json!({"name": "mine", "schedule": {"type": "list", "delays": ["1s"]}}).to_string();
    client.post("/policy", policy.clone()).await.expect(201);
    client.put("/policy/mine", policy.replace("1s", "2s")).await.expect(200);
    client.delete("/policy/mine").await.expect(204);
    client.delete("/policy/mine").await.expect(404);
    client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    client.post(&format!("/auth/app/{app}/expire-all"), "{}").await.expect(204);
    client.post(&format!("/app/{app}/msg"), r#"{"eventType":"a","payload":{}}"#).await.expect(202);
    client.delete(&path).await.expect(204);
    client.delete(&path).await.expect(404);
    client.delete(&format!("/app/{app}")).await.expect(204);
    client.post("/operational-webhook/endpoint", r#"{"url":"https://example.com/"}"#).await.expect(201);

    let rows = log(&server.client, "&order=ascending").await;
    assert_eq!(
        actions(&rows),
        [
            "api_key.create",
            "application.create",
            "application.update",
            "event_type.create",
            "event_type.update",
            "endpoint.create",
            "endpoint.update",
            "endpoint.secret.rotate",
            "endpoint.headers.update",
            "replay.start",
            "policy.create",
            "policy.update",
            "policy.delete",
            "portal_access.create",
            "portal_access.expire",
            "endpoint.delete",
            "application.delete",
            "application.create",
            "endpoint.create",
        ]
    );
    let first = &rows[0];
    assert_eq!(first["actor"], json!({"kind": "organization_token", "id": aldaba::DEFAULT_ORGANIZATION}));
    assert_eq!(first["resourceId"], key["id"]);
    let shop = json!({"kind": "api_key", "id": key["id"], "prefix": key["prefix"], "name": "the shop"});
    assert!(rows[1..].iter().all(|row| row["actor"] == shop), "{rows:?}");
    assert_eq!((&rows[2]["fields"], &rows[2]["appId"]), (&json!(["name"]), &json!(app)));
    let update = &rows[6];
    assert_eq!(update["fields"], json!(["url", "description"]));
    assert_eq!((&update["endpointId"], &update["resourceId"]), (&json!(endpoint), &json!(endpoint)));
    assert_eq!(update["count"], 1);
    assert_eq!(rows[10]["resourceId"], "mine");
    let whole = json!(rows).to_string();
    for secret in ["quite secret", "pass", key["key"].as_str().unwrap(), "whsec"] {
        assert!(!whole.contains(secret), "the log holds {secret}");
    }
}

#[tokio::test]
async fn a_change_without_effect_has_no_audit_row() {
    let server = Running::delivering().await;
    let client = &server.client;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": "http://127.0.0.1:9/", "description": "d"})).await;
    let endpoint = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    server.event_type("paid").await;
    let key = client.post("/api-key", r#"{"name": "k", "scope": "read"}"#).await.expect(201);
    let key = format!("/api-key/{}", key["id"].as_str().unwrap());
    let policy = json!({"name": "mine", "schedule": {"type": "list", "delays": ["1s"]}}).to_string();
    client.post("/policy", policy.clone()).await.expect(201);
    let profile = json!({"name": "mine", "headers": {"x-a": "b"}}).to_string();
    client.post("/profile", profile.clone()).await.expect(201);
    let message = server.message(&app, "paid").await;
    let attempt = client.attempt_id(&app, &message).await;
    let contents = [
        format!("/app/{app}/msg/{message}/attempt/{attempt}/content"),
        format!("/app/{app}/msg/{message}/content"),
    ];
    for content in &contents {
        client.delete(content).await.expect(204);
    }
    let before = log(client, "").await;
    let updated = client.get(&endpoint).await.expect(200)["updatedAt"].clone();
    client.patch(&format!("/app/{app}"), r#"{"name": "an application"}"#).await.expect(200);
    client.put(&format!("/app/{app}"), r#"{"name": "an application"}"#).await.expect(200);
    client.patch(&endpoint, r#"{"description": "d"}"#).await.expect(200);
    client.put(&endpoint, r#"{"url": "http://127.0.0.1:9/", "description": "d"}"#).await.expect(200);
    client.patch("/event-type/paid", r#"{"description": ""}"#).await.expect(200);
    client.put("/event-type/paid", r#"{"description": ""}"#).await.expect(200);
    client.patch(&key, r#"{"name": "k"}"#).await.expect(200);
    client.put("/policy/mine", policy).await.expect(200);
    client.put("/profile/mine", profile).await.expect(200);
    for content in &contents {
        client.delete(content).await.expect(204);
    }
    assert_eq!(actions(&log(client, "").await), actions(&before));
    assert_eq!(client.get(&endpoint).await.expect(200)["updatedAt"], updated);
    client.patch(&endpoint, r#"{"description": "e"}"#).await.expect(200);
    assert_eq!(log(client, "").await.len(), before.len() + 1);
}

#[tokio::test]
async fn an_import_is_one_row_with_how_many_it_has_changed() {
    let server = Running::start().await;
    let import = async |names: &[&str]| {
        let operation = |name: &&str| ((*name).to_owned(), json!({"post": {"summary": name}}));
        let webhooks: serde_json::Map<_, _> = names.iter().map(operation).collect();
        let body = json!({"spec": {"openapi": "3.1.0", "webhooks": webhooks}}).to_string();
        server.client.post("/event-type/import/openapi", body).await.expect(200);
    };
    import(&["a"]).await;
    import(&["a", "b", "c"]).await;
    import(&["a", "b"]).await;
    import(&[]).await;
    let rows = log(&server.client, "&order=ascending").await;
    let told = |row: &Value| (row["action"].clone(), row["count"].clone(), row["resourceId"].clone());
    let import = |count: u64| (json!("event_type.import"), json!(count), Value::Null);
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), [import(1), import(2)]);
}

#[tokio::test]
async fn discards_cancellations_and_resends_have_audit_rows() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // The port is closed: the delivery dies at once, or waits.
    let policy =
        json!({"name": "once", "schedule": {"type": "list", "delays": ["1s"]}, "limit": {"attempts": 1}});
    server.client.post("/policy", policy.to_string()).await.expect(201);
    let dying = server.endpoint(&app, json!({"url": "http://127.0.0.1:9/", "policy": "once"})).await;
    let dying = dying["id"].as_str().unwrap();
    let mut messages = Vec::new();
    for _ in 0..3 {
        messages.push(server.message(&app, "a").await);
    }
    let letter = server.client.list_until(&format!("/app/{app}/delivery?state=dead"), 3).await;
    let one = letter[0]["id"].as_str().unwrap();
    server.client.delete(&format!("/app/{app}/delivery/{one}")).await.expect(204);
    let many = server.client.post(&format!("/app/{app}/delivery/discard"), "{}").await.expect(200);
    assert_eq!(many["discarded"], 2);
    server.client.post(&format!("/app/{app}/delivery/discard"), "{}").await.expect(200);
    let resend = format!("/app/{app}/msg/{}/endpoint/{dying}/resend", messages[0]);
    server.client.post(&resend, "").await.expect(202);
    server.client.delete(&format!("/app/{app}/endpoint/{dying}")).await.expect(204);
    let attempts = server.client.get(&format!("/app/{app}/attempt/msg/{}", messages[0])).await.expect(200);
    let attempt = attempts["data"][0]["id"].as_str().unwrap();
    let path = format!("/app/{app}/msg/{}", messages[0]);
    server.client.delete(&format!("{path}/attempt/{attempt}/content")).await.expect(204);
    server.client.delete(&format!("{path}/content")).await.expect(204);

    let held = server.endpoint(&app, json!({"disabled": true, "whenDisabled": "hold"})).await;
    let held = held["id"].as_str().unwrap();
    for _ in 0..2 {
        server.message(&app, "a").await;
    }
    let before = r#"{"createdBefore":"2100-01-01T00:00:00Z"}"#;
    server.client.post(&format!("/app/{app}/endpoint/{held}/cancel-msgs"), before).await.expect(204);

    let rows = log(&server.client, &format!("&order=ascending&app_id={app}")).await;
    let count = |row: &Value| row["count"].as_u64().unwrap();
    let of = |action: &str| rows.iter().filter(|row| row["action"] == action).collect::<Vec<_>>();
    let discards = of("delivery.discard");
    assert_eq!(discards.iter().map(|row| count(row)).collect::<Vec<_>>(), [1, 2], "{rows:?}");
    assert_eq!((&discards[0]["resourceId"], &discards[1]["resourceId"]), (&json!(one), &json!(null)));
    let resends = of("message.resend");
    assert_eq!(resends.len(), 1);
    assert_eq!((&resends[0]["resourceId"], &resends[0]["endpointId"]), (&json!(messages[0]), &json!(dying)));
    assert_eq!(of("attempt.expunge")[0]["resourceId"], json!(attempt));
    assert_eq!(of("message.expunge")[0]["resourceId"], json!(messages[0]));
    let cancels = of("delivery.cancel");
    assert_eq!((cancels.len(), count(cancels[0]), &cancels[0]["endpointId"]), (1, 2, &json!(held)));
}

#[tokio::test]
async fn the_audit_log_is_filtered_paged_and_private_to_the_organization() {
    let server = Running::start().await;
    let (a, b) = (server.application().await, server.application().await);
    for app in [&a, &b] {
        server.endpoint(app, json!({})).await;
        next_id_moment().await;
    }
    let token = server.client.post(&format!("/auth/app-portal-access/{a}"), r#"{"sessionId":"ana"}"#).await;
    let ana = server.client.with_token(token.expect(200)["token"].as_str().unwrap());
    next_id_moment().await;
    let made = ana.post(&format!("/app/{a}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(201);
    let rows = log(&server.client, "").await;
    assert_eq!(rows.len(), 6, "{rows:?}");
    let newest = &rows[0];
    assert_eq!(newest["resourceId"], made["id"], "the newest first");
    assert_eq!(newest["actor"], json!({"kind": "portal_token", "id": a, "sessionId": "ana"}));

    assert_eq!(log(&server.client, &format!("&app_id={b}")).await.len(), 2);
    assert_eq!(log(&server.client, "&action=endpoint.create").await.len(), 3);
    assert_eq!(log(&server.client, "&actor=portal_token").await.len(), 1);
    assert_eq!(log(&server.client, &format!("&actor={a}")).await.len(), 1);
    assert_eq!(log(&server.client, &format!("&actor={b}")).await.len(), 0);
    let moment = newest["timestamp"].as_str().unwrap();
    assert_eq!(log(&server.client, &format!("&before={moment}")).await.len(), 5);
    assert_eq!(log(&server.client, &format!("&after={moment}")).await.len(), 1);
    server.client.delete(&format!("/app/{b}")).await.expect(204);
    assert_eq!(log(&server.client, &format!("&app_id={b}")).await.len(), 3, "deleted, with a history");

    let all: Vec<_> = log(&server.client, "").await.iter().map(|row| row["id"].clone()).collect();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.client.get(&format!("/audit?limit=3{after}")).await.expect(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].clone()));
        if page["done"] == true {
            break;
        }
        after = format!("&iterator={}", page["iterator"].as_str().unwrap());
    }
    assert_eq!(seen, all);
    let end = server
        .client
        .get(&format!("/audit?limit=3&iterator=-{}", all[6].as_str().unwrap()))
        .await
        .expect(200);
    let ids: Vec<_> = end["data"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, all[3..6]);

    for (query, status) in [
        ("actor=nobody", 422),
        ("before=yesterday", 422),
        ("after=1", 422),
        ("app_id=nowhere", 404),
        ("iterator=x", 422),
        ("limit=251", 422),
        ("order=up", 422),
    ] {
        server.client.get(&format!("/audit?{query}")).await.expect(status);
    }
    let other = server.client.with_token(&token_of_others());
    assert_eq!(log(&other, "").await.len(), 0);
    assert_eq!(log(&other, &format!("&app_id={a}")).await.len(), 0);
    ana.get("/audit").await.expect(403);
}

fn token_of_others() -> String {
    token(OTHER_ORGANIZATION)
}

#[tokio::test]
async fn rows_survive_a_restart() {
    let server = Running::start().await;
    server.application().await;
    let before = log(&server.client, "").await;
    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!(log(&server.client, "").await, before);
    let by_action: BTreeMap<_, _> = before.iter().map(|row| (row["action"].as_str(), row)).collect();
    assert!(by_action.contains_key(&Some("application.create")));
}
