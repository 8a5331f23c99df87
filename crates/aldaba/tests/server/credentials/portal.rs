//! Portal tokens: what they may do, and how they end.

use crate::credentials::tokens::application_token;
use crate::support::client::Client;
use crate::support::running::Running;
use aldaba_engine::{Clock, SystemClock};
use serde_json::{Value, json};

async fn access(server: &Running, app: &str, body: &Value) -> Value {
    server.client.post(&format!("/auth/app-portal-access/{app}"), body.to_string()).await.expect(200)
}

async fn portal(server: &Running, app: &str, body: &Value) -> Client {
    server.client.with_token(access(server, app, body).await["token"].as_str().unwrap())
}

#[tokio::test]
async fn a_portal_token_leads_into_its_application() {
    let server = Running::start().await;
    let (mine, other) = (server.application().await, server.application().await);
    let given = access(&server, &mine, &json!({"featureFlags": ["beta"], "sessionId": "user_1"})).await;
    let token = given["token"].as_str().unwrap();
    let url = given["url"].as_str().unwrap();
    assert_eq!(url, format!("http://aldaba.test/portal#key={token}"));
    let client = server.client.with_token(token);
    client.get(&format!("/app/{mine}")).await.expect(200);
    client.get(&format!("/app/{other}")).await.expect(404);
    client.get("/app").await.expect(403);
    client.post(&format!("/app/{mine}/msg"), r#"{"eventType":"a","payload":{}}"#).await.expect(403);
    client.post(&format!("/auth/app-portal-access/{mine}"), "{}").await.expect(403);
    let whoami = client.get("/auth/whoami").await.expect(200);
    assert_eq!((&whoami["appId"], &whoami["sessionId"]), (&json!(mine), &json!("user_1")));
    assert_eq!((&whoami["featureFlags"], &whoami["scope"]), (&json!(["beta"]), &json!(null)));
    let ends: jiff::Timestamp = whoami["expiresAt"].as_str().unwrap().parse().unwrap();
    let hours = (ends.as_millisecond() - SystemClock::new().now().millis()) / 3_600_000;
    assert!((167..=168).contains(&hours), "{hours}");
    let old = server.client.post(&format!("/auth/dashboard-access/{mine}"), "").await.expect(200);
    server.client.with_token(old["token"].as_str().unwrap()).get(&format!("/app/{mine}")).await.expect(200);
}

#[tokio::test]
async fn the_link_follows_the_setting() {
    let server =
        Running::with(|config| config.public_url = Some("https://hooks.example.com/in/".into())).await;
    let app = server.application().await;
    let url = access(&server, &app, &json!({})).await["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://hooks.example.com/in/portal#key=ey"), "{url}");
}

#[tokio::test]
async fn capabilities_are_enforced() {
    let server = Running::start().await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({})).await;
    let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    let since = r#"{"since":"2026-01-01T00:00:00Z","dryRun":true}"#;
    let tries = async |client: &Client| {
        let mut statuses = vec![
            client.get(&path).await.status,
            client.get(&format!("{path}/secret")).await.status,
            client.post(&format!("{path}/secret/rotate"), "{}").await.status,
            client.post(&format!("{path}/recover"), since).await.status,
            client.patch(&path, r#"{"description":"x"}"#).await.status,
        ];
        statuses.retain(|status| *status != 403);
        statuses.len()
    };
    let with = |names: &[&str]| json!({ "capabilities": names });
    for (body, allowed) in [
        (json!({}), 5),
        (json!({"readOnly": true}), 1),
        (json!({"readOnly": false}), 5),
        (with(&["ViewBase"]), 1),
        (with(&["ViewBase", "ViewEndpointSecret"]), 2),
        (with(&["ViewBase", "ManageEndpointSecret"]), 3),
        (with(&["ViewBase", "CreateAttempts"]), 2),
        (with(&["ViewBase", "ManageEndpoint"]), 4),
        (with(&["ViewBase", "ManageTransformations"]), 1),
    ] {
        let client = portal(&server, &app, &body).await;
        assert_eq!(tries(&client).await, allowed, "{body}");
    }
    let reader = portal(&server, &app, &json!({"readOnly": true})).await;
    let refused = reader.delete(&path).await.expect(403);
    assert_eq!(refused["detail"], "The token lacks the capability `ManageEndpoint`");
}

