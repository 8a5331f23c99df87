//! A receiver that follows a script, byte by byte.

use socket2::SockRef;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
    signals: mpsc::UnboundedReceiver<Signal>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// What a script signals to the test.
#[derive(Debug)]
pub(crate) enum Signal {
    Request(Request),
    /// The client closed the connection.
    Closed,
    /// The receiver closed it.
    HungUp,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Line<S = TcpStream> {
    pub(crate) stream: S,
    counts: Arc<Counts>,
    signals: mpsc::UnboundedSender<Signal>,
}

impl Receiver {
    /// Runs the script for each connection.
    pub(crate) async fn start<F>(script: impl Fn(Line) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(crate) async fn start_at<F>(address: &str, script: impl Fn(Line) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let (sender, signals) = mpsc::unbounded_channel();
        let shared = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let line = Line { stream, counts: Arc::clone(&shared), signals: sender.clone() };
                tokio::spawn(script(line));
            }
        });
        Self { address, counts, signals }
    }

    /// Answers each request on each connection with the same bytes.
    pub(crate) async fn answering(bytes: &'static [u8]) -> Self {
        Self::start(move |mut line| async move {
            while line.request().await.is_some() {
                line.write(bytes).await;
            }
        })
        .await
    }

    /// Answers one request, then holds the connection until the client closes it.
    pub(crate) async fn answering_once(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut line| {
            let bytes = bytes.clone();
            async move {
                line.request().await;
                line.write(&bytes).await;
                line.until_closed().await;
            }
        })
        .await
    }

    /// Answers one request and closes.
    pub(crate) async fn answering_and_closing(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut line| {
            let bytes = bytes.clone();
            async move {
                line.request().await;
                line.write(&bytes).await;
            }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    pub(crate) async fn signal(&mut self) -> Signal {
        let signal = tokio::time::timeout(Duration::from_secs(5), self.signals.recv()).await;
        signal.expect("the receiver signals in time").expect("the receiver lives")
    }

    /// The next request that arrives.
    pub(crate) async fn request(&mut self) -> Request {
        loop {
            if let Signal::Request(request) = self.signal().await {
                return request;
            }
        }
    }

    /// Waits until the client has closed a connection.
    pub(crate) async fn closed(&mut self) {
        while !matches!(self.signal().await, Signal::Closed) {}
    }

    /// Waits until the receiver's script has closed a connection.
    pub(crate) async fn hung_up(&mut self) {
        while !matches!(self.signal().await, Signal::HungUp) {}
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    /// Reads one whole request; `None` if the connection ends before it.
    pub(crate) async fn request(&mut self) -> Option<Request> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if matches!(self.stream.read_buf(&mut bytes).await, Ok(0) | Err(_)) {
                let _ = self.signals.send(Signal::Closed);
                return None;
            }
        };
        let mut body = bytes.split_off(head_end);
        let head = String::from_utf8(bytes).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        body.reserve(length.unwrap_or(0));
        while body.len() < length.unwrap_or(0) {
            if matches!(self.stream.read_buf(&mut body).await, Ok(0) | Err(_)) {
                let _ = self.signals.send(Signal::Closed);
                return None;
            }
        }
        let request = Request { head, body };
        self.counts.requests.fetch_add(1, Ordering::SeqCst);
        let _ = self.signals.send(Signal::Request(request.clone()));
        Some(request)
    }

    /// Writes while the client still reads.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Writes one byte at a time, with a pause in between.
    pub(crate) async fn trickle(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if !self.write(&[*byte]).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.until_closed().await;
    }

    pub(crate) async fn write_forever(&mut self, bytes: &[u8]) {
        while self.write(bytes).await {}
        let _ = self.signals.send(Signal::Closed);
    }

    pub(crate) async fn until_closed(&mut self) {
        let mut buffer = [0; 4096];
        while matches!(self.stream.read(&mut buffer).await, Ok(read) if read > 0) {}
        let _ = self.signals.send(Signal::Closed);
    }
}

impl Line {
    pub(crate) fn hang_up(self) {
        drop(self.stream);
        let _ = self.signals.send(Signal::HungUp);
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
        self.hang_up();
    }

    pub(crate) fn split(self) -> (TcpStream, Line<()>) {
        let (line, stream) = self.apart();
        (stream, line)
    }
}

impl<S> Line<S> {
    pub(crate) fn apart(self) -> (Line<()>, S) {
        let Self { stream, counts, signals } = self;
        (Line { stream: (), counts, signals }, stream)
    }
}

impl Line<()> {
    pub(crate) fn joined<T>(self, stream: T) -> Line<T> {
        Line { stream, counts: self.counts, signals: self.signals }
    }
}
