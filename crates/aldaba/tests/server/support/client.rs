//! A client that hides nothing: one connection for each request.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{} without JSON: {:?}", self.status, self.body))
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

/// A caller with a token (or none).
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) authorization: Option<String>,
}

impl Client {
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { address: self.address, authorization: Some(format!("Bearer {token}")) }
    }

    pub(crate) fn anonymous(&self) -> Self {
        Self { address: self.address, authorization: None }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], Bytes::new()).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Method::PUT, path, &[], body.into()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Method::PATCH, path, &[], body.into()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Method::POST, path, &[], body.into()).await
    }

    pub(crate) async fn post_once(&self, path: &str, key: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Method::POST, path, &[("idempotency-key", key)], body.into()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Reply {
        let path = if path.starts_with("//") { path[1..].to_owned() } else { format!("/api/v1{path}") };
        let mut request = Request::builder().method(method).uri(path).header("host", "aldaba.test");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let (parts, body) = sender.send_request(request).await.expect("an answer").into_parts();
        let body = body.collect().await.expect("a whole answer").to_bytes();
        // Not waited for: an early answer leaves it with a body that it will never send.
        connection.abort();
        Reply { status: parts.status, headers: parts.headers, body }
    }
}
