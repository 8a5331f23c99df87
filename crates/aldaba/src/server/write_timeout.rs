//! Closes connections whose clients do not read the responses they asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A response may take this many times the limit for one piece of it, and a second more for each further number of
/// bytes: a client that reads a byte now and then must not hold it for ever.
const TOTAL_LIMIT_FACTOR: u32 = 6;
const MIN_BYTES_PER_SECOND: usize = 64 * 1024;

/// Fails a write that makes no progress for a while, or that takes too long in all. Reading has its own limits, in
/// the HTTP layer and in the reading of bodies.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// Runs only while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Runs from when a write has to wait until everything is written.
    behind: Option<Behind>,
}

/// The time of a response that is not written as a whole yet. A response that is made while it is written gets more of it with
/// each further piece.
#[derive(Debug)]
struct Behind {
    over: Pin<Box<Sleep>>,
    /// Bytes that were written since, and those that it has time for.
    written: usize,
    granted: usize,
}

impl Behind {
    fn new(limit: Duration, left: usize) -> Self {
        Self { over: Box::pin(tokio::time::sleep(total_limit(limit, left))), written: 0, granted: left }
    }

    /// Grants the time for what is to be written now and was not known before.
    fn grant(&mut self, left: usize) {
        let known = self.written + left;
        if let more @ 1.. = known.saturating_sub(self.granted) / MIN_BYTES_PER_SECOND {
            self.granted += more * MIN_BYTES_PER_SECOND;
            let until = self.over.deadline() + Duration::from_secs(more as u64);
            self.over.as_mut().reset(until);
        }
    }
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, waiting: None, behind: None }
    }

    /// `left`: the bytes to be written, at most what is left of the response.
    fn within_limit(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        left: usize,
    ) -> Poll<io::Result<usize>> {
        if let Some(behind) = &mut self.behind {
            behind.grant(left);
            if behind.over.as_mut().poll(cx).is_ready() {
                let slow = "the client reads its answer too slowly";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, slow)));
            }
            behind.written += bytes_of(&written);
        }
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        if self.behind.is_none() {
            let mut behind = Behind::new(limit, left);
            let _ = behind.over.as_mut().poll(cx);
            self.behind = Some(behind);
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

fn bytes_of(written: &Poll<io::Result<usize>>) -> usize {
    match written {
        Poll::Ready(Ok(bytes)) => *bytes,
        _ => 0,
    }
}

/// How long a response of so many bytes may take in all.
pub(super) fn total_limit(limit: Duration, bytes: usize) -> Duration {
    let seconds = u64::try_from(bytes / MIN_BYTES_PER_SECOND).unwrap_or(u64::MAX);
    (limit * TOTAL_LIMIT_FACTOR).saturating_add(Duration::from_secs(seconds))
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within_limit(cx, written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.within_limit(cx, written, pieces.iter().map(|piece| piece.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when nothing is left to write. A stream with TLS may still hold some of it.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            (self.waiting, self.behind) = (None, None);
            return flushed;
        }
        self.within_limit(cx, flushed.map_ok(|()| 0), 0).map_ok(drop)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    #[test]
    fn the_larger_an_answer_the_longer_it_may_take() {
        let limit = Duration::from_secs(10);
        assert_eq!(total_limit(limit, 1000), Duration::from_secs(60));
        assert_eq!(total_limit(limit, 8 << 20), Duration::from_secs(60 + 128));
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_made_while_it_is_written_gets_time_for_each_further_piece() {
        let mut behind = Behind::new(Duration::from_secs(10), 1000);
        let begun = behind.over.deadline();
        for piece in 1..=100 {
            behind.grant(MIN_BYTES_PER_SECOND);
            assert!(behind.over.deadline() - begun <= Duration::from_secs(piece));
            behind.written += MIN_BYTES_PER_SECOND;
        }
        assert_eq!(behind.over.deadline() - begun, Duration::from_secs(99), "a second for each 64 KiB");
        behind.grant(0);
        assert_eq!(behind.over.deadline() - begun, Duration::from_secs(99), "nothing without further bytes");
    }

    #[tokio::test]
    async fn a_slow_reader_is_cut_off_in_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        let mut client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let reads_slowly = tokio::spawn(async move {
            let mut some = [0; 16 * 1024];
            while client.read(&mut some).await.is_ok_and(|read| read > 0) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let mut timed = WriteTimeout::new(stream, Duration::from_secs(5));
        // More than the system buffers, so that most of it has to wait.
        let answer = vec![0; 8 << 20];
        let begun = tokio::time::timeout(Duration::from_secs(1), timed.write_all(&answer)).await;
        assert!(begun.is_err(), "it is being read");
        assert!(timed.behind.is_some(), "its time runs");
        timed.behind = Some(Behind {
            over: Box::pin(tokio::time::sleep(Duration::from_millis(500))),
            written: 0,
            granted: usize::MAX,
        });
        let error = timed.write_all(&answer).await.unwrap_err();
        assert_eq!(error.to_string(), "the client reads its answer too slowly");
        timed.flush().await.unwrap();
        assert!(timed.behind.is_none(), "the next answer has its own time");
        reads_slowly.abort();
    }
}
