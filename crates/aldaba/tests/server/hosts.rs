use crate::receiver::Receiver;
use crate::running::{Running, token};
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

    let theirs = server.client.with_token(&token("org_23rb8YdGqMT0qIzpgGwdXfHirMv"));
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

#[tokio::test]
async fn the_gate_of_a_host_itself_concerns_whoever_has_an_endpoint_there() {
    let server = Running::delivering().await;
    // Nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    server.client.post("/policy", wary()).await.expect(201);
    let app = server.application().await;
    server.endpoint(&app, json!({"url": url, "policy": "wary"})).await;
    server.message(&app, "a").await;
    let gate = held(&server).await;
    assert_eq!((&gate["scope"], &gate["applicationId"]), (&json!("host"), &Value::Null));
    assert!(!gate["why"].as_str().unwrap().is_empty());
    let theirs = server.client.with_token(&token("org_23rb8YdGqMT0qIzpgGwdXfHirMv"));
    assert_eq!(theirs.get("/host").await.expect(200)["data"], json!([]));
    let made = theirs.post("/app", r#"{"name": "theirs"}"#).await.expect(201);
    let path = format!("/app/{}/endpoint", made["id"].as_str().unwrap());
    theirs.post(&path, json!({"url": url}).to_string()).await.expect(201);
    assert_eq!(theirs.get("/host").await.expect(200)["data"].as_array().unwrap().len(), 1);
    let path = format!("/host/{}/release", encoded(url.trim_end_matches('/')));
    assert_eq!(
        theirs.post(&path, "").await.expect(200)["released"],
        json!([{"scope": "host", "applicationId": null}])
    );
}
