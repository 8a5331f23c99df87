use crate::credentials::tokens::{OTHER_ORGANIZATION, application_token};
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpSocket;

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
    held_for(&server.client).await
}

async fn held_for(caller: &Client) -> Value {
    caller.list_until("/host", 1).await.remove(0)
}

fn encoded(origin: &str) -> String {
    origin.replace(':', "%3A").replace('/', "%2F")
}

fn allow(config: &mut aldaba::config::Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
}

#[tokio::test]
async fn a_held_host_is_listed_survives_a_restart_and_can_be_released() {
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

    // New deliveries wait behind it; those of another application are not counted.
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
    let refused = server.client.post("/host/nonsense/release", "").await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["path", "origin"]));
    let missing = server.client.post("/host/https%3A%2F%2Fexample.com/release", "").await.expect(404);
    assert!(missing["detail"].as_str().unwrap().contains("GET /api/v1/host"), "{missing}");
}

/// A port where connections are refused, for as long as the socket is there.
fn closed_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// A server whose application has sent to a closed port, and the host is held.
struct Unreachable {
    server: Running,
    /// Reserves the port. Connections are refused until it listens.
    socket: Option<TcpSocket>,
    app: String,
    url: String,
    release: String,
}

impl Unreachable {
    /// `policy`: how the application's endpoint, which names it `wary`, holds the host.
    async fn new(policy: String) -> Self {
        let server = Running::delivering().await;
        let (socket, port) = closed_port();
        let url = format!("http://127.0.0.1:{port}/");
        server.client.post("/policy", policy).await.expect(201);
        let app = server.application().await;
        server.endpoint(&app, json!({"url": url, "policy": "wary"})).await;
        server.message(&app, "a").await;
        held(&server).await;
        let release = format!("/host/{}/release", encoded(url.trim_end_matches('/')));
        Self { server, socket: Some(socket), app, url, release }
    }

    /// Another organization, with an endpoint there.
    async fn neighbour(&self) -> (Client, String) {
        let theirs = self.server.client.with_token(&token(OTHER_ORGANIZATION));
        let made = theirs.post("/app", r#"{"name": "theirs"}"#).await.expect(201);
        let app = made["id"].as_str().unwrap().to_owned();
        let endpoint = json!({"url": self.url, "policy": "persistent"}).to_string();
        theirs.post(&format!("/app/{app}/endpoint"), endpoint).await.expect(201);
        (theirs, app)
    }

    /// Opens the port.
    fn comes_back(&mut self) -> Receiver {
        let socket = self.socket.take().expect("it comes back once");
        Receiver::on(socket.listen(64).unwrap(), "", |_| 200)
    }
}

/// Waits until a caller sees these numbers of lanes and deliveries behind the only gate.
async fn waits_behind(caller: &Client, lanes: usize, deliveries: usize) {
    let is_reached = |host: &Value| host["lanes"] == lanes && host["deliveries"] == deliveries;
    caller.get_until("/host", |list| is_reached(&list["data"][0])).await;
}

#[tokio::test]
async fn the_gate_of_a_host_itself_concerns_its_organization_and_applications_that_send_there() {
    let host = Unreachable::new(wary()).await;
    let gate = held(&host.server).await;
    assert_eq!((&gate["scope"], &gate["applicationId"]), (&json!("host"), &Value::Null));
    assert!(!gate["why"].as_str().unwrap().is_empty());
    let (theirs, _) = host.neighbour().await;
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]), "another organization has its own");
    let other = host.server.application().await;
    let of_other = host.server.client.with_token(&application_token(&other));
    assert_eq!(of_other.get("/host").await.expect(200)["data"], json!([]));
    host.server.endpoint(&other, json!({"url": host.url})).await;
    assert_eq!(of_other.get("/host").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn deliveries_behind_a_closed_gate_are_counted_for_the_caller() {
    let host = Unreachable::new(wary()).await;
    let server = &host.server;
    let other = server.application().await;
    server.endpoint(&other, json!({"url": host.url, "policy": "wary"})).await;
    let [of_app, of_other] = [&host.app, &other].map(|app| server.client.with_token(&application_token(app)));
    server.message(&host.app, "a").await;
    waits_behind(&server.client, 1, 2).await;
    waits_behind(&of_app, 1, 2).await;
    waits_behind(&of_other, 0, 0).await;
    server.message(&other, "a").await;
    waits_behind(&of_other, 1, 1).await;
    waits_behind(&of_app, 1, 2).await;
    waits_behind(&server.client, 2, 3).await;
}

#[tokio::test]
async fn a_whole_host_is_opened_by_its_organization_and_not_by_one_of_its_applications() {
    let host = Unreachable::new(wary()).await;
    let client = &host.server.client;
    let of_app = client.with_token(&application_token(&host.app));
    let refused = of_app.post(&host.release, "").await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("an organization's token"), "{refused}");
    let (theirs, _) = host.neighbour().await;
    theirs.post(&host.release, "").await.expect(404);
    held(&host.server).await;
    let released = client.post(&host.release, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "host", "applicationId": null}]));
}

