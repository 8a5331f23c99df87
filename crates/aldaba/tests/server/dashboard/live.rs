//! Parts of pages that are sent while the page is open.

use super::browser::Browser;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use aldaba::DEFAULT_ORGANIZATION;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A stream of events about one page.
struct Events(BufReader<TcpStream>);

impl Events {
    async fn open(server: &Running, browser: &Browser, page: &str) -> (String, Self) {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let cookie = browser.cookie.clone().unwrap_or_default();
        let request =
            format!("GET /dashboard/live?page={page} HTTP/1.1\r\nhost: x\r\ncookie: {cookie}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut events = Self(BufReader::new(stream));
        let status = events.line().await.unwrap();
        (status, events)
    }

    /// `None`: the stream has ended.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(30), self.0.read_line(&mut line));
        (read.await.expect("in time").unwrap_or(0) > 0).then_some(line)
    }

    /// The next update of a block that is as wanted.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.line().await.expect("the stream goes on");
            let update = line.strip_prefix("data: ").and_then(|json| serde_json::from_str(json).ok());
            if let Some(update) = update.filter(&wanted) {
                return update;
            }
        }
    }
}

#[tokio::test]
async fn a_delivery_that_is_recorded_is_on_the_open_page_within_seconds() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(503, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "persistent"})).await;
    let message = server.message(&app, "a.b").await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let page = format!("/dashboard/apps/{app}/messages/{message}");
    let (status, mut events) = Events::open(&server, &browser, &page).await;
    assert!(status.starts_with("HTTP/1.1 200"), "{status}");
    let has = |word: &'static str| move |update: &Value| update["html"].as_str().unwrap().contains(word);
    let first = events.until(has("Retrying")).await;
    assert_eq!(
        (first["page"].as_str().unwrap(), first["block"].as_str().unwrap()),
        (page.as_str(), "destinations")
    );
    receiver.answer(200);
    events.until(has("Delivered")).await;
    server.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_the_key_and_with_the_server() {
    let server = Running::start().await;
    let key = server.client.post("/api-key", r#"{"name": "k", "scope": "read"}"#).await.expect(201);
    let browser = Browser::with(&server, key["key"].as_str().unwrap()).await;
    let (_, mut events) = Events::open(&server, &browser, "/dashboard").await;
    events.until(|_| true).await;
    server.client.delete(&format!("/api-key/{}", key["id"].as_str().unwrap())).await.expect(204);
    while events.line().await.is_some() {}
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let (_, mut events) = Events::open(&server, &browser, "/dashboard").await;
    events.until(|_| true).await;
    let stopped = tokio::time::timeout(Duration::from_secs(10), server.stop());
    stopped.await.expect("a stop does not wait for open pages");
}

#[tokio::test]
async fn a_stream_has_no_page_that_its_reader_may_not_see() {
    let server = Running::start().await;
    let (app, other) = (server.application().await, server.application().await);
    let body = json!({"name": "k", "scope": "read", "appId": app}).to_string();
    let key = server.client.post("/api-key", body).await.expect(201);
    let browser = Browser::with(&server, key["key"].as_str().unwrap()).await;
    let pages = format!("/dashboard/apps/{other}&page=/dashboard/apps&page=/dashboard/apps/{app}");
    let (_, mut events) = Events::open(&server, &browser, &pages).await;
    let seen = events.until(|_| true).await;
    assert_eq!(seen["page"], format!("/dashboard/apps/{app}"));
    assert!(Browser::new(&server).get("/dashboard/live?page=/dashboard").await.status == 401);
}
