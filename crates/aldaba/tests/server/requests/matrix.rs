//! Every route of the API's document, with ids that are another tenant's.

use crate::credentials::tokens::{OTHER_ORGANIZATION, application_token};
use crate::support::client::{Client, Reply};
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// Below `/api/v1`, with names in braces.
    pub(crate) path: String,
    /// The word for who may use it.
    pub(crate) access: String,
    pub(crate) has_body: bool,
    /// As the document has it.
    pub(crate) described: Value,
}

impl Operation {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    pub(crate) fn filled(&self, ids: &BTreeMap<&str, String>) -> String {
        self.names().fold(self.path.clone(), |path, name| {
            let id =
                ids.get(name).unwrap_or_else(|| panic!("the matrix knows no {{{name}}} for {}", self.path));
            path.replace(&format!("{{{name}}}"), id)
        })
    }

    pub(crate) async fn call(&self, client: &Client, path: &str) -> Reply {
        let body = if self.method == Method::GET { "" } else { "{}" };
        client.send(self.method.clone(), path, &[], body.into()).await
    }
}

pub(crate) async fn operations(server: &Running) -> Vec<Operation> {
    let document = server.client.anonymous().get("/openapi.json").await.expect(200);
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // The URL of a source is outside of the API and accepts no tokens.
        let Some(path) = path.strip_prefix("/api/v1") else {
            assert_eq!(path, "/in/{token}");
            continue;
        };
        for (method, operation) in methods.as_object().unwrap() {
            let access = operation["security"][0]["token"][0].as_str().unwrap_or("open").to_owned();
            let method = method.to_uppercase().parse().unwrap();
            let (path, has_body) = (path.into(), operation["requestBody"].is_object());
            found.push(Operation { method, path, access, has_body, described: operation.clone() });
        }
    }
    assert!(found.len() > 50, "the document has {} operations", found.len());
    found
}

