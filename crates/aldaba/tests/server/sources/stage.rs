//! What the tests of sources have in common: a source with an endpoint, and a sender that signs.

use crate::support::client::Reply;
use crate::support::hmac;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day, in seconds.
#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub(crate) fn mac(secret: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    hmac::sha256(secret, &parts.concat())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The headers of Standard Webhooks, under either name.
pub(crate) fn standard(prefix: &str, secret: &str, id: &str, at: u64, body: &[u8]) -> Vec<(String, String)> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let signed = mac(&key, &[id.as_bytes(), b".", at.to_string().as_bytes(), b".", body]);
    vec![
        (format!("{prefix}-id"), id.into()),
        (format!("{prefix}-timestamp"), at.to_string()),
        (format!("{prefix}-signature"), format!("v1,{}", STANDARD.encode(signed))),
    ]
}

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A source and its endpoints.
pub(crate) struct InboundSource<'a> {
    pub(crate) server: &'a Running,
    pub(crate) source: Value,
}

impl<'a> InboundSource<'a> {
    pub(crate) async fn new(server: &'a Running, kind: &str, more: Value) -> Self {
        let mut body = json!({"name": "the inbound", "type": kind});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let source = server.client.post("/ingest/source", body.to_string()).await.expect(201);
        Self { server, source }
    }

    pub(crate) async fn forwarding(self, receiver: &Receiver, more: Value) -> Self {
        let mut body = json!({"url": receiver.url("/hook")});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.server.client.post(&self.path("/endpoint"), body.to_string()).await.expect(201);
        self
    }

    pub(crate) fn id(&self) -> &str {
        self.source["id"].as_str().unwrap()
    }

    pub(crate) fn app(&self) -> &str {
        self.source["appId"].as_str().unwrap()
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/ingest/source/{}{rest}", self.id())
    }

    /// The sender's path, with `//` before it: it is outside of the API.
    pub(crate) fn inside(&self) -> String {
        inside(&self.source["ingestUrl"])
    }

    pub(crate) async fn send(&self, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        self.server.client.anonymous().send(Method::POST, &self.inside(), headers, body.into()).await
    }

    pub(crate) async fn send_signed(&self, headers: &[(String, String)], body: impl Into<Bytes>) -> Reply {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.send(&headers, body).await
    }

    pub(crate) async fn messages(&self) -> Vec<Value> {
        let list = self.server.client.get(&format!("/app/{}/msg", self.app())).await.expect(200);
        list["data"].as_array().unwrap().clone()
    }

    /// An event once it has this status.
    pub(crate) async fn event(&self, id: &str, status: &str) -> Value {
        let path = self.path(&format!("/event/{id}"));
        self.server.client.get_until(&path, |event| event["status"] == status).await
    }

    pub(crate) async fn log(&self) -> Vec<Value> {
        let list = self.server.client.get(&self.path("/log")).await.expect(200);
        list["data"].as_array().unwrap().clone()
    }

    pub(crate) async fn counters(&self) -> Value {
        self.server.client.get(&self.path("")).await.expect(200)["counters"].clone()
    }
}

pub(crate) fn inside(url: &Value) -> String {
    format!("//{}", url.as_str().unwrap().strip_prefix("http://aldaba.test/").expect("where it was asked"))
}
