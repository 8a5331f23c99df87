//! Pending deliveries, settled ones, and the dead letter.

use crate::credentials::tokens::application_token;
use crate::requests::pages::walk;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use serde_json::{Value, json};

/// A policy with one attempt after another, soon.
pub(crate) async fn policy(server: &Running, name: &str, more: Value) {
    let mut policy = json!({
        "name": name,
        "schedule": {"type": "list", "delays": ["50ms"]},
        "jitter": {"type": "none"},
        "success": ["200-299"],
    });
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.client.post("/policy", policy.to_string()).await.expect(201);
}

pub(crate) async fn list(server: &Running, path: &str) -> Vec<Value> {
    server.client.get(path).await.expect(200)["data"].as_array().unwrap().clone()
}

/// The items of a list once it has this many: an attempt is recorded after its answer.
pub(crate) async fn until(server: &Running, path: &str, count: usize) -> Vec<Value> {
    server.client.list_until(path, count).await
}

fn texts<'a>(items: &'a [Value], field: &str) -> Vec<&'a str> {
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

pub(crate) fn id(item: &Value) -> String {
    item["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn d11_every_reason_is_recorded_with_its_attempts() {
    let server = Running::delivering().await;
    policy(&server, "brisk", json!({})).await;
    policy(
        &server,
        "short",
        json!({"schedule": {"type": "list", "delays": ["1h"]}, "limit": {"stopAfter": "1m"}}),
    )
    .await;
    let app = server.application().await;
    let cases = [
        ("exhausted", "brisk", 503, 2, "Max retries exhausted"),
        ("rejected", "public-api", 404, 1, "Non-retriable error"),
        ("endpoint_gone", "standard", 410, 1, "Endpoint gone"),
        ("stop_date", "short", 500, 1, "Stop date reached"),
    ];
    for (reason, policy, status, _, _) in cases {
        let receiver = Receiver::answering(status, "no").await;
        let endpoint = json!({"url": receiver.url("/"), "policy": policy, "eventTypes": [reason]});
        server.endpoint(&app, endpoint).await;
        server.message(&app, reason).await;
    }
    let dead = until(&server, &format!("/app/{app}/delivery?state=dead"), cases.len()).await;
    for (reason, _, status, attempts, text) in cases {
        let one = dead.iter().find(|one| one["reason"] == reason).unwrap();
        assert_eq!((&one["state"], &one["reasonText"]), (&json!("dead"), &json!(text)));
        assert_eq!((&one["statusCode"], &one["attemptCount"]), (&json!(status), &json!(attempts)));
        assert_eq!(one["retryCount"], attempts - 1);
        assert_eq!((&one["nextAttempt"], &one["nextRetryAt"]), (&Value::Null, &Value::Null));
        assert!(one["error"].as_str().unwrap().starts_with(&format!("HTTP {status}")), "{one}");
        assert!(one["responseDurationMs"].is_u64() && one["settledAt"].is_string(), "{one}");
        assert!(one.get("attempts").is_none());
        let shown = server.client.get(&format!("/app/{app}/delivery/{}", id(one))).await.expect(200);
        assert_eq!(shown["attempts"].as_array().unwrap().len(), attempts);
        assert_eq!(shown["attempts"][0]["response"], "no");
        let path = format!("/app/{app}/delivery/{}/attempt", id(one));
        assert_eq!(json!(list(&server, &path).await), shown["attempts"]);
        let explanation = shown["explanation"].as_str().unwrap();
        assert!(explanation.starts_with(text) && explanation.contains(&format!("HTTP {status}")), "{shown}");
    }
}

#[tokio::test]
async fn a_target_that_may_not_be_reached_ends_in_the_dead_letter_and_the_letter_survives() {
    let server = Running::delivering().await;
    policy(&server, "brisk", json!({})).await;
    let (app, receiver) = (server.application().await, Receiver::answering(400, "").await);
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "brisk"})).await;
    server.message(&app, "a").await;
    let path = format!("/app/{app}/delivery?state=dead");
    let before = until(&server, &path, 1).await;
    // The next start does not allow the address any more.
    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!(list(&server, &path).await, before);
    server.message(&app, "a").await;
    let dead = until(&server, &path, 2).await;
    assert_eq!(texts(&dead, "reason"), ["target_forbidden", "exhausted"]);
    assert_eq!((&dead[0]["statusCode"], &dead[0]["attemptCount"]), (&Value::Null, &json!(2)));
}

