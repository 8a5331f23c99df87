//! A receiver of webhooks that records the requests.

use crate::support::waiting::wait_until;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

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
    connections: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Receiver {
    /// Answers every request with this status and text.
    pub(crate) async fn answering(status: u16, text: &'static str) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), status, text).await
    }

    pub(crate) async fn at(address: SocketAddr, status: u16, text: &'static str) -> Self {
        let status = Arc::new(AtomicU16::new(status));
        let said = status.clone();
        let judge = move |_: &Arrival| said.load(Ordering::Relaxed);
        Self { status, ..Self::judging(address, text, judge).await }
    }

    /// Answers every request with what `judge` says.
    pub(crate) async fn judging(
        address: SocketAddr,
        text: &'static str,
        judge: impl Fn(&Arrival) -> u16 + Clone + Send + 'static,
    ) -> Self {
        Self::on(TcpListener::bind(address).await.unwrap(), text, judge)
    }

    /// The same on a socket that listens already.
    pub(crate) fn on(
        listener: TcpListener,
        text: &'static str,
        judge: impl Fn(&Arrival) -> u16 + Clone + Send + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let connections = Arc::<AtomicUsize>::default();
        let made = connections.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                made.fetch_add(1, Ordering::Relaxed);
                let (arrived, judge) = (arrived.clone(), judge.clone());
                let answer = move |request: Request<Incoming>| {
                    let (arrived, judge) = (arrived.clone(), judge.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let path = parts.uri.to_string();
                        let arrival = Arrival { path, headers: parts.headers, body };
                        let status = judge(&arrival);
                        let _ = arrived.send(arrival);
                        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
                        *response.status_mut() = StatusCode::from_u16(status).unwrap();
                        Ok::<_, Infallible>(response)
                    }
                };
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                connections.spawn(connection);
            }
        });
        let accepting = accepting.abort_handle();
        Self { address, status: Arc::default(), arrivals, connections, accepting }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether nothing arrives for this time.
    pub(crate) async fn is_quiet_for(&mut self, millis: u64) -> bool {
        tokio::time::timeout(Duration::from_millis(millis), self.arrivals.recv()).await.is_err()
    }

    /// Sets the status of further answers.
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

    /// All arrivals that were not read yet.
    pub(crate) fn all_there(&mut self) -> Vec<Arrival> {
        std::iter::from_fn(|| self.arrivals.try_recv().ok()).collect()
    }

    /// Nothing more arrives for a short time.
    pub(crate) async fn nothing_more(&mut self) {
        self.stays_quiet(Duration::from_millis(200)).await;
    }

    /// Closes the socket and its connections, so that another receiver can bind the address.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        wait_until("the port is closed", async || TcpStream::connect(self.address).await.is_err()).await;
    }
}