/// A tenant that has one of everything, by the names that paths have for it.
pub(crate) async fn tenant(client: &Client, receiver: &Receiver) -> BTreeMap<&'static str, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let app = text(&client.post("/app", r#"{"name": "a"}"#).await.expect(201)["id"]);
    let endpoint = json!({"url": receiver.url("/"), "policy": "job-status"}).to_string();
    let endpoint = text(&client.post(&format!("/app/{app}/endpoint"), endpoint).await.expect(201)["id"]);
    let message = r#"{"eventType": "a", "payload": {}}"#;
    let message = text(&client.post(&format!("/app/{app}/msg"), message).await.expect(202)["id"]);
    let attempt = client.attempt_id(&app, &message).await;
    let delivery = text(&client.get(&format!("/app/{app}/delivery")).await.expect(200)["data"][0]["id"]);
    let since = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    let task = client.post(&format!("/app/{app}/endpoint/{endpoint}/bulk-replay"), since).await.expect(202);
    let policy = r#"{"name": "theirs", "schedule": {"type": "list", "delays": ["1s"]}}"#;
    client.post("/policy", policy).await.expect(201);
    let profile = json!({"name": "theirs", "headers": {"x-a": "b"}}).to_string();
    client.post("/profile", profile).await.expect(201);
    client.post("/event-type", r#"{"name": "theirs", "description": ""}"#).await.expect(201);
    let ear = json!({"url": "https://example.com/"}).to_string();
    let ear = text(&client.post("/operational-webhook/endpoint", ear).await.expect(201)["id"]);
    let key = client.post("/api-key", r#"{"name": "theirs", "scope": "read"}"#).await.expect(201);
    let job =
        json!({"jobId": "theirs", "jobType": "t", "status": "completed", "webhookUrl": receiver.url("/")});
    client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(202);
    let source = client.post("/ingest/source", r#"{"name": "theirs", "type": "generic-webhook"}"#).await;
    let source = source.expect(201);
    let door = format!("/ingest/source/{}/endpoint", source["id"].as_str().unwrap());
    let behind = text(&client.post(&door, r#"{"url": "https://example.com/"}"#).await.expect(201)["id"]);
    let door = source["ingestUrl"].as_str().unwrap().strip_prefix("http://aldaba.test/").unwrap().to_owned();
    client
        .send(Method::POST, &format!("//{door}"), &[("webhook-id", "theirs")], "{}".into())
        .await
        .expect(200);
    let failing = text(&client.post("/app", r#"{"name": "b"}"#).await.expect(201)["id"]);
    let one_attempt = r#"{"name": "one-attempt", "schedule": {"type": "list", "delays": ["1s"]},
            "limit": {"attempts": 1}, "endpointFails": {"type": "whenExhausted"}}"#;
    client.post("/policy", one_attempt).await.expect(201);
    let nobody = r#"{"url": "http://127.0.0.1:9/", "policy": "one-attempt"}"#;
    client.post(&format!("/app/{failing}/endpoint"), nobody).await.expect(201);
    client.post(&format!("/app/{failing}/msg"), r#"{"eventType": "a", "payload": {}}"#).await.expect(202);
    let alert = text(&client.list_until("/alert?state=firing", 1).await[0]["id"]);
    BTreeMap::from([
        ("alert_id", alert),
        ("job_id", "theirs".to_owned()),
        ("key_id", text(&key["id"])),
        ("app_id", app),
        ("endpoint_id", endpoint),
        ("msg_id", message),
        ("attempt_id", attempt),
        ("delivery_id", delivery),
        ("task_id", text(&task["id"])),
        ("policy_name", "theirs".to_owned()),
        ("profile_name", "theirs".to_owned()),
        ("event_type_name", "theirs".to_owned()),
        ("origin", "https%3A%2F%2Fexample.com".to_owned()),
        ("operational", ear),
        ("source_id", text(&source["id"])),
        ("behind", behind),
        ("event_id", "theirs".to_owned()),
    ])
}

/// The ids for a path: its `{endpoint_id}` may be an operational one.
pub(crate) fn ids_for<'a>(
    operation: &Operation,
    ids: &BTreeMap<&'a str, String>,
) -> BTreeMap<&'a str, String> {
    let mut ids = ids.clone();
    if operation.path.starts_with("/operational-webhook")
        && let Some(ear) = ids.get("operational").cloned()
    {
        ids.insert("endpoint_id", ear);
    }
    if operation.path.starts_with("/ingest")
        && let Some(behind) = ids.get("behind").cloned()
    {
        ids.insert("endpoint_id", behind);
    }
    ids
}

#[tokio::test]
async fn a_body_that_is_too_large_too_deep_or_no_json_is_refused_on_every_route() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let ids = tenant(&server.client, &receiver).await;
    let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let small = |body: String| (body, vec![422]);
    let bodies = [
        small(deep(200)),
        small(deep(200_000)),
        small("{".repeat(200)),
        small("\u{0}".into()),
        (" ".repeat((1 << 20) + (64 << 10) + 1), vec![413]),
    ];
    // Deletions last: they take away what others are about.
    let mut all = operations(&server).await;
    all.sort_by_key(|operation| (operation.method == Method::DELETE, operation.path.matches('{').count()));
    for operation in all.iter().filter(|operation| operation.has_body) {
        let path = operation.filled(&ids_for(operation, &ids));
        for (body, expected) in &bodies {
            let reply = server.client.send(operation.method.clone(), &path, &[], body.clone().into()).await;
            // A batch may be larger, and is then no JSON.
            let expected = if path.ends_with("/msg/batch") { &vec![422] } else { expected };
            let status = reply.status.as_u16();
            assert!(expected.contains(&status), "{} {path}: {status} {:?}", operation.method, reply.body);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn another_organizations_ids_are_not_there_on_any_route() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let theirs = tenant(&server.client, &receiver).await;
    let stranger = server.client.with_token(&token(OTHER_ORGANIZATION));
    for operation in operations(&server).await {
        // A set of public keys is for everybody.
        if operation.names().next().is_none() || operation.access == "open" {
            continue;
        }
        let path = operation.filled(&ids_for(&operation, &theirs));
        let reply = operation.call(&stranger, &path).await;
        let named = ["/event-type/{event_type_name}", "/policy/{policy_name}", "/profile/{profile_name}"];
        if operation.method == Method::PUT && named.contains(&operation.path.as_str()) {
            // It would be one of their own.
            assert_eq!(reply.status, 422, "{path}: {:?}", reply.body);
            continue;
        }
        assert_eq!(reply.status, 404, "{} {path}: {:?}", operation.method, reply.body);
    }
}

#[tokio::test]
async fn another_applications_ids_are_not_there_under_ones_own() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let theirs = tenant(&server.client, &receiver).await;
    let own = server.application().await;
    for operation in operations(&server).await {
        let inside = operation.names().count() > 1 && operation.path.starts_with("/app/{app_id}");
        if !inside {
            continue;
        }
        let mut ids = theirs.clone();
        ids.insert("app_id", own.clone());
        let path = operation.filled(&ids);
        let reply = operation.call(&server.client, &path).await;
        assert_eq!(reply.status, 404, "{} {path}: {:?}", operation.method, reply.body);
    }
}

#[tokio::test]
async fn an_applications_token_reaches_its_own_application_only() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let theirs = tenant(&server.client, &receiver).await;
    let own = server.application().await;
    let portal = server.client.with_token(&application_token(&own));
    let of_organization = ["read-organization", "send", "precheck", "erase", "administer", "admit", "govern"];
    for operation in operations(&server).await {
        if operation.access == "open" || operation.access == "known" {
            continue;
        }
        let path = operation.filled(&ids_for(&operation, &theirs));
        let reply = operation.call(&portal, &path).await;
        let expected = match &operation.access {
            access if of_organization.contains(&access.as_str()) => 403,
            _ if ["{app_id}", "{origin}", "{alert_id}"].iter().any(|id| operation.path.contains(id)) => 404,
            // Resources of the organization that are not secret: policies, profiles, event types, hosts.
            _ => continue,
        };
        assert_eq!(reply.status, expected, "{} {path}: {:?}", operation.method, reply.body);
    }
}

#[tokio::test]
async fn a_key_does_what_its_scope_says_on_every_route_and_nothing_else() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let ids = tenant(&server.client, &receiver).await;
    for (scope, allowed) in [
        ("send", &["send", "precheck", "known"][..]),
        ("read", &["read", "read-organization", "precheck", "known"][..]),
    ] {
        let made = json!({"name": scope, "scope": scope}).to_string();
        let made = server.client.post("/api-key", made).await.expect(201);
        let caller = server.client.with_token(made["key"].as_str().unwrap());
        for operation in operations(&server).await {
            // It ends the key itself.
            if operation.path == "/auth/logout" {
                continue;
            }
            let path = operation.filled(&ids_for(&operation, &ids));
            let reply = operation.call(&caller, &path).await;
            let may = operation.access == "open" || allowed.contains(&operation.access.as_str());
            let place = format!("{scope}: {} {path}: {:?}", operation.method, reply.body);
            assert_eq!(reply.status != 403, may, "{place}");
            assert_ne!(reply.status, 401, "{place}");
        }
    }
}

#[tokio::test]
async fn every_route_requires_a_token() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    for operation in operations(&server).await.iter().filter(|operation| operation.access != "open") {
        let reply = operation.call(&nobody, &operation.path.replace(['{', '}'], "")).await;
        assert_eq!(reply.status, 401, "{} {}", operation.method, operation.path);
    }
}
