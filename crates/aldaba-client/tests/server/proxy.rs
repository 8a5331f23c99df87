//! A proxy between client and server that records requests, and can inject faults.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::net::{TcpListener, TcpStream};

/// What happens to a request in the place of being passed on.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The server gets it; its answer never arrives.
    CutAnswer,
    /// The server gets it; its answer never arrives, and the connection stays.
    HoldAnswer,
    /// The server does not get it, and the connection breaks.
    CutRequest,
    /// The server does not get it, and the connection stays.
    HoldRequest,
    /// Answers this, with `Retry-After`.
    Answer(u16, Option<u32>, &'static str),
    /// Answers busy in HTML, with a `Retry-After` date.
    BusyUntil(SystemTime),
    /// Answers without end.
    Endless(u16),
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    faults: Mutex<VecDeque<Fault>>,
    seen: Mutex<Vec<Seen>>,
    connections: Mutex<usize>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            target,
            faults: Mutex::default(),
            seen: Mutex::default(),
            connections: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *shared.connections.lock().unwrap() += 1;
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| Arc::clone(&shared).serve(request));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, state }
    }

    /// What happens to the next requests.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.lock().unwrap().extend(faults);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }
}

type Body = BoxBody<Bytes, io::Error>;

fn full(body: &'static str) -> Body {
    Full::new(Bytes::from_static(body.as_bytes())).map_err(io::Error::other).boxed()
}

impl State {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let seen = Seen {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            headers: parts.headers.clone(),
        };
        self.seen.lock().unwrap().push(seen);
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            None => self.forward(Request::from_parts(parts, Full::new(body))).await,
            Some(Fault::CutRequest) => Err(io::Error::other("cut on purpose")),
            Some(Fault::CutAnswer) => {
                self.forward(Request::from_parts(parts, Full::new(body))).await?;
                Err(io::Error::other("cut on purpose"))
            }
            Some(Fault::HoldAnswer) => {
                self.forward(Request::from_parts(parts, Full::new(body))).await?;
                std::future::pending().await
            }
            Some(Fault::HoldRequest) => std::future::pending().await,
            Some(Fault::Answer(status, after, body)) => {
                let mut response = Response::builder().status(status);
                if let Some(seconds) = after {
                    response = response.header("retry-after", seconds);
                }
                response.body(full(body)).map_err(io::Error::other)
            }
            Some(Fault::BusyUntil(moment)) => Response::builder()
                .status(503)
                .header("retry-after", httpdate::fmt_http_date(moment))
                .body(full("<html>busy</html>"))
                .map_err(io::Error::other),
            Some(Fault::Endless(status)) => {
                let chunk = || Ok(Frame::data(Bytes::from_static(&[b'x'; 1 << 16])));
                let body = StreamBody::new(futures_util::stream::repeat_with(chunk)).boxed();
                Response::builder().status(status).body(body).map_err(io::Error::other)
            }
        }
    }

    async fn forward(&self, request: Request<Full<Bytes>>) -> io::Result<Response<Body>> {
        let stream = TokioIo::new(TcpStream::connect(self.target).await?);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(parts, Full::new(body).map_err(io::Error::other).boxed()))
    }
}