#[tokio::test]
async fn access_that_cannot_be_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    for (body, place) in [
        (json!({"expiry": 3599}), "expiry"),
        (json!({"expiry": 604_801}), "expiry"),
        (json!({"expiry": "1h"}), "expiry"),
        (json!({"capabilities": ["ViewEndpointSecret"]}), "capabilities"),
        (json!({"capabilities": ["ViewBase", "Root"]}), "capabilities"),
        (json!({"capabilities": []}), "capabilities"),
        (json!({"readOnly": "yes"}), "readOnly"),
        (json!({"readOnly": true, "capabilities": ["ViewBase"]}), "readOnly"),
        (json!({"sessionId": ""}), "sessionId"),
        (json!({"sessionId": "a b"}), "sessionId"),
        (json!({"sessionId": "x".repeat(65)}), "sessionId"),
        (json!({"featureFlags": ["a b"]}), "featureFlags"),
        (json!({"featureFlags": vec!["a"; 26]}), "featureFlags"),
    ] {
        let path = format!("/auth/app-portal-access/{app}");
        let problems = server.client.post(&path, body.to_string()).await.expect(422);
        assert_eq!(problems["detail"][0]["loc"][1], place, "{body}");
    }
    let nulls = json!({"featureFlags": [], "capabilities": null, "readOnly": null, "expiry": null, "sessionId": null,
        "application": null});
    access(&server, &app, &nulls).await;
    server.client.post("/auth/app-portal-access/nowhere", "{}").await.expect(404);
    server.client.post("/auth/dashboard-access/nowhere", "").await.expect(404);
    server.client.post("/auth/app/nowhere/expire-all", "{}").await.expect(404);
    for body in
        [r#"{"expiry":-1}"#, r#"{"expiry":259201}"#, r#"{"sessionIds":["a b"]}"#, r#"{"sessionIds":"a"}"#]
    {
        server.client.post(&format!("/auth/app/{app}/expire-all"), body).await.expect(422);
    }
}

#[tokio::test]
async fn an_application_is_made_by_the_way_if_it_is_not_there() {
    let server = Running::start().await;
    let post = async |body: Value| server.client.post("/auth/app-portal-access/shop", body.to_string()).await;
    let problem = post(json!({"application": {"name": "Shop"}})).await.expect(422);
    assert_eq!(problem["detail"][0]["type"], "application_uid_missing");
    assert_eq!(problem["detail"][0]["loc"], json!(["body", "application", "uid"]));
    let problem = post(json!({"application": {"name": "Shop", "uid": "other"}})).await.expect(422);
    assert_eq!(problem["detail"][0]["type"], "application_uid_mismatch");
    let problem = post(json!({"application": {"uid": "shop"}})).await.expect(422);
    assert_eq!(problem["detail"][0]["loc"], json!(["body", "application", "name"]));
    server.client.get("/app/shop").await.expect(404);
    post(json!({"application": {"name": "Shop", "uid": "shop"}})).await.expect(200);
    assert_eq!(server.client.get("/app/shop").await.expect(200)["name"], "Shop");
    // It is there: what the body says of it counts no longer.
    post(json!({"application": {"name": "Another", "uid": "shop"}})).await.expect(200);
    assert_eq!(server.client.get("/app/shop").await.expect(200)["name"], "Shop");
}

#[tokio::test]
async fn a_logout_survives_a_restart() {
    let server = Running::start().await;
    let app = server.application().await;
    let given = access(&server, &app, &json!({})).await;
    let token = given["token"].as_str().unwrap().to_owned();
    let other = portal(&server, &app, &json!({"sessionId": "other"})).await;
    let client = server.client.with_token(&token);
    client.post("/auth/logout", "").await.expect(204);
    let refused = client.get(&format!("/app/{app}")).await.expect(401);
    assert_eq!(refused["code"], "authentication_failed");
    client.post("/auth/logout", "").await.expect(401);
    other.get(&format!("/app/{app}")).await.expect(200);
    server.client.get("/app").await.expect(200);
    let other = other.authorization.clone();

    let server = Running::within(server.stop().await, |_| {}).await;
    server.client.with_token(&token).get(&format!("/app/{app}")).await.expect(401);
    let other = Client { address: server.address, authorization: other };
    other.get(&format!("/app/{app}")).await.expect(200);
}

