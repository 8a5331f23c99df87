//! The other side: a receiver of webhooks that shows what arrived.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    status: Arc<AtomicU16>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
}

impl Receiver {
    /// Answers every request with this status and text.
    pub(crate) async fn answering(status: u16, text: &'static str) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), status, text).await
    }

    pub(crate) async fn at(address: SocketAddr, status: u16, text: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let status = Arc::new(AtomicU16::new(status));
        let said = status.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (arrived, said) = (arrived.clone(), said.clone());
                let answer = move |request: Request<Incoming>| {
                    let (arrived, said) = (arrived.clone(), said.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let path = parts.uri.to_string();
                        let _ = arrived.send(Arrival { path, headers: parts.headers, body });
                        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
                        *response.status_mut() = StatusCode::from_u16(said.load(Ordering::Relaxed)).unwrap();
                        Ok::<_, Infallible>(response)
                    }
                };
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                tokio::spawn(connection);
            }
        });
        Self { address, status, arrivals }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on it answers with this status.
    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Nothing arrives for a while.
    pub(crate) async fn stays_quiet(&mut self, span: Duration) {
        let next = tokio::time::timeout(span, self.arrivals.recv()).await;
        assert!(next.is_err(), "{next:?}");
    }

    pub(crate) async fn next(&mut self) -> Arrival {
        let next = tokio::time::timeout(Duration::from_secs(20), self.arrivals.recv()).await;
        next.expect("something arrives in time").unwrap()
    }
}
