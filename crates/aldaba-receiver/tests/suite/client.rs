//! A sender: it signs by Standard Webhooks, and speaks HTTP over a socket.

use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_signature::SigningKey;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;

const SECRET: &str = "whsec_c3VpdGUtc2VjcmV0LWZvci10ZXN0cy1vbmx5LTMyYnk=";

pub(crate) fn inspector() -> Inspector {
    let secret = Secret::standard(SECRET).unwrap();
    Inspector::new(Recipe::standard(), [secret]).unwrap()
}

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// An event as its sender has it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) body: Bytes,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Sent {
    pub(crate) fn new(id: &str) -> Self {
        Self::with(id, &json!({"type": "payment.success", "data": {"of": id}}))
    }

    pub(crate) fn with(id: &str, body: &Value) -> Self {
        Self { id: id.to_owned(), body: body.to_string().into() }
    }

    pub(crate) fn request(&self) -> http::request::Builder {
        self.request_at(now())
    }

    /// Signed at this moment.
    pub(crate) fn request_at(&self, at: i64) -> http::request::Builder {
        let signature = SigningKey::parse(SECRET).unwrap().sign(&self.id, at, &self.body);
        Request::builder()
            .method(Method::POST)
            .uri("/webhooks")
            .header(HOST, "localhost")
            .header("webhook-id", &self.id)
            .header("webhook-timestamp", at)
            .header("webhook-signature", signature)
    }

    pub(crate) fn whole(&self) -> Body {
        Full::new(self.body.clone()).boxed()
    }

    /// In pieces, so that its length is not told beforehand.
    pub(crate) fn in_pieces(&self) -> Body {
        let pieces: Vec<_> = self.body.chunks(1024).map(Bytes::copy_from_slice).collect();
        let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
        StreamBody::new(futures_util::stream::iter(frames)).boxed()
    }

    /// An endless body in small pieces.
    pub(crate) fn endless(&self) -> Body {
        let piece = self.body.clone();
        let frames = futures_util::stream::unfold((), move |()| {
            let piece = piece.clone();
            async move {
                // The pace of the body.
                tokio::time::sleep(Duration::from_micros(100)).await;
                Some((Ok(Frame::data(piece)), ()))
            }
        });
        BoxBody::new(StreamBody::new(Box::pin(frames)))
    }

    /// The first byte, and then nothing any more.
    pub(crate) fn stuck(&self) -> Body {
        let first = Ok(Frame::data(self.body.slice(..1)));
        let frames = futures_util::StreamExt::chain(
            futures_util::stream::iter([first]),
            futures_util::stream::pending(),
        );
        StreamBody::new(frames).boxed()
    }
}

#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Sends a request on a new connection. Dropping the future closes the connection.
pub(crate) async fn send(to: SocketAddr, request: Request<Body>) -> Reply {
    let stream = TcpStream::connect(to).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let exchange = async move {
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        Reply { status: parts.status, headers: parts.headers, body }
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        reply = &mut exchange => reply,
        // A server that has answered before it has read everything closes the connection.
        _ = connection => exchange.await,
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn is(&self, status: u16, body: &Value) {
        assert_eq!((self.status.as_u16(), &self.body), (status, body));
    }

    #[track_caller]
    pub(crate) fn is_new(&self) {
        self.is(200, &json!({"received": true}));
    }

    #[track_caller]
    pub(crate) fn is_duplicate(&self) {
        self.is(200, &json!({"received": true, "duplicate": true}));
    }

    /// With an error that says something, and without `duplicate`.
    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16) {
        let error = self.body["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty(), "{self:?}");
        self.is(status, &json!({"received": false, "error": error}));
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
