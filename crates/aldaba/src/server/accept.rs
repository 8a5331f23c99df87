//! Accepts connections, up to a limit, and serves HTTP/1.1 on each, or HTTP/2 where TLS has agreed on it.

use super::connection_slots::{ConnectionSlot, ConnectionSlots, RejectReason, reject};
use super::connection_table::{ConnectionTable, TooManyConnections, TrackedConnection};
use super::forwarded::{Peer, TrustedProxies};
use super::http2::{self, Streams};
use super::request::Requests;
use super::scheduling_delay::SchedulingDelay;
use super::tls::{HandshakeError, ListenerTls, Protocol};
use super::write_timeout::WriteTimeout;
use crate::api::Routers;
use crate::config::Limits;
use crate::metrics::Metrics;
use crate::runtimes::Threads;
use aldaba_engine::Background;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Headers of a request. Beyond, or beyond the limit on the bytes of a request's head: 431. (If a head cannot be
/// read, hyper answers 400, 414 or 431 itself, without a body.)
const MAX_HEADERS: usize = 64;
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Bytes that are read from a connection at once; bodies pass through in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
/// The pause while the system has no more file descriptors or memory for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Connections that the system keeps until they are accepted; it may allow fewer. Connections beyond the limit retry
/// after a second or more, so a burst of clients should fit.
const BACKLOG: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServingPhase {
    Serving,
    /// Requests in progress may end; no others begin.
    Stopping,
    /// All remaining requests are dropped.
    Stopped,
}

/// Binds a socket with a large backlog.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a former server that are still closing must not keep this one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The connections that are being served.
#[derive(Debug)]
pub(super) struct Connections {
    phase: watch::Sender<ServingPhase>,
    slots: Arc<ConnectionSlots>,
}

/// A listener, and what it needs besides its limits.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// `None`: HTTP without TLS.
    pub(super) tls: Option<ListenerTls>,
    pub(super) proxies: TrustedProxies,
}

impl Connections {
    pub(super) fn serve(
        listener: Listener,
        router: Routers,
        limits: &Limits,
        scheduling_delay: SchedulingDelay,
        threads: &Threads,
        background: Background,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let Listener { socket, tls, proxies } = listener;
        let (phase, heard) = watch::channel(ServingPhase::Serving);
        let table = ConnectionTable::new(limits.connections_per_address);
        let slots = Arc::new(ConnectionSlots::new(limits.connections, limits.pending_connections, table));
        let served = Self { phase, slots: slots.clone() };
        let scheduling_delay = Arc::new(scheduling_delay);
        let requests =
            Requests::new(router, scheduling_delay.clone(), slots.clone(), proxies.clone(), metrics);
        let api = threads.api.clone();
        let server = ConnectionServer { requests, limits: limits.clone(), slots, api, tls, proxies };
        let listener = {
            let listener = socket.into_std()?;
            let _entered = threads.accept.enter();
            TcpListener::from_std(listener)?
        };
        threads.accept.spawn(async move {
            let accepts = || accept(&listener, &server, &scheduling_delay, heard.clone());
            background.supervised("api-accept", accepts).await;
        });
        Ok(served)
    }

    /// Accepts no more, and returns when the last connection has closed or the time is over.
    pub(super) async fn stop(self, limit: Duration) {
        self.phase.send_replace(ServingPhase::Stopping);
        let _ = tokio::time::timeout(limit, self.slots.empty()).await;
        self.phase.send_replace(ServingPhase::Stopped);
    }
}

/// Resolves at this stage, or when the sender is gone.
async fn reached(phase: &mut watch::Receiver<ServingPhase>, at_least: ServingPhase) {
    let _ = phase.wait_for(|phase| *phase >= at_least).await;
}

/// Resolves when nothing is waited for any more.
async fn stopped(mut phase: watch::Receiver<ServingPhase>) {
    reached(&mut phase, ServingPhase::Stopped).await;
}

