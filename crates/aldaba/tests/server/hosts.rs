use crate::client::Client;
use crate::receiver::Receiver;
use crate::running::{Running, token};
use crate::tokens::{OTHER_ORGANIZATION, application_token};
use serde_json::{Value, json};
use std::time::Duration;

/// Holds a host back with the first failure, for a minute.
fn wary() -> String {
    json!({
        "name": "wary",
        "schedule": {"type": "list", "delays": ["60s", "60s"]},
        "jitter": {"type": "none"},
        "gate": {"type": "delayOver", "threshold": "1s", "longest": "1h"},
    })
    .to_string()
}

async fn held(server: &Running) -> Value {
    for _ in 0..1000 {
        let list = server.client.get("/host").await.expect(200);
        if list["data"].as_array().unwrap().len() == 1 {
            return list["data"][0].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing is held back");
}

fn encoded(origin: &str) -> String {
    origin.replace(':', "%3A").replace('/', "%2F")
}

fn allow(config: &mut aldaba::config::Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
}

#[tokio::test]
async fn a_host_that_is_held_back_is_listed_survives_a_restart_and_is_released_by_hand() {
    let mut server = Running::delivering().await;
    let mut receiver = Receiver::answering(503, "no").await;
    server.client.post("/policy", wary()).await.expect(201);
    let app = server.application().await;
    let other = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/a"), "policy": "wary"})).await;
    server.endpoint(&other, json!({"url": receiver.url("/other"), "policy": "wary"})).await;
    assert_eq!(
        server.client.get("/host").await.expect(200),
        json!({"data": [], "iterator": null, "done": true})
    );
    server.message(&app, "a").await;
    assert_eq!(receiver.next().await.path, "/a");
    let gate = held(&server).await;
    let origin = format!("http://{}", receiver.address);
    assert_eq!((&gate["origin"], &gate["scope"]), (&json!(origin), &json!("application")));
    assert_eq!(
        (&gate["applicationId"], &gate["why"]),
        (&json!(app), &json!("HTTP 503: Service Unavailable"))
    );
    assert_eq!((&gate["failures"], &gate["probing"]), (&json!(1), &json!(false)));
    assert!(gate["until"].as_str().unwrap() > gate["since"].as_str().unwrap());

    // What comes now waits behind it, and another application's path has no part in it.
    receiver.answer(200);
    server.message(&app, "a").await;
    receiver.stays_quiet(Duration::from_millis(300)).await;
    server.message(&other, "a").await;
    assert_eq!(receiver.next().await.path, "/other");
    let gate = held(&server).await;
    assert_eq!((&gate["lanes"], &gate["deliveries"]), (&json!(1), &json!(2)));

    let folder = server.stop().await;
    server = Running::within(folder, allow).await;
    let kept = held(&server).await;
    for field in ["origin", "applicationId", "why", "since", "until", "failures"] {
        assert_eq!(kept[field], gate[field], "{field}");
    }
    receiver.stays_quiet(Duration::from_millis(300)).await;

    let theirs = server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]));
    let path = format!("/host/{}/release", encoded(&origin));
    theirs.post(&path, "").await.expect(404);
    let released = server.client.post(&path, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "application", "applicationId": app}]));
    assert_eq!(receiver.next().await.path, "/a");
    assert_eq!(server.client.get("/host").await.expect(200)["data"], json!([]));
    server.client.post(&path, "").await.expect(404);
    let folder = server.stop().await;
    server = Running::within(folder, allow).await;
    assert_eq!(server.client.get("/host").await.expect(200)["data"], json!([]), "that survives too");
    server.client.post("/host/nonsense/release", "").await.expect(404);
}

/// A server whose application has sent to a host where nobody listens, and the host is held back.
struct Unreachable {
    server: Running,
    app: String,
    url: String,
    release: String,
}

impl Unreachable {
    async fn new() -> Self {
        let server = Running::delivering().await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/");
        server.client.post("/policy", wary()).await.expect(201);
        let app = server.application().await;
        server.endpoint(&app, json!({"url": url, "policy": "wary"})).await;
        server.message(&app, "a").await;
        held(&server).await;
        let release = format!("/host/{}/release", encoded(url.trim_end_matches('/')));
        Self { server, app, url, release }
    }

