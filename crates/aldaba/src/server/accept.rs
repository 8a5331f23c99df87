//! Accepting connections, up to a number, and serving HTTP/1.1 on each.

use super::places::{Place, Places, turn_away};
use super::request::Requests;
use super::stall::Stall;
use crate::config::Limits;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Headers of a request, and bytes of its whole head. Beyond: 431. (To a head that cannot be read hyper
/// answers by itself, 400, 414 or 431, and lets nobody give that answer a body.)
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 * 1024;
/// What is read from a connection at once; bodies go through it in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long to wait when the system has no more file descriptors or memory for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that the system keeps until they are accepted; it may allow fewer. Those beyond try again
/// after a second and more, so a burst of clients should fit.
const BACKLOG: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Requests under way may end; no others begin.
    Ending,
    /// Whatever is left is dropped.
    Over,
}

/// A socket that many may come to at once.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a former server that are still ending must not keep this one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The connections that are being served.
#[derive(Debug)]
pub(super) struct Connections {
    phase: watch::Sender<Phase>,
    places: Arc<Places>,
}

impl Connections {
    pub(super) fn serve(listener: TcpListener, router: Router, limits: &Limits, api: &Handle) -> Self {
        let (phase, heard) = watch::channel(Phase::Serving);
        let places = Arc::new(Places::new(limits.connections));
        let served = Self { phase, places: places.clone() };
        let requests = Requests::new(router);
        api.spawn(accept(listener, requests, limits.clone(), places, heard));
        served
    }

    /// Accepts no more and returns when the last connection has closed, or when time is up.
    pub(super) async fn stop(self, limit: Duration) {
        self.phase.send_replace(Phase::Ending);
        let _ = tokio::time::timeout(limit, self.places.empty()).await;
        self.phase.send_replace(Phase::Over);
    }
}

/// Resolves once it has come so far, or nobody is left to say so.
async fn reached(phase: &mut watch::Receiver<Phase>, at_least: Phase) {
    let _ = phase.wait_for(|phase| *phase >= at_least).await;
}

async fn accept(
    listener: TcpListener,
    requests: Requests,
    limits: Limits,
    places: Arc<Places>,
    mut phase: watch::Receiver<Phase>,
) {
    loop {
        // The door first: beyond that, connections wait in the system's queue.
        let next = async { (places.come_to_the_door().await, listener.accept().await) };
        let (door, accepted) = tokio::select! {
            biased;
            () = reached(&mut phase, Phase::Ending) => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let (places, requests, limits) = (places.clone(), requests.clone(), limits.clone());
                let phase = phase.clone();
                tokio::spawn(async move {
                    match places.come_in(door).await {
                        Ok(place) => serve(stream, requests, limits, place, phase).await,
                        Err(door) => turn_away(stream, door).await,
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    requests: Requests,
    limits: Limits,
    place: Place,
    mut phase: watch::Receiver<Phase>,
) {
    // Answers are small and written at once; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let requests = requests.clone();
        async move { Ok::<_, std::convert::Infallible>(requests.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_headers(HEADERS)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(Stall::new(stream, limits.progress)), service);
    let mut connection = pin!(connection);
    let closed = tokio::select! {
        biased;
        closed = connection.as_mut() => closed,
        () = reached(&mut phase, Phase::Ending) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                closed = connection.as_mut() => closed,
                () = reached(&mut phase, Phase::Over) => Ok(()),
            }
        }
    };
    if let Err(error) = closed {
        tracing::debug!(%error, "a connection broke off");
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_panic_costs_its_request_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let panics = get(async || -> &'static str { panic!("on purpose") });
        let router = Router::new().route("/panics", panics).route("/works", get(async || "fine"));
        let connections = Connections::serve(listener, router, &Config::default().limits, &Handle::current());
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
}
