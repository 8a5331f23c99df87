//! The audit log: changed fields with the values before and after.

use crate::support::client::Client;
use crate::support::running::Running;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn log(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("/audit?{query}")).await.expect(200)["data"].as_array().unwrap().clone()
}

/// The values of a field in the newest row.
async fn newest(client: &Client, query: &str, field: &str) -> (Value, Value) {
    let rows = log(client, query).await;
    let changes = rows[0]["changes"].as_array().unwrap();
    let found = changes.iter().find(|change| change["field"] == field);
    let found = found.unwrap_or_else(|| panic!("{field} is not in {}", rows[0]));
    assert!(rows[0]["fields"].as_array().unwrap().contains(&json!(field)), "{}", rows[0]);
    (found["before"].clone(), found["after"].clone())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn entries_show_the_values_before_and_after_for_every_kind_of_thing() {
    let server = Running::start().await;
    let client = &server.client;
    let app = text(&client.post("/app", r#"{"name": "first"}"#).await.expect(201)["id"]);
    assert_eq!(newest(client, &format!("resource_id={app}"), "name").await, (Value::Null, json!("first")));
    client.patch(&format!("/app/{app}"), r#"{"name": "second"}"#).await.expect(200);
    let row = &log(client, &format!("resource_id={app}")).await[0];
    assert_eq!(
        row["changes"],
        json!([{"field": "name", "before": "first", "after": "second"}]),
        "nothing else"
    );
    assert_eq!((&row["resourceType"], &row["fields"]), (&json!("application"), &json!(["name"])));

    let endpoints = format!("/app/{app}/endpoint");
    let endpoint = json!({"url": "https://user:password@example.com/a?key=s3cret", "description": "old"});
    let endpoint = text(&client.post(&endpoints, endpoint.to_string()).await.expect(201)["id"]);
    let of_endpoint = format!("resource_id={endpoint}");
    assert_eq!(newest(client, &of_endpoint, "url").await, (Value::Null, json!("https://example.com/a?***")));
    let one = format!("{endpoints}/{endpoint}");
    client.patch(&one, r#"{"url": "https://example.com/b", "disabled": true}"#).await.expect(200);
    assert_eq!(
        newest(client, &of_endpoint, "url").await,
        (json!("https://example.com/a?***"), json!("https://example.com/b"))
    );
    assert_eq!(newest(client, &of_endpoint, "disabled").await, (json!(false), json!(true)));

    client.put(&format!("{one}/headers"), r#"{"headers": {"X-A": "one", "X-B": "two"}}"#).await.expect(204);
    client
        .patch(&format!("{one}/headers"), r#"{"headers": {"X-A": "three", "X-B": null}}"#)
        .await
        .expect(204);
    assert_eq!(newest(client, &of_endpoint, "headers.x-a").await, (json!("***"), json!("***")));
    assert_eq!(newest(client, &of_endpoint, "headers.x-b").await, (json!("***"), Value::Null));
    client
        .post(&format!("{one}/secret/rotate"), r#"{"key": "whsec_c2VjcmV0LXRoYXQtbm9ib2R5LWV2ZXItc2Vlcw=="}"#)
        .await
        .expect(200);
    assert_eq!(newest(client, &of_endpoint, "secret").await, (json!("***"), json!("***")));

    let policy =
        |delay: &str| json!({"name": "p", "schedule": {"type": "list", "delays": [delay]}}).to_string();
    client.post("/policy", policy("1s")).await.expect(201);
    client.put("/policy/p", policy("2s")).await.expect(200);
    let delays = |delay: &str| json!({"type": "list", "delays": [delay]});
    assert_eq!(newest(client, "resource_type=policy", "schedule").await, (delays("1s"), delays("2s")));
    client.delete("/policy/p").await.expect(204);
    assert_eq!(newest(client, "resource_id=p", "schedule").await, (delays("2s"), Value::Null));

    client.post("/profile", r#"{"name": "q", "headers": {"x-a": "b"}}"#).await.expect(201);
    client.put("/profile/q", r#"{"headers": {"x-a": "c"}}"#).await.expect(200);
    assert_eq!(
        newest(client, "resource_type=profile", "headers").await,
        (json!({"x-a": "b"}), json!({"x-a": "c"}))
    );

    client.put("/event-type/paid", r#"{"description": "old"}"#).await.expect(201);
    client.put("/event-type/paid", r#"{"description": "new"}"#).await.expect(200);
    assert_eq!(newest(client, "resource_id=paid", "description").await, (json!("old"), json!("new")));

    let key = text(&client.post("/api-key", r#"{"name": "old", "scope": "read"}"#).await.expect(201)["id"]);
    client.patch(&format!("/api-key/{key}"), r#"{"name": "new"}"#).await.expect(200);
    assert_eq!(newest(client, &format!("resource_id={key}"), "name").await, (json!("old"), json!("new")));
    client.delete(&format!("/api-key/{key}")).await.expect(204);
    assert_eq!(newest(client, &format!("resource_id={key}"), "scope").await, (json!("read"), Value::Null));

    let source =
        json!({"name": "s", "type": "github", "config": {"secret": "the sender's secret"}}).to_string();
    let source = text(&client.post("/ingest/source", source).await.expect(201)["id"]);
    let of_source = format!("resource_id={source}");
    client
        .patch(
            &format!("/ingest/source/{source}"),
            r#"{"name": "t", "config": {"secret": "another secret of it"}}"#,
        )
        .await
        .expect(200);
    assert_eq!(newest(client, &of_source, "name").await, (json!("s"), json!("t")));
    assert_eq!(newest(client, &of_source, "config").await, (json!("***"), json!("***")));
    client.post(&format!("/ingest/source/{source}/token/rotate"), "").await.expect(200);
    assert_eq!(newest(client, &of_source, "token").await, (json!("***"), json!("***")));

    client.delete(&one).await.expect(204);
    assert_eq!(newest(client, &of_endpoint, "url").await, (json!("https://example.com/b"), Value::Null));
    client.delete(&format!("/app/{app}")).await.expect(204);
    assert_eq!(newest(client, &format!("resource_id={app}"), "name").await, (json!("second"), Value::Null));
    // A message that makes its application changes something too.
    let inline = json!({"eventType": "a", "payload": {}, "application": {"name": "inline", "uid": "inline"}});
    client.post("/app/inline/msg", inline.to_string()).await.expect(202);
    assert_eq!(newest(client, "action=application.create", "name").await, (Value::Null, json!("inline")));

    let all = client.get("/audit?limit=250").await.expect(200).to_string();
    for secret in
        ["s3cret", "password", "c2VjcmV0", "the sender's secret", "another secret", "\"one\"", "\"three\""]
    {
        assert!(!all.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn entries_are_found_by_what_was_changed() {
    let server = Running::start().await;
    let client = &server.client;
    let app = text(&client.post("/app", r#"{"name": "a"}"#).await.expect(201)["id"]);
    let mut endpoints = Vec::new();
    for _ in 0..2 {
        let made = client.post(&format!("/app/{app}/endpoint"), r#"{"url": "https://example.com/"}"#).await;
        endpoints.push(text(&made.expect(201)["id"]));
    }
    let one = format!("/app/{app}/endpoint/{}", endpoints[0]);
    client.patch(&one, r#"{"description": "b"}"#).await.expect(200);
    client.patch(&one, r#"{"url": "https://example.com/b"}"#).await.expect(200);
    client.post(&format!("{one}/recover"), r#"{"since": "2025-01-01T00:00:00Z"}"#).await.expect(202);
    let actions = async |query: String| {
        let rows = log(client, &query).await;
        rows.iter().map(|row| text(&row["action"])).collect::<Vec<_>>()
    };
    let first = &endpoints[0];
    let updates = ["endpoint.update", "endpoint.update", "endpoint.create"];
    assert_eq!(actions(format!("resource_id={first}")).await, updates);
    assert_eq!(actions(format!("endpoint_id={first}")).await, [&["replay.start"][..], &updates].concat());
    assert_eq!(actions("resource_type=application".into()).await, ["application.create"]);
    assert_eq!(actions("resource_type=endpoint&order=ascending".into()).await.len(), 4);
    assert_eq!(
        actions(format!("resource_id={first}&field=url&action=endpoint.update")).await,
        ["endpoint.update"]
    );
    assert_eq!(actions(format!("resource_id={first}&resource_type=policy")).await, [""; 0]);
    assert_eq!(
        actions(format!("resource_type=endpoint&app_id={app}&actor=organization_token")).await.len(),
        4
    );
    // Page by page, without a gap.
    let (mut seen, mut iterator) = (Vec::new(), String::new());
    loop {
        let page = client
            .get(&format!("/audit?resource_type=endpoint&limit=1&iterator={iterator}"))
            .await
            .expect(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|row| text(&row["id"])));
        if page["done"] == true {
            break;
        }
        iterator = text(&page["iterator"]);
    }
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 4);
    assert_eq!(seen.len(), 4);
    for wrong in ["resource_type=endpoints", "endpoint_id=nothing"] {
        let refused = client.get(&format!("/audit?{wrong}")).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"][0], "query", "{wrong}");
    }
}

#[tokio::test]
async fn a_long_value_is_cut_and_marked() {
    let server = Running::start().await;
    let (client, long) = (&server.client, "x".repeat(16_000));
    client.put("/event-type/paid", json!({"description": long}).to_string()).await.expect(201);
    let row = &log(client, "resource_id=paid").await[0];
    let change =
        row["changes"].as_array().unwrap().iter().find(|change| change["field"] == "description").unwrap();
    assert_eq!(change["cut"], true);
    let kept = change["after"].as_str().unwrap();
    assert!(kept.len() < 4200 && kept.ends_with('…'), "{}", kept.len());
}

#[tokio::test]
async fn every_kind_of_thing_that_actions_name_can_be_asked_for() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let parameters = document["paths"]["/api/v1/audit"]["get"]["parameters"].as_array().unwrap();
    let kinds = parameters.iter().find(|parameter| parameter["name"] == "resource_type").unwrap();
    let kinds: BTreeSet<_> = kinds["schema"]["enum"].as_array().unwrap().iter().map(text).collect();
    let page = include_str!("../../../../../docs/audit.md");
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains("| `."));
    let documented = rows.flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    assert_eq!(kinds, documented.map(str::to_owned).collect());
}
