//! Messages that go to many endpoints of one host.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ENDPOINTS: usize = 50;
const MESSAGES: usize = 100;
const SENDERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_of_one_host_share_few_connections_and_get_every_message() {
    let server = Arc::new(Running::delivering().await);
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    for endpoint in 0..ENDPOINTS {
        server.endpoint(&app, json!({"url": receiver.url(&format!("/{endpoint}"))})).await;
    }
    let next = Arc::new(AtomicUsize::new(0));
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (server, next, path) = (server.clone(), next.clone(), format!("/app/{app}/msg"));
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < MESSAGES {
                    let body = json!({"eventType": "invoice.paid", "payload": {"n": 1}}).to_string();
                    server.client.post(&path, body).await.expect(202);
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.expect("every message is accepted");
    }
    let mut arrived = HashMap::<_, usize>::new();
    for _ in 0..ENDPOINTS * MESSAGES {
        *arrived.entry(receiver.next().await.path).or_default() += 1;
    }
    assert_eq!(arrived.len(), ENDPOINTS);
    assert!(arrived.values().all(|count| *count == MESSAGES), "{arrived:?}");
    receiver.nothing_more().await;
    // An application has half of what its organization may have to one host, and no connection is closed in between.
    let connections = receiver.connections();
    assert!(connections <= 64, "{connections} connections");
}
