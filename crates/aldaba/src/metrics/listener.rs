//! The listener of `metrics_listen`: the metrics and nothing else.

use super::Metrics;
use super::access::open_answer;
use crate::api::Error;
use aldaba_engine::{Background, Engine};
use axum::response::{IntoResponse, Response};
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once. Others wait in the system's queue.
const MAX_CONNECTIONS: usize = 16;
/// How long the head of a request may take; it closes idle connections too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// How long one connection may last: a client that reads slowly must not keep others out.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(3600);
/// The pause while the system has no more file descriptors or memory for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct MetricsListener {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) engine: Engine,
}

impl MetricsListener {
    /// Serves connections until it is dropped.
    pub(crate) async fn serve(self, listener: TcpListener, background: Background) {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accepts = || self.accept(&listener, &connections);
        background.supervised("metrics-accept", accepts).await;
    }

    async fn accept(&self, listener: &TcpListener, connections: &Arc<Semaphore>) {
        loop {
            let Ok(permit) = connections.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(MAX_CONNECTION_TIME, server.connection(stream)).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection for metrics could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream) {
        let service = service_fn(|request| {
            let response = self.respond(&request);
            async move { Ok::<_, Infallible>(response) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection for metrics has ended");
        }
    }

    fn respond(&self, request: &Request<Incoming>) -> Response {
        if request.uri().path() != "/metrics" {
            return Error::not_found("There is only /metrics here").into_response();
        }
        match *request.method() {
            Method::GET | Method::HEAD => open_answer(&self.metrics, &self.engine, request.headers()),
            _ => Error::method_not_allowed(request.method(), "GET, HEAD").into_response(),
        }
    }
}
