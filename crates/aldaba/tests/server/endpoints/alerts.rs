//! Alerts, seen from outside.

use crate::credentials::tokens::{OTHER_ORGANIZATION, application_token};
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use aldaba_delivery::alert::AlertRules;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// So many attempts at once, one after the other.
fn policy(name: &str, attempts: usize) -> String {
    let delays = vec!["10ms"; attempts - 1];
    let delays = if delays.is_empty() { vec!["10ms"] } else { delays };
    let schedule = json!({"type": "list", "delays": delays});
    let policy = json!({
        "name": name, "schedule": schedule, "limit": {"attempts": attempts}, "endpointFails": {"type": "never"},
        "jitter": {"type": "none"}, "gate": {"type": "apart"},
    });
    policy.to_string()
}

struct Stage {
    server: Running,
    receiver: Receiver,
    app: String,
    endpoint: String,
}

impl Stage {
    /// An endpoint whose deliveries have so many attempts, and a receiver that answers 500.
    async fn failing(attempts: usize) -> Self {
        let (server, receiver) = (Running::delivering().await, Receiver::answering(500, "no").await);
        server.client.post("/policy", policy("hasty", attempts)).await.expect(201);
        let app = server.application().await;
        let body = json!({"url": receiver.url("/"), "policy": "hasty"});
        let endpoint = server.endpoint(&app, body).await["id"].as_str().unwrap().to_owned();
        Self { server, receiver, app, endpoint }
    }

    async fn alert(&self) -> Value {
        self.server.client.list_until("/alert?state=firing", 1).await.remove(0)
    }
}

