use crate::sender::Lost;
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpStream;

pub(crate) type Body = BoxBody<Bytes, Infallible>;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Null if it is no JSON.
    pub json: Value,
}

/// One request on a connection of its own.
pub(crate) async fn exchange(address: SocketAddr, mut request: Request<Body>) -> Result<Answer, Lost> {
    let stream = TcpStream::connect(address).await.map_err(|_| Lost::Unreached)?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(&address.to_string()).unwrap());
    talk(stream, request).await.map_err(|_| Lost::CutOff)
}

async fn talk(stream: TcpStream, request: Request<Body>) -> hyper::Result<Answer> {
    let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Answer::read(requests.send_request(request).await?).await
}

impl Answer {
    async fn read(response: Response<Incoming>) -> hyper::Result<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Self { status, headers, json: serde_json::from_slice(&body).unwrap_or_default() })
    }

    /// It is what a receiver says of an event that it has handled just now.
    pub fn is_new(&self) -> bool {
        self.status == 200 && self.json == json!({"received": true})
    }

    /// It is what a receiver says of an event that was handled before.
    pub fn is_duplicate(&self) -> bool {
        self.status == 200 && self.json == json!({"received": true, "duplicate": true})
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
