//! A store that is slow because another program holds the database: no caller hangs, and nothing is sent twice.

use crate::support::running::Running;
use futures_util::future::join_all;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than any caller should wait.
const LIMIT: Duration = Duration::from_secs(20);

/// The four ways of handing something in, each with all that it needs.
fn requests(app: &str) -> [(String, Value, &'static str); 4] {
    let message = json!({"eventType": "a", "payload": {}});
    let job =
        json!({"jobId": "j", "jobType": "t", "status": "completed", "webhookUrl": "https://example.com/"});
    [
        (format!("/app/{app}/msg"), message.clone(), "message"),
        (format!("/app/{app}/msg/batch"), json!({"messages": [message.clone(), message]}), "batch"),
        (format!("/app/{app}/dispatch"), json!({"url": "https://example.com/", "payload": 1}), "dispatch"),
        (format!("/app/{app}/job"), job, "job"),
    ]
}

#[tokio::test]
async fn a_sender_does_not_wait_for_a_locked_database_and_retries_with_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/aldaba.db");
    let server = Running::within(folder, |_| {}).await;
    let app = server.application().await;
    server.message(&app, "before").await;
    let other = Connection::open(file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let requests = requests(&app);
    let send = |(path, body, key): &(String, Value, &'static str)| {
        let (client, path, body, key) = (server.client.clone(), path.clone(), body.to_string(), *key);
        async move { client.post_once(&path, key, body).await }
    };
    let sent = tokio::time::timeout(LIMIT, join_all(requests.iter().map(send))).await;
    for (reply, (_, _, what)) in sent.expect("an answer").iter().zip(&requests) {
        let said = reply.expect(503);
        assert_eq!(said["code"], "late", "{what}: {said}");
        assert!(said["detail"].as_str().unwrap().contains("may be stored yet"), "{what}: {said}");
        assert!(said["detail"].as_str().unwrap().contains("idempotency-key"), "{what}: {said}");
        assert_eq!(reply.headers["retry-after"], "5", "{what}");
    }
    // Reads continue meanwhile.
    assert_eq!(server.stored(&app).await[2], 1);
    other.execute_batch("ROLLBACK").unwrap();
    for (request, (_, _, what)) in requests.iter().zip(&requests) {
        let status = send(request).await.status;
        assert_eq!(status, 202, "{what}");
    }
    assert_eq!(server.stored(&app).await[2], 1 + 5, "what came late is there once");
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_makes_its_application_does_not_wait_for_it_either() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/aldaba.db");
    let server = Running::within(folder, |_| {}).await;
    let other = Connection::open(file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let message = json!({"eventType": "a", "payload": {}, "application": {"name": "n", "uid": "made"}});
    let sent = server.client.post_once("/app/made/msg", "key", message.to_string());
    let reply = tokio::time::timeout(LIMIT, sent).await.expect("an answer");
    assert_eq!(reply.expect(503)["code"], "late");
    other.execute_batch("ROLLBACK").unwrap();
    server.client.post_once("/app/made/msg", "key", message.to_string()).await.expect(202);
    assert_eq!(server.stored("made").await, [1, 0, 1]);
    server.stop().await;
}