#[tokio::test]
async fn d7_an_endpoint_has_an_alert_from_its_third_failure_in_a_row_until_it_recovers() {
    let stage = Stage::failing(2).await;
    let client = &stage.server.client;
    for _ in 0..2 {
        // Each has one failure before its last attempt, and that ends the delivery.
        let message = stage.server.message(&stage.app, "a").await;
        client.list_until(&format!("/app/{}/attempt/msg/{message}", stage.app), 2).await;
    }
    assert_eq!(client.get("/alert").await.expect(200)["data"], json!([]), "two failures are none too many");
    stage.server.message(&stage.app, "a").await;
    let alert = stage.alert().await;
    assert_eq!((&alert["rule"], &alert["scope"]), (&json!("endpoint-failing"), &json!("endpoint")));
    assert_eq!((&alert["appId"], &alert["endpointId"]), (&json!(stage.app), &json!(stage.endpoint)));
    assert_eq!((&alert["value"], &alert["threshold"]), (&json!(3.0), &json!(2.0)));
    assert_eq!((&alert["state"], &alert["resolvedAt"]), (&json!("firing"), &Value::Null));
    assert!(alert["whatToDo"].as_str().unwrap().starts_with("Look at the last error"), "{alert}");
    let path = format!("/alert/{}", alert["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.expect(200), alert);
    stage.receiver.answer(200);
    stage.server.message(&stage.app, "a").await;
    let resolved = client.get_until(&path, |alert| alert["state"] == "resolved").await;
    assert!(resolved["resolvedAt"].is_string(), "{resolved}");
    assert_eq!(client.get("/alert?state=firing").await.expect(200)["data"], json!([]));
    assert_eq!(client.get("/alert?state=resolved").await.expect(200)["data"], json!([resolved]));
}

#[tokio::test]
async fn an_alert_is_acknowledged_with_a_name_and_an_audit_row() {
    let stage = Stage::failing(4).await;
    let client = &stage.server.client;
    stage.server.message(&stage.app, "a").await;
    let path = format!("/alert/{}", stage.alert().await["id"].as_str().unwrap());
    let key = client.post("/api-key", r#"{"name": "ana", "scope": "admin"}"#).await.expect(201);
    let ana = client.with_token(key["key"].as_str().unwrap());
    let noted = ana.post(&format!("{path}/acknowledge"), "").await.expect(200);
    assert_eq!(noted["acknowledgedBy"], "api_key ana");
    assert_eq!(noted["state"], "firing", "it is not over because somebody knows of it");
    // Again, by somebody else: nothing changes.
    assert_eq!(client.post(&format!("{path}/acknowledge"), "").await.expect(200), noted);
    let rows = client.get("/audit?resource_type=alert").await.expect(200);
    let rows: Vec<_> = rows["data"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(rows, ["alert.acknowledge"]);
}

#[tokio::test]
async fn alerts_are_seen_by_their_organization_and_their_application_alone() {
    let stage = Stage::failing(4).await;
    let client = &stage.server.client;
    stage.server.message(&stage.app, "a").await;
    let alert = stage.alert().await;
    let path = format!("/alert/{}", alert["id"].as_str().unwrap());
    let other_app = stage.server.application().await;
    for stranger in [token(OTHER_ORGANIZATION), application_token(&other_app)] {
        let stranger = client.with_token(&stranger);
        assert_eq!(stranger.get("/alert").await.expect(200)["data"], json!([]));
        let missing = stranger.get(&path).await.expect(404);
        assert!(missing["detail"].as_str().unwrap().contains("GET /api/v1/alert"), "{missing}");
        stranger.post(&format!("{path}/acknowledge"), "").await.expect(404);
    }
    let own = client.with_token(&application_token(&stage.app));
    assert_eq!(own.get("/alert").await.expect(200)["data"], json!([alert]));
    assert_eq!(own.get(&path).await.expect(200), alert);
    assert!(own.post(&format!("{path}/acknowledge"), "").await.expect(200)["acknowledgedAt"].is_string());
    client.get("/alert/nonsense").await.expect(404);
}

#[tokio::test]
async fn alerts_are_filtered_and_come_in_pages() {
    let stage = Stage::failing(4).await;
    let client = &stage.server.client;
    for _ in 0..2 {
        stage.server.endpoint(&stage.app, json!({"url": stage.receiver.url("/"), "policy": "hasty"})).await;
    }
    stage.server.message(&stage.app, "a").await;
    let all = client.list_until("/alert?rule=endpoint-failing", 3).await;
    assert_eq!(client.get("/alert?rule=queue-length").await.expect(200)["data"], json!([]));
    let page = client.get("/alert?limit=2").await.expect(200);
    assert_eq!((&page["data"][0], &page["done"]), (&all[0], &json!(false)));
    let next = format!("/alert?limit=2&iterator={}", page["iterator"].as_str().unwrap());
    let rest = client.get(&next).await.expect(200);
    assert_eq!((&rest["data"], &rest["done"]), (&json!([all[2]]), &json!(true)));
    let wrong = client.get("/alert?rule=queue-lenght").await.expect(422);
    assert!(wrong.to_string().contains("queue-length"), "{wrong}");
}

#[tokio::test]
async fn the_rules_in_force_say_where_their_limits_come_from() {
    let server = Running::with(|config| {
        let rules =
            AlertRules::parse("queue-length > 500 for 5m; retry-rate off; endpoint-failing > 5").unwrap();
        config.engine.alert_rules = Arc::new(rules);
    })
    .await;
    let rules = server.client.get("/alert/rule").await.expect(200);
    let rule = |name: &str| {
        let all = rules["data"].as_array().unwrap();
        all.iter().find(|rule| rule["rule"] == name).unwrap_or_else(|| panic!("{name}: {rules}")).clone()
    };
    let queue = rule("queue-length");
    assert_eq!(
        (&queue["threshold"], &queue["resolve"], &queue["for"], &queue["source"]),
        (&json!(500.0), &json!(400.0), &json!("5m"), &json!("configuration"))
    );
    let retries = rule("retry-rate");
    assert_eq!((&retries["enabled"], &retries["threshold"]), (&json!(false), &Value::Null));
    let failures = rule("delivery-failure-rate");
    assert_eq!(
        (&failures["source"], &failures["window"], &failures["metric"]),
        (&json!("built-in"), &json!("5m"), &json!("webhook_delivery_failure_rate"))
    );
    assert_eq!(rule("endpoint-failing")["scopes"], json!(["endpoint"]));
    assert_eq!(rules["intervalSeconds"], 15);
}

/// The next webhook about an alert of this rule.
async fn hears(ear: &mut Receiver, rule: &str) -> Value {
    loop {
        let heard: Value = serde_json::from_slice(&ear.next().await.body).unwrap();
        if heard["data"]["rule"] == rule {
            return heard;
        }
    }
}

#[tokio::test]
async fn organizations_and_the_operator_hear_of_their_alerts_by_webhook() {
    let server = Running::with(|config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.engine.alert_interval = Duration::from_millis(50);
        let rules = "queue-length > 0 for 0s; disk-space < 1000000000000000 for 0s";
        config.engine.alert_rules = Arc::new(AlertRules::parse(rules).unwrap());
    })
    .await;
    let operator = server.client.with_token(&token("org_00000000000SvixManagement00"));
    let (mut ear, mut other) = (Receiver::answering(200, "").await, Receiver::answering(200, "").await);
    let body = |receiver: &Receiver| json!({"url": receiver.url("/"), "filterTypes": ["alert.firing", "alert.resolved"]});
    server.client.post("/operational-webhook/endpoint", body(&ear).to_string()).await.expect(201);
    operator.post("/operational-webhook/endpoint", body(&other).to_string()).await.expect(201);

    let app = server.application().await;
    let receiver = Receiver::answering(200, "").await;
    let held = json!({"url": receiver.url("/"), "disabled": true, "whenDisabled": "hold"});
    let endpoint = server.endpoint(&app, held).await["id"].as_str().unwrap().to_owned();
    server.message(&app, "a").await;
    let fires = hears(&mut ear, "queue-length").await;
    assert_eq!((&fires["type"], &fires["data"]["scope"]), (&json!("alert.firing"), &json!("organization")));
    // What chat services read.
    assert!(
        fires["text"].as_str().unwrap().starts_with("Alert: Many deliveries are waiting, 1 (limit: 0). ")
    );
    assert_eq!(fires["data"]["text"], Value::Null);
    let alert = server.client.list_until("/alert?state=firing&rule=queue-length", 1).await.remove(0);
    assert_eq!((&alert["id"], &alert["scope"]), (&fires["data"]["alertId"], &json!("organization")));
    let path = format!("/app/{app}/endpoint/{endpoint}");
    server.client.patch(&path, r#"{"disabled": false}"#).await.expect(200);
    let resolved = hears(&mut ear, "queue-length").await;
    assert_eq!((&resolved["type"], &resolved["data"]["alertId"]), (&json!("alert.resolved"), &alert["id"]));

    // The whole server's are the operator's alone.
    let disk = operator.list_until("/alert?state=firing&rule=disk-space", 1).await.remove(0);
    assert_eq!((&disk["scope"], &disk["severity"]), (&json!("server"), &json!("critical")));
    server.client.get(&format!("/alert/{}", disk["id"].as_str().unwrap())).await.expect(404);
    let told = hears(&mut other, "queue-length").await;
    assert_eq!(told["data"]["scope"], "server");
}
