//! The listener of `metrics_listen`: the metrics and nothing else.

use super::Metrics;
use super::access::{MetricsAccess, answer_to};
use crate::api::Error;
use aldaba_engine::{Background, Engine};
use axum::response::{IntoResponse, Response};
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::RwLock;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Connections at once. One more ends the oldest that has sent no request; where there is none, it waits.
const MAX_CONNECTIONS: usize = 16;
/// How long the head of a request may take; it closes idle connections too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one connection may last: a client that reads slowly must not keep others out.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(3600);
/// The pause while the system has no more file descriptors or memory for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct MetricsListener {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) engine: Engine,
    pub(crate) access: Arc<RwLock<MetricsAccess>>,
}

/// A connection under way.
#[derive(Debug)]
struct OpenConnection {
    task: AbortHandle,
    has_asked: Arc<AtomicBool>,
}

impl MetricsListener {
    /// Serves connections until it is dropped.
    pub(crate) async fn run(self, listener: TcpListener, background: Background) {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accepts = || self.accept(&listener, &connections);
        background.supervised("metrics-accept", accepts).await;
    }

    async fn accept(&self, listener: &TcpListener, connections: &Arc<Semaphore>) {
        // Oldest first.
        let mut open: Vec<OpenConnection> = Vec::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection for metrics could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            open.retain(|connection| !connection.task.is_finished());
            if connections.available_permits() == 0 {
                end_oldest_silent(&mut open);
            }
            let Ok(permit) = connections.clone().acquire_owned().await else { return };
            let (server, has_asked) = (self.clone(), Arc::new(AtomicBool::new(false)));
            let asked = has_asked.clone();
            let serve = async move {
                let _ = tokio::time::timeout(MAX_CONNECTION_TIME, server.connection(stream, asked)).await;
                drop(permit);
            };
            open.push(OpenConnection { task: tokio::spawn(serve).abort_handle(), has_asked });
        }
    }

    async fn connection(self, stream: TcpStream, has_asked: Arc<AtomicBool>) {
        let Some(tls) = self.metrics.tls.clone() else {
            return self.serve(stream, &has_asked).await;
        };
        match tls.accept(stream, false, HEAD_TIMEOUT).await {
            Ok((stream, _)) => self.serve(stream, &has_asked).await,
            Err(error) => tracing::debug!(%error, "a connection for metrics did not come about"),
        }
    }

    async fn serve<S>(&self, stream: S, has_asked: &AtomicBool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let service = service_fn(|request| {
            has_asked.store(true, Ordering::Relaxed);
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
            Method::GET | Method::HEAD => {
                answer_to(&self.access.read().clone(), &self.metrics, &self.engine, request.headers())
            }
            _ => Error::method_not_allowed(request.method(), "GET, HEAD").into_response(),
        }
    }
}

/// Who connects and asks nothing must not keep others out.
fn end_oldest_silent(open: &mut Vec<OpenConnection>) {
    let silent = |connection: &OpenConnection| !connection.has_asked.load(Ordering::Relaxed);
    if let Some(place) = open.iter().position(silent) {
        open.remove(place).task.abort();
    }
}
