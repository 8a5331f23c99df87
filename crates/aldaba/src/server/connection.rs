//! Serves one connection that has a slot: HTTP/1.1, or HTTP/2 where TLS has agreed on it.

use super::connection_slots::{ConnectionSlot, ConnectionSlots};
use super::connection_table::TrackedConnection;
use super::forwarded::{Peer, TrustedProxies};
use super::http2::{self, Streams};
use super::request::Requests;
use super::tls::{HandshakeError, ListenerTls, Protocol};
use super::write_timeout::WriteTimeout;
use crate::config::Limits;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Headers of a request. Beyond, or beyond the limit on the bytes of a request's head: 431. (If a head cannot be
/// read, hyper answers 400, 414 or 431 itself, without a body.)
const MAX_HEADERS: usize = 64;
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Bytes that are read from a connection at once; bodies pass through in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServingPhase {
    Serving,
    /// Requests in progress may end; no others begin.
    Stopping,
    /// All remaining requests are dropped.
    Stopped,
}

/// Resolves at this stage, or when the sender is gone.
pub(super) async fn reached(phase: &mut watch::Receiver<ServingPhase>, at_least: ServingPhase) {
    let _ = phase.wait_for(|phase| *phase >= at_least).await;
}

/// Resolves when nothing is waited for any more.
async fn stopped(mut phase: watch::Receiver<ServingPhase>) {
    reached(&mut phase, ServingPhase::Stopped).await;
}

/// The settings and limits of a connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionServer {
    pub(super) requests: Requests,
    pub(super) limits: Limits,
    pub(super) slots: Arc<ConnectionSlots>,
    pub(super) api: Handle,
    pub(super) tls: Option<ListenerTls>,
    pub(super) proxies: TrustedProxies,
}

impl ConnectionServer {
    pub(super) fn serve(
        &self,
        stream: TcpStream,
        peer: Peer,
        tracked: TrackedConnection,
        slot: ConnectionSlot,
        phase: watch::Receiver<ServingPhase>,
    ) {
        // From the listener's runtime to the API's.
        tracked.slot_acquired();
        let (server, stream) = (self.clone(), stream.into_std());
        self.api.spawn(async move {
            match stream.and_then(TcpStream::from_std) {
                Ok(stream) => {
                    // Responses are small and written at once; waiting to fill a packet only delays them.
                    let _ = stream.set_nodelay(true);
                    let connection = OpenConnection { server, peer, tracked };
                    match connection.server.tls.clone() {
                        None => connection.serve_http1(stream, phase).await,
                        // Boxed: connections without TLS need not be as large.
                        Some(tls) => Box::pin(connection.serve_tls(tls, stream, phase)).await,
                    }
                }
                Err(error) => tracing::warn!(%error, "a connection could not be served"),
            }
            drop(slot);
        });
    }
}

/// A connection with a slot.
struct OpenConnection {
    server: ConnectionServer,
    peer: Peer,
    tracked: TrackedConnection,
}

impl OpenConnection {
    /// Resolves when the connection has to leave; `true`: after the response that it is owed.
    async fn leave(&self, mut phase: watch::Receiver<ServingPhase>) -> bool {
        tokio::select! {
            biased;
            () = reached(&mut phase, ServingPhase::Stopping) => true,
            // Without a request nothing has to end in order.
            () = self.server.slots.wanted() => self.tracked.has_sent_head(),
            // A connection whose head arrived at the last moment gets its response.
            () = self.tracked.evicted() => self.tracked.has_sent_head(),
        }
    }

    /// An unfinished handshake counts like a half-sent head: it gives way to others, and has the same time.
    async fn serve_tls(&self, tls: ListenerTls, stream: TcpStream, phase: watch::Receiver<ServingPhase>) {
        let accepted = tokio::select! {
            biased;
            accepted = tls.accept(stream, true, self.server.limits.header) => accepted,
            _ = self.leave(phase.clone()) => return,
        };
        match accepted {
            Ok((stream, Protocol::Http1)) => self.serve_http1(stream, phase).await,
            Ok((stream, Protocol::Http2)) => self.serve_http2(stream, phase).await,
            Err(error @ HandshakeError::PlainHttp) => {
                tracing::warn!(client = %self.peer.address, "{error}");
            }
            Err(error) => tracing::debug!(client = %self.peer.address, "{error}"),
        }
    }

    async fn serve_http1<S>(&self, stream: S, phase: watch::Receiver<ServingPhase>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limits = &self.server.limits;
        let service = service_fn(|request| {
            self.tracked.head_received();
            let (requests, peer) = (self.server.requests.clone(), self.peer);
            async move { Ok::<_, Infallible>(requests.answer(request, peer).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.progress)), service);
        let leave = self.leave(phase.clone());
        until_closed(connection, leave, |connection| connection.graceful_shutdown(), stopped(phase)).await;
    }

    async fn serve_http2<S>(&self, stream: S, phase: watch::Receiver<ServingPhase>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limits = &self.server.limits;
        let streams = Streams::new(self.server.slots.clone(), limits);
        let service = service_fn(|request| {
            self.tracked.head_received();
            let (requests, peer, stream) = (self.server.requests.clone(), self.peer, streams.open());
            async move { Ok::<_, Infallible>(stream.respond(requests.answer(request, peer).await)) }
        });
        let stream = TokioIo::new(WriteTimeout::new(stream, limits.progress));
        let connection = http2::builder(&streams, limits).serve_connection(stream, service);
        let heard = phase.clone();
        let leave = async {
            tokio::select! {
                biased;
                in_order = self.leave(heard) => in_order,
                () = streams.idle(limits.header) => true,
                () = streams.flooded() => {
                    tracing::info!(client = %self.peer.address, "a client cancels its requests as fast as it makes them; its connection is closed");
                    false
                }
            }
        };
        // A client need not say that it has heard of the end.
        let left = async {
            tokio::select! {
                () = stopped(phase) => {}
                () = streams.left() => {}
            }
        };
        until_closed(connection, leave, |connection| connection.graceful_shutdown(), left).await;
    }
}

/// Drives a connection until it is closed, or until it has to leave: in order, or at once. At the end of a stop all are
/// dropped.
async fn until_closed<C>(
    connection: C,
    leave: impl Future<Output = bool>,
    shut_down: impl FnOnce(Pin<&mut C>),
    left: impl Future<Output = ()>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let closed = tokio::select! {
        biased;
        closed = connection.as_mut() => closed,
        in_order = leave => if in_order {
            shut_down(connection.as_mut());
            tokio::select! {
                biased;
                closed = connection.as_mut() => closed,
                () = left => Ok(()),
            }
        } else {
            tracing::debug!("a connection was closed without a response");
            Ok(())
        },
    };
    if let Err(error) = closed {
        tracing::debug!(%error, "a connection broke off");
    }
}