/// Accepts connections, and refuses those that would wait too long.
async fn accept(
    listener: &TcpListener,
    server: &ConnectionServer,
    scheduling_delay: &Arc<SchedulingDelay>,
    mut phase: watch::Receiver<ServingPhase>,
) {
    let slots = server.slots.clone();
    let mut measuring = pin!(scheduling_delay.clone().measure(server.api.clone()));
    loop {
        // The listener first: further connections wait in the system's queue.
        let next = async { (slots.pending_permit().await, listener.accept().await) };
        let (pending, accepted) = tokio::select! {
            biased;
            () = reached(&mut phase, ServingPhase::Stopping) => return,
            () = &mut measuring => return,
            next = next => next,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let has_tls = server.tls.is_some();
        let peer = Peer { address: peer.ip(), tls: has_tls };
        match slots.table().register(peer.address, server.proxies.trusts(peer.address)) {
            Err(TooManyConnections) => {
                server.requests.count_busy();
                drop(tokio::spawn(reject(stream, pending, RejectReason::Address, has_tls)));
            }
            Ok(tracked) => match slots.try_acquire(pending) {
                Ok(slot) => server.serve(stream, peer, tracked, slot, phase.clone()),
                Err(pending) if scheduling_delay.exceeds_limit(slots.load()) => {
                    server.requests.count_busy();
                    drop(tokio::spawn(reject(stream, pending, RejectReason::Overloaded, has_tls)));
                }
                Err(pending) => {
                    let (slots, server, phase) = (slots.clone(), server.clone(), phase.clone());
                    tokio::spawn(async move {
                        match slots.acquire(pending, &stream).await {
                            Ok(slot) => server.serve(stream, peer, tracked, slot, phase),
                            Err(pending) => {
                                server.requests.count_busy();
                                reject(stream, pending, RejectReason::Full, has_tls).await;
                            }
                        }
                    });
                }
            },
        }
    }
}

/// The settings and limits of a connection.
#[derive(Clone, Debug)]
struct ConnectionServer {
    requests: Requests,
    limits: Limits,
    slots: Arc<ConnectionSlots>,
    api: Handle,
    tls: Option<ListenerTls>,
    proxies: TrustedProxies,
}

impl ConnectionServer {
    fn serve(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::metrics::MetricsAccess;
    use aldaba_delivery::Timestamp;
    use aldaba_engine::{Clock, SystemClock};
    use axum::Router;
    use axum::routing::get;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::{Builder, Runtime};

    const MAX_WAIT: Duration = Duration::from_millis(500);

    fn serve_on(listener: TcpListener, router: Router, threads: &Threads, slots: usize) -> Connections {
        let clock = Arc::new(SystemClock::new());
        let scheduling_delay = SchedulingDelay::new(clock.clone(), MAX_WAIT);
        let limits = Limits { connections: slots, ..Config::default().limits };
        let background = Background::new(clock);
        Connections::serve(
            plain(listener),
            router.into(),
            &limits,
            scheduling_delay,
            threads,
            background,
            metrics(),
        )
        .unwrap()
    }

    fn plain(socket: TcpListener) -> Listener {
        Listener { socket, tls: None, proxies: TrustedProxies::default() }
    }

    fn metrics() -> Arc<Metrics> {
        Arc::new(Metrics::new(MetricsAccess::Closed, Timestamp::MIN))
    }

    /// Panics once, at the first reading after a test asks for it.
    #[derive(Debug)]
    struct PanicsOnce {
        clock: SystemClock,
        panics: AtomicBool,
    }

    impl Clock for PanicsOnce {
        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        fn monotonic(&self) -> Duration {
            assert!(!self.panics.swap(false, Ordering::Relaxed), "on purpose");
            self.clock.monotonic()
        }
    }

    #[tokio::test]
    async fn a_panic_while_connections_are_accepted_ends_no_accepting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/works", get(async || "fine"));
        let clock = Arc::new(PanicsOnce { clock: SystemClock::new(), panics: AtomicBool::new(false) });
        let scheduling_delay = SchedulingDelay::new(clock.clone(), MAX_WAIT);
        let background = Background::new(Arc::new(SystemClock::new()));
        let limits = Config::default().limits;
        let connections = Connections::serve(
            plain(listener),
            router.into(),
            &limits,
            scheduling_delay,
            &Threads::one(),
            background.clone(),
            metrics(),
        )
        .unwrap();
        let mut before = TcpStream::connect(address).await.unwrap();
        assert!(asks(&mut before).await.ends_with("fine"));
        clock.panics.store(true, Ordering::Relaxed);
        while clock.panics.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut after = TcpStream::connect(address).await.unwrap();
        assert!(asks(&mut after).await.ends_with("fine"));
        assert!(asks(&mut before).await.ends_with("fine"), "connections that were open are not touched");
        let names: Vec<_> = background.restarted().iter().map(|task| task.name).collect();
        assert_eq!(names, ["api-accept"]);
        drop((before, after));
        connections.stop(Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn a_panic_costs_its_request_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let panics = get(async || -> &'static str { panic!("on purpose") });
        let router = Router::new().route("/panics", panics).route("/works", get(async || "fine"));
        let connections = serve_on(listener, router, &Threads::one(), 1);
        let mut stream = TcpStream::connect(address).await.unwrap();
        let close = "connection: close\r\n";
        for (path, more) in [("/panics", ""), ("/works", close)] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{more}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
        }
        let mut answers = String::new();
        stream.read_to_string(&mut answers).await.unwrap();
        assert!(answers.starts_with("HTTP/1.1 500 "), "{answers}");
        assert!(answers.contains("{\"code\":\"server_error\",\"detail\":"), "{answers}");
        assert!(answers.ends_with("fine"), "{answers}");
        connections.stop(Duration::from_secs(5)).await;
    }

    fn one_thread() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    async fn asks(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET /works HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    #[tokio::test]
    async fn while_the_threads_are_late_a_connection_without_a_slot_is_refused_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/works", get(async || "fine"));
        let api = one_thread();
        let threads = Threads { api: api.handle().clone(), accept: Handle::current() };
        let connections = serve_on(listener, router, &threads, 100);
        let mut others = Vec::new();
        for _ in 0..99 {
            others.push(TcpStream::connect(address).await.unwrap());
        }
        let mut kept = TcpStream::connect(address).await.unwrap();
        assert!(asks(&mut kept).await.ends_with("fine"));
        // Ten tasks in a queue: each takes 0.3 s of the only thread.
        let busy: Vec<_> =
            (0..10).map(|_| api.spawn(async { std::thread::sleep(MAX_WAIT * 3 / 5) })).collect();
        tokio::time::sleep(MAX_WAIT).await;
        let mut new = TcpStream::connect(address).await.unwrap();
        let told = tokio::time::timeout(MAX_WAIT / 2, asks(&mut new)).await.expect("at once");
        assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("retry-after: 1"), "{told}");
        for task in busy {
            task.await.unwrap();
        }
        let recovered = async {
            while !asks(&mut kept).await.ends_with("fine") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_millis(500), recovered)
            .await
            .expect("it is itself again at once");
        drop((kept, others));
        connections.stop(Duration::from_secs(5)).await;
        tokio::task::spawn_blocking(|| drop(api)).await.unwrap();
    }
}
