//! Who may read the metrics.

use crate::support::client::Client;
use crate::support::running::Running;
use aldaba::config::Secret;
use std::net::{SocketAddr, TcpListener};

const TOKEN: &str = "a token for the metrics";

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn metrics_with_a_token_are_shown_to_nobody_else() {
    let server = Running::with(|config| config.metrics_token = Some(Secret(TOKEN.into()))).await;
    let status = async |client: &Client| client.get("//metrics").await.status.as_u16();
    assert_eq!(status(&server.client.with_token(TOKEN)).await, 200);
    let refused = server.client.anonymous().get("//metrics").await.expect(401);
    assert!(refused["detail"].as_str().unwrap().contains("metrics_token"), "{refused}");
    // Not even an organization's: they are about all organizations.
    assert_eq!(status(&server.client).await, 401);
    assert_eq!(status(&server.client.with_token("a token for the metricz")).await, 401);
    server.stop().await;
}

#[tokio::test]
async fn metrics_with_a_listener_of_their_own_are_there_and_nowhere_else() {
    let address = free_address();
    let server = Running::with(|config| config.metrics_listen = Some(address)).await;
    let there = Client { address, authorization: None };
    let reply = there.get("//metrics").await;
    assert_eq!(reply.status, 200);
    assert!(String::from_utf8_lossy(&reply.body).contains("webhook_queue_length 0\n"));
    there.get("//api/v1/app").await.expect(404);
    there.post("//metrics", "").await.expect(405);
    let refused = server.client.get("//metrics").await.expect(404);
    assert!(refused["detail"].as_str().unwrap().contains("metrics_listen"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn a_listener_for_metrics_needs_the_token_where_one_is_set() {
    let address = free_address();
    let server = Running::with(|config| {
        config.metrics_listen = Some(address);
        config.metrics_token = Some(Secret(TOKEN.into()));
    })
    .await;
    let there = Client { address, authorization: None };
    there.get("//metrics").await.expect(401);
    assert_eq!(there.with_token(TOKEN).get("//metrics").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn connections_that_ask_nothing_do_not_keep_a_scrape_out() {
    let address = free_address();
    let server = Running::with(|config| config.metrics_listen = Some(address)).await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    let there = Client { address, authorization: None };
    let scrape = tokio::time::timeout(std::time::Duration::from_secs(3), there.get("//metrics"));
    assert_eq!(scrape.await.expect("an answer").status, 200);
    drop(silent);
    server.stop().await;
}
