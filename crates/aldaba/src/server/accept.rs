//! Accepting connections, up to a number, and serving HTTP/1.1 on each.

use super::request::Requests;
use super::stall::Stall;
use crate::config::Limits;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Headers of a request, and bytes of its whole head. Beyond: 431. (To a head that cannot be read hyper
/// answers by itself, 400, 414 or 431, and lets nobody give that answer a body.)
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 * 1024;
/// What is read from a connection at once; bodies go through it in pieces.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long to wait when the system has no more file descriptors or memory for a connection.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Requests under way may end; no others begin.
    Ending,
    /// Whatever is left is dropped.
    Over,
}

/// The connections that are being served.
#[derive(Debug)]
pub(super) struct Connections {
    phase: watch::Sender<Phase>,
    /// One for each open connection.
    places: Arc<Semaphore>,
    count: usize,
}

impl Connections {
    pub(super) fn serve(listener: TcpListener, router: Router, limits: &Limits) -> Self {
        let (phase, heard) = watch::channel(Phase::Serving);
        let places = Arc::new(Semaphore::new(limits.connections));
        let served = Self { phase, places: places.clone(), count: limits.connections };
        let requests = Requests::new(router);
        tokio::spawn(accept(listener, requests, limits.clone(), places, heard));
        served
    }

    /// Accepts no more and returns when the last connection has closed, or when time is up.
    pub(super) async fn stop(self, limit: Duration) {
        self.phase.send_replace(Phase::Ending);
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(limit, self.places.acquire_many(all)).await;
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
    places: Arc<Semaphore>,
    mut phase: watch::Receiver<Phase>,
) {
    loop {
        // A place first: whoever is one too many waits in the system's queue.
        let (place, connection) = tokio::select! {
            biased;
            () = reached(&mut phase, Phase::Ending) => return,
            place = places.clone().acquire_owned() => {
                let Ok(place) = place else { return };
                tokio::select! {
                    biased;
                    () = reached(&mut phase, Phase::Ending) => return,
                    accepted = listener.accept() => (place, accepted),
                }
            }
        };
        match connection {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, requests.clone(), limits.clone(), place, phase.clone()));
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
    place: OwnedSemaphorePermit,
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
        let connections = Connections::serve(listener, router, &Config::default().limits);
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
