//! What a sender of webhooks does, and what others might try.

use crate::SOON;
use crate::http::{Answer, Body, exchange};
use aldaba_signature::{HashKind, Scheme, SigningKey};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

/// The secret that sender and samples share.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The brand under which branded deliveries go out.
pub const BRAND: &str = "Zeltapay";

/// How deliveries are signed, and where their id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    Standard,
    Branded,
}

#[derive(Clone, Copy, Debug)]
pub struct Sender {
    pub address: SocketAddr,
    pub signing: Signing,
}

/// A request that can still be tampered with.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub method: Method,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Without a length that is told before.
    pub chunked: bool,
}

/// There was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nobody was there.
    Unreached,
    /// The receiver had the request, or a part of it, and has hung up.
    CutOff,
}

impl Signing {
    pub const BOTH: [Self; 2] = [Self::Standard, Self::Branded];

    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Branded => "branded",
        }
    }

    pub fn id_header(self) -> String {
        match self {
            Self::Standard => "webhook-id".into(),
            Self::Branded => format!("{BRAND}-Event-Id"),
        }
    }

    pub fn signature_header(self) -> String {
        match self {
            Self::Standard => "webhook-signature".into(),
            Self::Branded => format!("{BRAND}-Signature"),
        }
    }
}

impl Sender {
    /// A delivery as it should be, signed at this moment.
    pub fn sign(&self, id: &str, body: impl Into<Vec<u8>>) -> Delivery {
        self.sign_at(now(), id, body)
    }

    pub fn sign_at(&self, time: i64, id: &str, body: impl Into<Vec<u8>>) -> Delivery {
        let body = body.into();
        let keys = [SigningKey::parse(SECRET).unwrap()];
        let scheme = match self.signing {
            Signing::Standard => Scheme::Standard,
            Signing::Branded => Scheme::Timestamped(HashKind::Sha256),
        };
        let mut headers = vec![
            (self.signing.id_header(), id.into()),
            (self.signing.signature_header(), scheme.sign(&keys, id, time, &body)),
        ];
        headers.push(match self.signing {
            Signing::Standard => ("webhook-timestamp".into(), time.to_string()),
            Signing::Branded => (format!("{BRAND}-Event-Type"), "payment.success".into()),
        });
        Delivery { method: Method::POST, headers, body, chunked: false }
    }

    /// Sends a delivery as it should be.
    pub async fn deliver(&self, id: &str, body: &[u8]) -> Answer {
        self.send(self.sign(id, body)).await
    }

    /// Sends anything, which must be answered.
    pub async fn send(&self, delivery: Delivery) -> Answer {
        self.try_send(delivery).await.expect("the receiver has hung up")
    }

    /// The same, for a task of its own.
    pub async fn send_to_end(self, delivery: Delivery) -> Answer {
        self.send(delivery).await
    }

    pub async fn try_send(&self, delivery: Delivery) -> Result<Answer, Lost> {
        let answer = tokio::time::timeout(SOON, self.exchange(delivery)).await;
        answer.expect("the receiver does not answer")
    }

    async fn exchange(&self, delivery: Delivery) -> Result<Answer, Lost> {
        let mut request = Request::builder().method(delivery.method).uri("/webhooks");
        request = request.header(CONTENT_TYPE, "application/json");
        for (name, value) in delivery.headers {
            request = request.header(name, value);
        }
        let body = if delivery.chunked { chunks(&delivery.body) } else { Full::from(delivery.body).boxed() };
        exchange(self.address, request.body(body).unwrap()).await
    }
}

fn chunks(body: &[u8]) -> Body {
    let frames: Vec<_> =
        body.chunks(16 * 1024).map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))).collect();
    BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
}

impl Delivery {
    /// The same, with this header changed or left out.
    pub fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self.headers.extend(value.map(|value| (name.into(), value.into())));
        self
    }

    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same, with another body than was signed.
    pub fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub fn in_chunks(self) -> Self {
        Self { chunked: true, ..self }
    }
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "receivers hold signatures against the real time")]
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs().try_into().unwrap()
}
