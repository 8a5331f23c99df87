//! The part of HTTP/1.1 that the load and the receiver need. Both share two cores with the server, so it must be cheap.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MAX_HEAD_BYTES: usize = 64 << 10;
const READ: usize = 4 << 10;

thread_local! {
    /// A buffer for discarded data, shared by all connections.
    static BIN: RefCell<Vec<u8>> = RefCell::new(vec![0; 256 << 10]);
}

/// A connection, of a client or a server.
pub(crate) struct Stream {
    socket: TcpStream,
    /// Data that was read and not used yet.
    buffer: Vec<u8>,
}

/// The relevant part of the head of a request or an answer.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The request line or the status line.
    pub(crate) line: String,
    /// The length of the body in bytes.
    pub(crate) length: usize,
    pub(crate) retry_after: bool,
    /// Whether the connection closes after this.
    pub(crate) last: bool,
}

impl Head {
    /// The path of a request, the status of an answer.
    pub(crate) fn second_word(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

impl Stream {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(READ) })
    }

    /// Whether the other side still holds the connection open, between two requests.
    pub(crate) fn is_open(&self) -> bool {
        let read = self.socket.try_read(&mut [0]);
        matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Reads the next head; `None` if the other side has closed the connection between two.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        let mut searched = 0;
        loop {
            let from = usize::saturating_sub(searched, 3);
            if let Some(at) = self.buffer[from..].windows(4).position(|end| end == b"\r\n\r\n") {
                let end = from + at + 4;
                let head = parse(&self.buffer[..end])?;
                self.buffer.drain(..end);
                return Ok(Some(head));
            }
            searched = self.buffer.len();
            if searched > MAX_HEAD_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
            if self.read().await? == 0 {
                return if searched == 0 { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// Reads a body of this length; returns its beginning, up to `keep` bytes.
    pub(crate) async fn body(&mut self, length: usize, keep: usize) -> io::Result<Vec<u8>> {
        let keep = keep.min(length);
        while self.buffer.len() < keep {
            if self.read().await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let kept = self.buffer[..keep].to_vec();
        let there = self.buffer.len().min(length);
        self.buffer.drain(..there);
        discard(&self.socket, length - there).await?;
        Ok(kept)
    }

    /// Reads until the other side closes the connection.
    pub(crate) async fn ended(&mut self) {
        let _ = discard(&self.socket, usize::MAX).await;
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ);
        self.socket.read_buf(&mut self.buffer).await
    }
}

fn parse(bytes: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData)?;
    let mut lines = text.lines();
    let mut head = Head { line: lines.next().unwrap_or_default().to_owned(), ..Head::default() };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            head.length = value.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
        } else if name.eq_ignore_ascii_case("retry-after") {
            head.retry_after = true;
        } else if name.eq_ignore_ascii_case("connection") {
            head.last = value.trim().eq_ignore_ascii_case("close");
        }
    }
    Ok(head)
}

async fn discard(socket: &TcpStream, mut left: usize) -> io::Result<()> {
    while left > 0 {
        socket.readable().await?;
        let read = BIN.with_borrow_mut(|bin| {
            let most = bin.len().min(left);
            socket.try_read(&mut bin[..most])
        });
        match read {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => left -= count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
