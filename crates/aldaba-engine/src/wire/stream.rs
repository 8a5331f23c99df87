use super::progress::ExchangeProgress;
use socket2::SockRef;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The most bytes that one connection reads before it yields to other tasks. The runtime counts reads, not
/// bytes: 128 reads can be megabytes.
const MAX_BURST_BYTES: usize = 64 * 1024;

/// A TCP connection that tracks whether anything was written: only a request without a sent byte may move to
/// another connection. It limits what is read per request and per poll.
#[derive(Debug)]
pub(super) struct Socket {
    tcp: TcpStream,
    has_written: bool,
    /// Bytes read since the socket was last empty, or yielded.
    burst: usize,
    progress: Arc<ExchangeProgress>,
}

/// A connection to a receiver.
#[derive(Debug)]
pub(super) enum WireStream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl Socket {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, has_written: false, burst: 0, progress: Arc::default() }
    }
}

impl WireStream {
    /// Resets the counters for the next request.
    pub(super) fn begin_request(&mut self) {
        let socket = self.socket_mut();
        socket.has_written = false;
        socket.progress.start();
    }

    pub(super) fn progress(&self) -> &Arc<ExchangeProgress> {
        &self.socket().progress
    }

    pub(super) fn has_written(&self) -> bool {
        self.socket().has_written
    }

    /// Whether nothing arrived since the last response. It asks the kernel, because the runtime may not yet
    /// know that the receiver closed the connection. Unexpected bytes make a connection as unusable as a
    /// close.
    pub(super) fn is_idle(&self) -> bool {
        let peeked = SockRef::from(&self.socket().tcp).peek(&mut [MaybeUninit::uninit()]);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether the receiver chose HTTP/2 in the TLS handshake.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    fn socket_mut(&mut self) -> &mut Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_mut().0,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.progress.is_exhausted() {
            return Poll::Ready(Err(io::Error::other("the receiver sent more than an answer may have")));
        }
        if self.burst >= MAX_BURST_BYTES {
            self.burst = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let Poll::Ready(result) = Pin::new(&mut self.tcp).poll_read(cx, buf) else {
            self.burst = 0;
            return Poll::Pending;
        };
        let read = buf.filled().len() - before;
        self.burst += read;
        self.progress.consume(read);
        Poll::Ready(result)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.progress.note_write(result.is_pending());
        let result = ready!(result);
        self.has_written |= matches!(result, Ok(written) if written > 0);
        Poll::Ready(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.progress.note_write(result.is_pending());
        let result = ready!(result);
        self.has_written |= matches!(result, Ok(written) if written > 0);
        Poll::Ready(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

impl AsyncRead for WireStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let before = buf.filled().len();
        let result = match stream {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        };
        if buf.filled().len() > before {
            stream.progress().note_response_bytes();
        }
        result
    }
}

impl AsyncWrite for WireStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    async fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Socket::new(client), listener.accept().await.unwrap().0)
    }

    /// The bytes read in one poll, and whether reading failed.
    async fn read_in_one_poll(socket: &mut Socket) -> (usize, bool) {
        let mut total = 0;
        poll_fn(|cx| {
            loop {
                let mut bytes = [0; 16 * 1024];
                let mut buffer = ReadBuf::new(&mut bytes);
                match Pin::new(&mut *socket).poll_read(cx, &mut buffer) {
                    Poll::Ready(Ok(())) => total += buffer.filled().len(),
                    Poll::Ready(Err(_)) => return Poll::Ready((total, true)),
                    // The runtime also returns pending after a number of reads.
                    Poll::Pending => return Poll::Ready((total, false)),
                }
            }
        })
        .await
    }

    #[tokio::test]
    async fn a_socket_that_is_always_readable_yields_after_its_share() {
        let (mut socket, mut peer) = pair().await;
        socket.progress.allow(usize::MAX);
        let sent = MAX_BURST_BYTES * 4;
        let writing = tokio::spawn(async move {
            peer.write_all(&vec![1; sent]).await.unwrap();
            peer
        });
        let mut read = 0;
        while read < sent {
            let (once, failed) = read_in_one_poll(&mut socket).await;
            assert!(!failed && once < MAX_BURST_BYTES + 16 * 1024, "{once}");
            read += once;
            tokio::task::yield_now().await;
        }
        drop(writing.await.unwrap());
    }

    #[tokio::test]
    async fn nothing_is_read_past_what_the_request_allows() {
        let (mut socket, mut peer) = pair().await;
        socket.progress.start();
        let flood = tokio::spawn(async move { while peer.write_all(&[1; 4096]).await.is_ok() {} });
        let mut read = 0;
        loop {
            let (once, failed) = read_in_one_poll(&mut socket).await;
            read += once;
            if failed {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(socket.progress.is_exhausted() && read < 256 * 1024, "{read}");
        drop(socket);
        flood.await.unwrap();
    }
}