#[tokio::test]
async fn b3_b6_pending_and_history_are_lists_of_their_own() {
    let server = Running::delivering().await;
    let (app, receiver) = (server.application().await, Receiver::answering(200, "").await);
    let failing = Receiver::answering(500, "").await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let slow =
        server.endpoint(&app, json!({"url": failing.url("/"), "uid": "slow", "policy": "persistent"})).await;
    let message = server.message(&app, "a").await;
    let path = |state: &str| format!("/app/{app}/delivery?state={state}");
    let delivered = until(&server, &path("history"), 1).await;
    assert_eq!((&delivered[0]["state"], &delivered[0]["reason"]), (&json!("delivered"), &json!("delivered")));
    assert_eq!(list(&server, &path("delivered")).await, delivered);
    assert_eq!(list(&server, &path("dead")).await, Vec::<Value>::new());
    // The first attempt has failed, the next one is planned.
    let is_retry = |one: &Value| one["attemptCount"] == 1 && one["reason"] == "retry";
    let pending = server.client.get_until(&path("pending"), |page| is_retry(&page["data"][0])).await;
    let one = &pending["data"][0];
    assert_eq!((&one["endpointId"], &one["msgId"]), (&slow["id"], &json!(message)));
    assert_eq!(
        (&one["state"], &one["retryCount"], &one["statusCode"]),
        (&json!("pending"), &json!(1), &json!(500))
    );
    assert!(one["nextAttempt"].is_string() && one["nextAttempt"] == one["nextRetryAt"], "{one}");
    let moment = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert_eq!(moment(&one["stopDate"]) - moment(&one["createdAt"]), 10_080 * 60_000);
    let sent = server.client.get(&format!("/app/{app}/msg/{message}")).await.expect(200);
    assert_eq!(one["createdAt"], sent["timestamp"]);
    // All of them, and by filters.
    assert_eq!(list(&server, &format!("/app/{app}/delivery")).await.len(), 2);
    let of = async |filter: &str| list(&server, &format!("/app/{app}/delivery?{filter}")).await.len();
    assert_eq!(of("endpoint=slow").await, 1);
    assert_eq!(of("state=pending&endpoint=slow&eventType=a").await, 1);
    assert_eq!(of("state=pending&eventType=b").await, 0);
    assert_eq!(of("eventType=a&after=2020-01-01T00:00:00Z").await, 2);
    assert_eq!(of("before=2020-01-01T00:00:00Z").await, 0);
    for (wrong, field) in [
        ("state=lost", "state"),
        ("reason=because", "reason"),
        ("before=yesterday", "before"),
        ("eventType=%20", "eventType"),
        ("iterator=x", "iterator"),
        ("limit=0", "limit"),
    ] {
        let refused = server.client.get(&format!("/app/{app}/delivery?{wrong}")).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["query", field]), "{refused}");
    }
    server.client.get(&format!("/app/{app}/delivery?endpoint=nobody")).await.expect(404);
    let page = server.client.get(&path("pending")).await.expect(200);
    let iterator = page["iterator"].as_str().unwrap();
    let refused = server.client.get(&format!("{}&iterator={iterator}", path("history"))).await.expect(422);
    assert!(refused["detail"][0]["msg"].as_str().unwrap().contains("another `state`"), "{refused}");
}

