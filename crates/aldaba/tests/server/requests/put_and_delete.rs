//! A PUT concurrent with a DELETE of the same resource: the resource stays deleted.

use crate::support::running::Running;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A PUT whose body is delayed: the server reads the resource before the body.
struct HalfSent {
    stream: TcpStream,
    body: String,
}

impl HalfSent {
    async fn to(server: &Running, path: &str, body: &Value) -> Self {
        let (authorization, body) = (server.client.authorization.clone().unwrap(), body.to_string());
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "PUT /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\nconnection: close\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let expected = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut answer = vec![0; expected.len()];
        tokio::time::timeout(WAIT_TIMEOUT, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(expected));
        Self { stream, body }
    }

    /// The status, and the body.
    async fn finish(mut self) -> (u16, Value) {
        self.stream.write_all(self.body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(WAIT_TIMEOUT, self.stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    }
}

/// Something that is listed, made by its first body and put by its second.
fn things(app: &str) -> [(String, Value, Value); 5] {
    let endpoint =
        (json!({"url": "https://example.com/"}), json!({"url": "https://example.com/2", "uid": "named"}));
    let source = json!({"name": "s", "type": "generic-webhook"});
    [
        ("/app".into(), json!({"name": "a"}), json!({"name": "b"})),
        (format!("/app/{app}/endpoint"), endpoint.0.clone(), json!({"url": "https://example.com/2"})),
        (format!("/app/{app}/endpoint"), endpoint.0.clone(), endpoint.1),
        ("/operational-webhook/endpoint".into(), endpoint.0.clone(), endpoint.0),
        ("/ingest/source".into(), source.clone(), source),
    ]
}

#[tokio::test]
async fn a_put_by_id_never_makes_again_what_was_deleted_meanwhile() {
    let server = Running::start().await;
    let app = server.application().await;
    for (list, new, changed) in things(&app) {
        let made = server.client.post(&list, new.to_string()).await.expect(201);
        let before = server.client.get(&list).await.expect(200)["data"].as_array().unwrap().len();
        let path = format!("{list}/{}", made["id"].as_str().unwrap());
        let put = HalfSent::to(&server, &path, &changed).await;
        server.client.delete(&path).await.expect(204);
        let (status, answer) = put.finish().await;
        assert_eq!(status, 404, "{list}: {answer}");
        let after = server.client.get(&list).await.expect(200)["data"].as_array().unwrap().len();
        assert_eq!(after, before - 1, "{list}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_put_by_uid_makes_another_after_a_deletion() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/endpoint/door");
    let made = server.endpoint(&app, json!({"uid": "door"})).await;
    let put = HalfSent::to(&server, &path, &json!({"url": "https://example.com/2"})).await;
    server.client.delete(&path).await.expect(204);
    let (status, answer) = put.finish().await;
    assert_eq!((status, &answer["uid"]), (201, &json!("door")));
    assert_ne!(answer["id"], made["id"]);
    server.stop().await;
}

#[tokio::test]
async fn puts_and_deletes_that_race_leave_nothing_behind() {
    const ROUNDS: usize = 20;
    let server = Running::start().await;
    let app = server.application().await;
    for (list, new, changed) in things(&app) {
        for round in 0..ROUNDS {
            let made = server.client.post(&list, new.to_string()).await.expect(201);
            let path = format!("{list}/{}", made["id"].as_str().unwrap());
            let puts = futures_util::future::join_all((0..4).map(|n| {
                let mut body = changed.clone();
                // Each changes something, so that each is written.
                body["metadata"] = json!({"n": format!("{round}-{n}")});
                let (client, path) = (server.client.clone(), path.clone());
                async move { client.put(&path, body.to_string()).await }
            }));
            let (puts, deleted) = tokio::join!(puts, server.client.delete(&path));
            deleted.expect(204);
            for put in puts {
                assert!([200, 404].contains(&put.status.as_u16()), "{list}: {} {:?}", put.status, put.body);
            }
            server.client.get(&path).await.expect(404);
            let left = server.client.get(&list).await.expect(200);
            let left = left["data"].as_array().unwrap();
            // The application of the others is the only one.
            assert_eq!(left.len(), usize::from(list == "/app"), "{list}: {left:?}");
        }
    }
    server.stop().await;
}