    /// Another organization, with an endpoint there.
    async fn neighbour(&self) -> (Client, String, String) {
        let theirs = self.server.client.with_token(&token(OTHER_ORGANIZATION));
        let made = theirs.post("/app", r#"{"name": "theirs"}"#).await.expect(201);
        let app = made["id"].as_str().unwrap().to_owned();
        let endpoints = format!("/app/{app}/endpoint");
        let made = theirs.post(&endpoints, json!({"url": self.url}).to_string()).await.expect(201);
        let endpoint = format!("{endpoints}/{}", made["id"].as_str().unwrap());
        (theirs, app, endpoint)
    }
}

/// What a caller is told to wait behind the only gate, once it is so much.
async fn waits_behind(caller: &Client, lanes: usize, deliveries: usize) {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = caller.get("/host").await.expect(200)["data"][0].clone();
        if (&last["lanes"], &last["deliveries"]) == (&json!(lanes), &json!(deliveries)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not {lanes} and {deliveries}: {last}");
}

#[tokio::test]
async fn the_gate_of_a_host_itself_concerns_whoever_has_an_endpoint_there() {
    let host = Unreachable::new().await;
    let gate = held(&host.server).await;
    assert_eq!((&gate["scope"], &gate["applicationId"]), (&json!("host"), &Value::Null));
    assert!(!gate["why"].as_str().unwrap().is_empty());
    let theirs = host.server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]));
    host.neighbour().await;
    assert_eq!(theirs.get("/host").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_waits_behind_a_shared_gate_is_counted_for_whoever_asks() {
    let host = Unreachable::new().await;
    let server = &host.server;
    let (theirs, app, _) = host.neighbour().await;
    let other = server.application().await;
    server.endpoint(&other, json!({"url": host.url, "policy": "wary"})).await;
    let [of_app, of_other] = [&host.app, &other].map(|app| server.client.with_token(&application_token(app)));
    server.message(&host.app, "a").await;
    waits_behind(&server.client, 1, 2).await;
    waits_behind(&of_app, 1, 2).await;
    waits_behind(&of_other, 0, 0).await;
    waits_behind(&theirs, 0, 0).await;
    server.message(&other, "a").await;
    let message = json!({"eventType": "a", "payload": {}}).to_string();
    theirs.post(&format!("/app/{app}/msg"), message).await.expect(202);
    waits_behind(&theirs, 1, 1).await;
    waits_behind(&of_other, 1, 1).await;
    waits_behind(&of_app, 1, 2).await;
    waits_behind(&server.client, 2, 3).await;
}

#[tokio::test]
async fn a_whole_host_is_opened_by_an_organization_that_is_alone_there_and_nobody_else() {
    let host = Unreachable::new().await;
    let client = &host.server.client;
    let of_app = client.with_token(&application_token(&host.app));
    let refused = of_app.post(&host.release, "").await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("an organization's token"), "{refused}");
    let (theirs, _, endpoint) = host.neighbour().await;
    for caller in [client, &theirs] {
        let refused = caller.post(&host.release, "").await.expect(403);
        assert!(refused["detail"].as_str().unwrap().contains("other organizations"), "{refused}");
    }
    held(&host.server).await;
    theirs.delete(&endpoint).await.expect(204);
    let released = client.post(&host.release, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "host", "applicationId": null}]));
}

#[tokio::test]
async fn an_application_opens_the_gates_of_its_own_and_no_others() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(503, "no").await;
    server.client.post("/policy", wary()).await.expect(201);
    let [app, other] = [server.application().await, server.application().await];
    for app in [&app, &other] {
        server.endpoint(app, json!({"url": receiver.url("/"), "policy": "wary"})).await;
    }
    server.message(&app, "a").await;
    receiver.next().await;
    held(&server).await;
    let release = format!("/host/{}/release", encoded(&format!("http://{}", receiver.address)));
    server.client.with_token(&application_token(&other)).post(&release, "").await.expect(404);
    let released = server.client.with_token(&application_token(&app)).post(&release, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "application", "applicationId": app}]));
}