#[tokio::test]
async fn every_list_of_deliveries_can_be_walked_both_ways() {
    let server = Running::delivering().await;
    let (app, receiver) = (server.application().await, Receiver::answering(404, "").await);
    let ok = Receiver::answering(200, "").await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "public-api"})).await;
    server.endpoint(&app, json!({"url": ok.url("/")})).await;
    // Nothing is sent to it, and its deliveries are pending in their own lane.
    for number in 0..2 {
        let url = format!("https://unreachable.invalid/{number}");
        server.endpoint(&app, json!({"url": url, "policy": "persistent"})).await;
    }
    for _ in 0..5 {
        server.message(&app, "a").await;
    }
    until(&server, &format!("/app/{app}/delivery?state=history"), 10).await;
    for (state, count) in [("dead", 5), ("delivered", 5), ("history", 10)] {
        for order in ["", "&order=ascending"] {
            let path = format!("/app/{app}/delivery?state={state}{order}");
            let whole = until(&server, &path, count).await;
            walk(&server, &path, &whole.iter().map(id).collect::<Vec<_>>()).await;
        }
    }
    let whole = until(&server, &format!("/app/{app}/delivery"), 20).await;
    walk(&server, &format!("/app/{app}/delivery"), &whole.iter().map(id).collect::<Vec<_>>()).await;
    let dead = until(&server, "/dead-letter", 5).await;
    walk(&server, "/dead-letter", &dead.iter().map(id).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_delivery_of_another_tenant_is_not_there() {
    let server = Running::delivering().await;
    let (app, other) = (server.application().await, server.application().await);
    let receiver = Receiver::answering(404, "").await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "public-api"})).await;
    server.message(&app, "a").await;
    let dead = until(&server, "/dead-letter", 1).await;
    assert_eq!(dead[0]["appId"], json!(app));
    let delivery = id(&dead[0]);
    let stranger = server.client.with_token(&token("org_0000000000000000000stranger"));
    let customer = server.client.with_token(&application_token(&app));
    let neighbour = server.client.with_token(&application_token(&other));
    for path in ["", "/attempt"] {
        let of = |app: &str| format!("/app/{app}/delivery/{delivery}{path}");
        customer.get(&of(&app)).await.expect(200);
        server.client.get(&of(&other)).await.expect(404);
        stranger.get(&of(&app)).await.expect(404);
        neighbour.get(&of(&app)).await.expect(404);
        neighbour.get(&of(&other)).await.expect(404);
    }
    server.client.delete(&format!("/app/{other}/delivery/{delivery}")).await.expect(404);
    neighbour.delete(&format!("/app/{other}/delivery/{delivery}")).await.expect(404);
    neighbour.post(&format!("/app/{app}/delivery/discard"), "{}").await.expect(404);
    server.client.get(&format!("/app/{app}/delivery/dlv_00000000000")).await.expect(404);
    server.client.get(&format!("/app/{app}/delivery/nothing")).await.expect(404);
    // Nor is it on their lists, nor can it be asked for by its endpoint.
    assert_eq!(list(&server, &format!("/app/{other}/delivery")).await, Vec::<Value>::new());
    let foreign = format!("/app/{other}/delivery?endpoint={}", endpoint["id"].as_str().unwrap());
    server.client.get(&foreign).await.expect(404);
    assert_eq!(stranger.get("/dead-letter").await.expect(200)["data"], json!([]));
    customer.get("/dead-letter").await.expect(403);
    assert_eq!(list(&server, &format!("/dead-letter?app={app}")).await, dead);
    assert_eq!(list(&server, &format!("/dead-letter?app={other}")).await, Vec::<Value>::new());
    let endpoint = endpoint["id"].as_str().unwrap();
    let filter = format!("/dead-letter?endpoint={endpoint}&reason=rejected&eventType=a");
    assert_eq!(list(&server, &filter).await, dead);
    assert_eq!(list(&server, "/dead-letter?reason=exhausted").await, Vec::<Value>::new());
    assert_eq!(list(&server, "/dead-letter?eventType=b").await, Vec::<Value>::new());
    stranger.get(&format!("/dead-letter?endpoint={endpoint}")).await.expect(404);
    stranger.get(&format!("/dead-letter?app={app}")).await.expect(404);
    server.client.post(&format!("/app/{other}/delivery/discard"), "{}").await.expect(200);
    assert_eq!(list(&server, "/dead-letter").await, dead);
}
