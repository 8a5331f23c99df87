//! A client of the API.

use crate::Result;
use crate::clock::{self, Nanos, SECOND};
use crate::http1::Stream;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// The server closes connections that were idle for ten seconds. After half of that a connection is not used any more.
const FRESH: Nanos = 5 * SECOND;
/// The part of an answer that is kept, in bytes.
const ANSWER: usize = 4096;

/// The server's address and a token.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    address: SocketAddr,
    token: String,
}

/// A POST request.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) path: String,
    /// The idempotency key.
    pub(crate) key: Option<String>,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct ApiAnswer {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    pub(crate) body: Vec<u8>,
}

impl ApiAnswer {
    /// The id of the created resource.
    pub(crate) fn id(&self) -> Result<String> {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match (self.status, body["id"].as_str()) {
            (200..=299, Some(id)) => Ok(id.to_owned()),
            _ => Err(format!("{}: {}", self.status, String::from_utf8_lossy(&self.body)).into()),
        }
    }
}

impl Api {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Self { address, token: token.to_owned() }
    }

    /// The same server with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self::new(self.address, token)
    }

    pub(crate) async fn connect(&self) -> io::Result<Connection> {
        let stream = Stream::connect(self.address).await?;
        Ok(Connection { stream, token: self.token.clone(), used_at: clock::now(), over: false })
    }

    /// Creates a resource and returns its id.
    pub(crate) async fn make(&self, path: &str, body: String) -> Result<String> {
        let post = Post { path: path.to_owned(), key: None, body };
        self.connect().await?.post(&post).await?.id()
    }
}

/// A kept connection, with one request at a time.
pub(crate) struct Connection {
    stream: Stream,
    token: String,
    used_at: Nanos,
    /// The server has announced that it closes the connection.
    over: bool,
}

impl Connection {
    /// Whether another request may be sent.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.over && clock::now() < self.used_at + FRESH && self.stream.is_open()
    }

    pub(crate) async fn get(&mut self, path: &str) -> io::Result<ApiAnswer> {
        let token = &self.token;
        let request =
            format!("GET /api/v1{path} HTTP/1.1\r\nhost: aldaba\r\nauthorization: Bearer {token}\r\n\r\n");
        self.exchange(&request).await
    }

    pub(crate) async fn post(&mut self, post: &Post) -> io::Result<ApiAnswer> {
        let Post { path, key, body } = post;
        let (token, length) = (&self.token, body.len());
        let mut request = format!(
            "POST /api/v1{path} HTTP/1.1\r\nhost: aldaba\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n"
        );
        if let Some(key) = key {
            request.push_str("idempotency-key: ");
            request.push_str(key);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.exchange(&request).await
    }

    async fn exchange(&mut self, request: &str) -> io::Result<ApiAnswer> {
        self.stream.write(request.as_bytes()).await?;
        let head = self.stream.head().await?.ok_or(ErrorKind::UnexpectedEof)?;
        let status = head.second_word().parse().map_err(|_| ErrorKind::InvalidData)?;
        let body = self.stream.body(head.length, ANSWER).await?;
        (self.used_at, self.over) = (clock::now(), head.last);
        Ok(ApiAnswer { status, retry_after: head.retry_after, body })
    }
}
