//! A small client of the API: one connection, one request at a time.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a pause is believed that the server asks for without saying how long.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where the API is and what lets one in.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

/// One connection, made anew when it has been closed.
#[derive(Debug)]
pub(super) struct Client {
    door: Door,
    sender: Option<SendRequest<Full<Bytes>>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("{status}: {}", body.get("detail").unwrap_or(body))]
    Refused { status: StatusCode, body: Value, pause: Option<Duration> },
    #[error("the connection to the API broke: {0}")]
    Broken(String),
}

fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Broken(error.to_string())
}

impl Client {
    pub(super) fn new(door: Door) -> Self {
        Self { door, sender: None }
    }

    /// Posts to a path under `/api/v1`; the same `key` again has no second effect.
    pub(super) async fn post(&mut self, path: &str, key: &str, body: &Value) -> Result<Value, ClientError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/api/v1{path}"))
            .header(HOST, self.door.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.door.token))
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", key)
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(broken)?;
        let answered = self.exchange(request).await;
        if matches!(answered, Err(ClientError::Broken(_))) {
            self.sender = None;
        }
        answered
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Value, ClientError> {
        let sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => self.sender.insert(sender),
            _ => self.sender.insert(connect(self.door.address).await?),
        };
        sender.ready().await.map_err(broken)?;
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let bytes = body.collect().await.map_err(broken)?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if head.status.is_success() {
            return Ok(body);
        }
        let asked = head.headers.get(RETRY_AFTER).map(|value| {
            let seconds = value.to_str().ok().and_then(|text| text.parse().ok());
            seconds.map_or(PAUSE, Duration::from_secs).min(LONGEST_PAUSE)
        });
        Err(ClientError::Refused { status: head.status, body, pause: asked })
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let stream = TcpStream::connect(address).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with the sender, or with the server; either is noticed at the next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