#[tokio::test]
async fn all_portal_tokens_of_an_application_can_be_ended() {
    let server = Running::start().await;
    let (mine, other) = (server.application().await, server.application().await);
    let path = format!("/app/{mine}");
    let (ana, eva) = (
        portal(&server, &mine, &json!({"sessionId": "ana"})).await,
        portal(&server, &mine, &json!({"sessionId": "eva"})).await,
    );
    let signed_elsewhere = server.client.with_token(&application_token(&mine));
    let stranger = portal(&server, &other, &json!({"sessionId": "ana"})).await;
    let expire = async |body: &str| {
        server.client.post(&format!("/auth/app/{mine}/expire-all"), body.to_owned()).await.expect(204)
    };
    expire(r#"{"sessionIds":["ana"]}"#).await;
    ana.get(&path).await.expect(401);
    eva.get(&path).await.expect(200);
    signed_elsewhere.get(&path).await.expect(200);
    let again = portal(&server, &mine, &json!({"sessionId": "ana"})).await;
    again.get(&path).await.expect(200);
    expire(r#"{"expiry":3600}"#).await;
    eva.get(&path).await.expect(200);
    expire("").await;
    for ended in [&ana, &eva, &again, &signed_elsewhere] {
        ended.get(&path).await.expect(401);
    }
    stranger.get(&format!("/app/{other}")).await.expect(200);
    let fresh = portal(&server, &mine, &json!({})).await;
    fresh.get(&path).await.expect(200);
    let (eva, fresh) = (eva.authorization.clone(), fresh.authorization.clone());

    let server = Running::within(server.stop().await, |_| {}).await;
    let address = server.address;
    Client { address, authorization: eva }.get(&path).await.expect(401);
    Client { address, authorization: fresh }.get(&path).await.expect(200);
}

#[tokio::test]
async fn all_portal_tokens_can_be_ended_however_many_sessions_have_been() {
    let server = Running::start().await;
    let app = server.application().await;
    let ana = portal(&server, &app, &json!({})).await;
    let path = format!("/auth/app/{app}/expire-all");
    for round in 0..10 {
        let sessions: Vec<_> = (0..1000).map(|n| format!("s{round}-{n}")).collect();
        server.client.post(&path, json!({"sessionIds": sessions}).to_string()).await.expect(204);
    }
    let refused = server.client.post(&path, r#"{"sessionIds": ["one"]}"#).await;
    assert_eq!(refused.expect(429)["code"], "too_many_revocations");
    assert!(refused.headers.contains_key("retry-after"));
    // What the refusal recommends.
    ana.get(&format!("/app/{app}")).await.expect(200);
    server.client.post(&path, r#"{"expiry": 60}"#).await.expect(204);
    server.client.post(&path, "{}").await.expect(204);
    ana.get(&format!("/app/{app}")).await.expect(401);
    server.client.post(&path, r#"{"sessionIds": ["one"]}"#).await.expect(204);
    let server = Running::within(server.stop().await, |_| {}).await;
    let ana = crate::support::client::Client { address: server.address, ..ana };
    ana.get(&format!("/app/{app}")).await.expect(401);
}

#[tokio::test]
async fn credentials_of_an_application_end_with_it() {
    let server = Running::start().await;
    let (app, other) = (server.application().await, server.application().await);
    server.event_type("paid").await;
    let ana = portal(&server, &app, &json!({})).await;
    let signed = server.client.with_token(&application_token(&app));
    let mut keys = Vec::new();
    for scope in ["admin", "read", "send"] {
        let body = json!({"name": scope, "scope": scope, "appId": app}).to_string();
        let key = server.client.post("/api-key", body).await.expect(201);
        keys.push(server.client.with_token(key["key"].as_str().unwrap()));
    }
    let of_other = json!({"name": "k", "scope": "read", "appId": other}).to_string();
    server.client.post("/api-key", of_other).await.expect(201);
    ana.get("/event-type").await.expect(200);
    for caller in keys.iter().chain([&ana, &signed]) {
        caller.get("/auth/whoami").await.expect(200);
    }
    server.client.delete(&format!("/app/{app}")).await.expect(204);
    let gone = async |callers: &[Client]| {
        for caller in callers {
            for path in ["/event-type".to_owned(), "/auth/whoami".to_owned(), format!("/app/{app}")] {
                let status = caller.get(&path).await.status.as_u16();
                assert!([401, 404].contains(&status), "{path}: {status}");
            }
        }
    };
    let callers = [keys, vec![ana, signed]].concat();
    gone(&callers).await;
    let kept = server.client.get("/api-key").await.expect(200);
    assert_eq!(kept["data"].as_array().unwrap().len(), 1, "{kept}");
    let server = Running::within(server.stop().await, |_| {}).await;
    let moved = |caller: &Client| Client { address: server.address, ..caller.clone() };
    gone(&callers.iter().map(moved).collect::<Vec<_>>()).await;
    let never = server.client.with_token(&application_token("app_23rb8YdGqMT0qIzpgGwdXfHirMu"));
    never.get("/event-type").await.expect(404);
}

#[tokio::test]
async fn an_application_that_is_given_along_is_checked_where_it_is_there_already() {
    let server = Running::start().await;
    server.client.post("/app", r#"{"name": "a", "uid": "a"}"#).await.expect(201);
    for wrong in [json!(5), json!("a"), json!([]), json!({"name": 7, "uid": "a"}), json!({"uid": "a"})] {
        let body = json!({"application": wrong}).to_string();
        for path in ["/auth/app-portal-access/a", "/auth/app-portal-access/b"] {
            server.client.post(path, body.clone()).await.expect(422);
        }
    }
    for right in [json!(null), json!({"name": "other", "uid": "a"})] {
        server
            .client
            .post("/auth/app-portal-access/a", json!({"application": right}).to_string())
            .await
            .expect(200);
    }
    assert_eq!(server.client.get("/app/a").await.expect(200)["name"], "a");
}
