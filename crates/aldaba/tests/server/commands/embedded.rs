//! A program with the engine inside and the server take the same data folder in turns.

use crate::commands::command_line::{Started, aldaba, create_token, text};
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use aldaba_embedded::{Aldaba, EndpointSpec, Event, StartError};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const ALLOW: (&str, &str) = ("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8");

async fn embed(folder: &Path) -> Result<Aldaba, StartError> {
    Aldaba::builder().sqlite(folder.join("aldaba-data")).allow("127.0.0.0/8").start().await
}

fn serve(folder: &Path) -> (Started, Client) {
    let (server, hello) = Started::serve(folder, &[ALLOW]);
    let address = hello[0].strip_prefix("Aldaba listens on http://").expect("the address").parse().unwrap();
    let nobody = Client { address, authorization: None };
    (server, nobody.with_token(&create_token(folder, &["--data", "aldaba-data"])))
}

#[tokio::test]
async fn a_server_delivers_the_pending_messages_of_an_embedded_program() {
    let folder = tempfile::tempdir().unwrap();
    let down = Receiver::answering(503, "").await;
    let (address, url) = (down.address, down.url("/hook"));
    let aldaba = embed(folder.path()).await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    let endpoint = app.add_endpoint(EndpointSpec::to(&url).policy("quick")).await.unwrap();
    let secret = app.secret(endpoint.id).await.unwrap();
    let sent = app.send(Event::new("invoice.paid", &json!({"n": 1})).unwrap().id("e1")).await.unwrap();
    down.stop().await;
    aldaba.shutdown(LIMIT).await;
    let mut up = Receiver::at(address, 200, "").await;

    let (server, client) = serve(folder.path());
    assert_eq!(up.next().await.body, r#"{"n":1}"#);
    let message = client.get("/app/customer/msg/e1").await.expect(200);
    assert_eq!(message["id"], sent.id.to_string());
    let shown = client.get(&format!("/app/customer/endpoint/{}/secret", endpoint.id)).await.expect(200);
    assert_eq!(shown["key"], secret);
    let audit = client.get("/audit?actor=program").await.expect(200);
    assert_eq!(audit["data"].as_array().unwrap().len(), 2, "{audit}");
    assert_eq!(audit["data"][0]["actor"]["kind"], "program");
    let refused = embed(folder.path()).await.unwrap_err();
    assert!(matches!(refused, StartError::InUse { .. }), "{refused:?}");
    drop(server);
}

#[tokio::test]
async fn an_embedded_program_delivers_the_pending_messages_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::answering(200, "").await;
    let (server, client) = serve(folder.path());
    client.post("/app", r#"{"name": "A customer", "uid": "customer"}"#).await.expect(201);
    let endpoint = json!({"url": receiver.url("/hook"), "uid": "it", "metadata": {"team": "billing"}});
    client.post("/app/customer/endpoint", endpoint.to_string()).await.expect(201);
    drop(server);

    let aldaba = embed(folder.path()).await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    assert_eq!(app.name(), "A customer");
    app.update_endpoint("it", EndpointSpec::unchanged().description("changed by a program")).await.unwrap();
    app.send(Event::new("invoice.paid", &json!({"n": 2})).unwrap()).await.unwrap();
    assert_eq!(receiver.next().await.body, r#"{"n":2}"#);
    let beside = aldaba_serve(folder.path());
    assert!(beside.contains("is in use by another Aldaba"), "{beside}");
    aldaba.shutdown(LIMIT).await;

    let (_server, client) = serve(folder.path());
    let shown = client.get("/app/customer/endpoint/it").await.expect(200);
    assert_eq!(shown["description"], "changed by a program");
    assert_eq!(shown["metadata"], json!({"team": "billing"}), "what a program does not know of stays");
}

/// What a server says that cannot start.
fn aldaba_serve(folder: &Path) -> String {
    let output = aldaba(folder).args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!output.status.success());
    text(&output.stderr)
}
