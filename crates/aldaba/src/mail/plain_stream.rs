//! A connection that begins without encryption and may go on with it.

use lettre::transport::smtp::client::AsyncTokioStream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The first byte of a TLS handshake. No command begins with it.
const HANDSHAKE: u8 = 0x16;

/// Returns one byte at a time until encryption begins. A reader behind it that reads ahead would keep what came in the clear
/// after the answer to `STARTTLS`, and take it for encrypted answers: anybody on the way could write them.
#[derive(Debug)]
pub(super) struct PlainStream {
    tcp: TcpStream,
    is_encrypted: bool,
}

impl PlainStream {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, is_encrypted: false }
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_encrypted {
            return Pin::new(&mut self.tcp).poll_read(cx, buf);
        }
        let mut byte = [0; 1];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut one))?;
        buf.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_encrypted |= bytes.first() == Some(&HANDSHAKE);
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

impl AsyncTokioStream for PlainStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.peer_addr()
    }
}