/// Holds a host for more than an hour after one failure.
fn harsh() -> String {
    json!({
        "name": "wary",
        "schedule": {"type": "list", "delays": ["60s", "60s"]},
        "jitter": {"type": "none"},
        "gate": {"type": "hostFailures", "inARow": 1, "first": "4096s", "longest": "4096s"},
    })
    .to_string()
}

#[tokio::test]
async fn b2_a_hold_of_one_organization_does_not_bind_another_nor_its_release() {
    let mut host = Unreachable::new(harsh()).await;
    let gate = held(&host.server).await;
    assert_eq!(gate["scope"], json!("host"));
    let mut receiver = host.comes_back();
    // Their message is delivered at once, while ours has to wait.
    let (theirs, app) = host.neighbour().await;
    let message = json!({"eventType": "a", "payload": {}}).to_string();
    theirs.post(&format!("/app/{app}/msg"), message).await.expect(202);
    receiver.next().await;
    host.server.message(&host.app, "a").await;
    waits_behind(&host.server.client, 1, 2).await;
    receiver.stays_quiet(Duration::from_millis(300)).await;
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]));
    theirs.post(&host.release, "").await.expect(404);
    // Both send there now, and still it is ours to open.
    let released = host.server.client.post(&host.release, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "host", "applicationId": null}]));
    receiver.next().await;
}

#[tokio::test]
async fn each_organization_opens_its_own_gate_of_a_host() {
    let mut host = Unreachable::new(harsh()).await;
    let theirs = host.server.client.with_token(&token(OTHER_ORGANIZATION));
    theirs.post("/policy", harsh()).await.expect(201);
    let made = theirs.post("/app", r#"{"name": "theirs"}"#).await.expect(201);
    let app = made["id"].as_str().unwrap().to_owned();
    let endpoint = json!({"url": host.url, "policy": "wary"}).to_string();
    theirs.post(&format!("/app/{app}/endpoint"), endpoint).await.expect(201);
    let message = json!({"eventType": "a", "payload": {}}).to_string();
    theirs.post(&format!("/app/{app}/msg"), message.clone()).await.expect(202);
    held_for(&theirs).await;
    let mut receiver = host.comes_back();
    theirs.post(&format!("/app/{app}/msg"), message).await.expect(202);
    let released = theirs.post(&host.release, "").await.expect(200);
    assert_eq!(released["released"], json!([{"scope": "host", "applicationId": null}]));
    receiver.next().await;
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]));
    held(&host.server).await;
}

#[tokio::test]
async fn b2_an_endpoint_obeys_a_hold_no_longer_than_its_own_policy_allows() {
    let mut host = Unreachable::new(harsh()).await;
    let brisk = json!({
        "name": "brisk",
        "schedule": {"type": "list", "delays": ["60s", "60s"]},
        "jitter": {"type": "none"},
        "gate": {"type": "hostFailures", "inARow": 5, "first": "1s", "longest": "1s"},
    });
    host.server.client.post("/policy", brisk.to_string()).await.expect(201);
    let brisk = host.server.application().await;
    let url = format!("{}brisk", host.url);
    host.server.endpoint(&brisk, json!({"url": url, "policy": "brisk"})).await;
    let mut receiver = host.comes_back();
    host.server.message(&host.app, "a").await;
    waits_behind(&host.server.client, 1, 2).await;
    host.server.message(&brisk, "a").await;
    assert_eq!(receiver.next().await.path, "/brisk", "as the probe");
    assert_eq!(receiver.next().await.path, "/", "it opens the gate for those who would have waited longer");
    assert_eq!(host.server.client.get("/host").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn gates_have_a_limit_in_memory_and_on_disk() {
    const HOSTS: usize = 30;
    const LIMIT: usize = 10;
    let mut server = Running::with(|config| {
        allow(config);
        config.engine.gates_per_organization = LIMIT;
    })
    .await;
    let (_socket, port) = closed_port();
    server.client.post("/policy", wary()).await.expect(201);
    let app = server.application().await;
    for host in 1..=HOSTS {
        let url = format!("http://127.0.0.{host}:{port}/");
        server.endpoint(&app, json!({"url": url, "policy": "wary"})).await;
    }
    let message = server.message(&app, "a").await;
    let attempts = format!("/app/{app}/attempt/msg/{message}?limit=250");
    server.client.list_until(&attempts, HOSTS).await;
    let held = async |server: &Running| {
        let list = server.client.get("/host?limit=250").await.expect(200);
        let origin = |host: &Value| host["origin"].as_str().unwrap().to_owned();
        list["data"].as_array().unwrap().iter().map(origin).collect::<Vec<_>>()
    };
    let in_memory = held(&server).await;
    assert_eq!(in_memory.len(), LIMIT, "of {HOSTS} hosts that refuse connections");
    // The limit is higher after a restart: then the list has the hosts that were on disk.
    let folder = server.stop().await;
    server = Running::within(folder, allow).await;
    assert_eq!(held(&server).await, in_memory);
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
