//! Accepts connections, up to a limit, and refuses those that would wait too long.

use super::connection::{ConnectionServer, ServingPhase, reached};
use super::connection_slots::{ConnectionSlots, RejectReason, reject};
use super::connection_table::{ConnectionTable, TooManyConnections};
use super::forwarded::{Peer, TrustedProxies};
use super::request::Requests;
use super::scheduling_delay::SchedulingDelay;
use super::tls::ListenerTls;
use crate::api::Routers;
use crate::config::Limits;
use crate::metrics::Metrics;
use crate::runtimes::Threads;
use aldaba_engine::Background;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

/// The pause while the system has no more file descriptors or memory for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Connections that the system keeps until they are accepted; it may allow fewer. Connections beyond the limit retry
/// after a second or more, so a burst of clients should fit.
const BACKLOG: u32 = 4096;

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
    use tokio::net::TcpStream;
    use tokio::runtime::{Builder, Handle, Runtime};

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
