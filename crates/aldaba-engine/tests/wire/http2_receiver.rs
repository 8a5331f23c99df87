//! HTTP/2 receivers: a real server, and one that follows a script.

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) type Stream = TlsStream<TcpStream>;

/// The counters of a receiver.
#[derive(Default)]
pub(crate) struct Counts {
    connections: AtomicUsize,
    closed: AtomicUsize,
    requests: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The client certificate of the connection.
    pub(crate) certificate: Option<Vec<u8>>,
}

/// The behavior of the real server.
#[derive(Clone, Default)]
pub(crate) struct Manner {
    pub(crate) most_streams: Option<u32>,
    pub(crate) takes: Duration,
    /// The delay between the TLS handshake and HTTP/2.
    pub(crate) begins_after: Duration,
    /// Signals to send GOAWAY on all connections.
    pub(crate) goes_away: Option<Arc<Notify>>,
}

pub(crate) struct Http2Receiver {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
}

impl Http2Receiver {
    /// A real server that echoes the request body.
    pub(crate) async fn start(acceptor: TlsAcceptor, manner: Manner) -> Self {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let mut receiver = Self::serving(acceptor, move |stream, counts| {
            serve(stream, counts, sender.clone(), manner.clone())
        })
        .await;
        receiver.arrivals = arrivals;
        receiver
    }

    /// Runs a script for each HTTP/2 request, by its number.
    pub(crate) async fn scripted<F>(
        acceptor: TlsAcceptor,
        script: impl Fn(usize, Request<h2::RecvStream>, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::serving(acceptor, move |stream, counts| {
            let script = script.clone();
            async move {
                let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, answer))) = connection.accept().await {
                    let number = counts.requests.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(script(number, request, answer));
                }
            }
        })
        .await
    }

    /// Runs a script for each connection, byte by byte.
    pub(crate) async fn serving<F>(
        acceptor: TlsAcceptor,
        script: impl Fn(Stream, Arc<Counts>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let (shared, script) = (Arc::clone(&counts), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, counts) = (acceptor.clone(), Arc::clone(&shared));
                let script = Arc::clone(&script);
                tokio::spawn(async move {
                    match acceptor.accept(tcp).into_fallible().await {
                        Ok(stream) => script(stream, Arc::clone(&counts)).await,
                        // Closing immediately could discard the alert before it is read.
                        Err((_, mut tcp)) => drop(tcp.read_to_end(&mut Vec::new()).await),
                    }
                    counts.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        let (_, arrivals) = mpsc::unbounded_channel();
        Self { address, counts, arrivals }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/hook?x=1", self.address.port())
    }

    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.counts.most_at_once.load(Ordering::SeqCst)
    }

    pub(crate) async fn arrival(&mut self) -> Arrival {
        let arrival = tokio::time::timeout(Duration::from_secs(5), self.arrivals.recv()).await;
        arrival.expect("it arrives in time").expect("the receiver lives")
    }

    /// Waits until so many connections have ended.
    pub(crate) async fn closed(&self, count: usize) {
        for _ in 0..500 {
            if self.counts.closed.load(Ordering::SeqCst) >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{count} connections were not closed");
    }
}

async fn serve(stream: Stream, counts: Arc<Counts>, sender: mpsc::UnboundedSender<Arrival>, manner: Manner) {
    let session = stream.get_ref().1;
    let certificate = session.peer_certificates().map(|chain| chain[0].to_vec());
    let http2 = session.alpn_protocol() == Some(b"h2");
    let Manner { most_streams, takes, begins_after, goes_away } = manner;
    let service = service_fn(move |request: Request<Incoming>| {
        let (counts, sender, certificate) = (Arc::clone(&counts), sender.clone(), certificate.clone());
        async move {
            let now = counts.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            counts.most_at_once.fetch_max(now, Ordering::SeqCst);
            counts.requests.fetch_add(1, Ordering::SeqCst);
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            tokio::time::sleep(takes).await;
            counts.at_once.fetch_sub(1, Ordering::SeqCst);
            let _ = sender.send(Arrival {
                method: parts.method,
                uri: parts.uri,
                version: parts.version,
                headers: parts.headers,
                body: body.clone(),
                certificate,
            });
            Ok::<_, Infallible>(Response::new(Full::new(body)))
        }
    });
    let stream = TokioIo::new(stream);
    if !http2 {
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
        return;
    }
    tokio::time::sleep(begins_after).await;
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let connection = builder.max_concurrent_streams(most_streams).serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let goes_away = async move {
        match goes_away {
            Some(told) => told.notified().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = connection.as_mut() => return,
        () = goes_away => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
