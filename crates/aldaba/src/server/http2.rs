//! HTTP/2 on a connection with TLS.
//!
//! A connection of HTTP/1.1 has one request at a time, so its limits are those of the request. Here each request is a stream
//! with limits of its own, and the connection has some for all of them: how many there are, how many are cancelled, and
//! how long there is none.

use super::connection_slots::ConnectionSlots;
use super::write_timeout::total_limit;
use crate::config::Limits;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper_util::rt::TokioTimer;
use parking_lot::Mutex;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Requests in progress on one connection. More wait at the client.
pub(super) const MAX_STREAMS: u32 = 100;
/// Bytes of a request's head, as HTTP/2 counts them. Beyond: 431.
const MAX_HEAD_BYTES: u32 = 16 * 1024;
/// Bytes of bodies that a client may send ahead of their reading: on a stream, and on the connection.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// Bytes of a response that wait for the connection; the rest waits in the response.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
const PIECE_BYTES: usize = 16 * 1024;
/// Streams that are reset before anything was done with them. One more closes the connection.
const MAX_PENDING_RESETS: usize = 20;
/// Requests that a client may cancel, however few it lets end. Beyond them, more cancelled ones than ended ones close the
/// connection.
const MAX_CANCELLED: u32 = 100;
/// How often a ping finds out whether the client is still there.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long a connection that is to close may be without a request until it is closed from here.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// The streams of one connection. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Streams(Arc<StreamCounts>);

#[derive(Debug)]
struct StreamCounts {
    slots: Arc<ConnectionSlots>,
    open: watch::Sender<usize>,
    ended: AtomicU32,
    cancelled: AtomicU32,
    flooded: Notify,
    /// The stream whose request was read last, until its task begins.
    next: Mutex<Option<Arc<StreamProgress>>>,
    /// How long a response may stand still.
    progress: Duration,
}

/// How far the response of a stream is.
#[derive(Debug, Default)]
struct StreamProgress {
    /// Pieces of the response that were taken, and one for its head; 0: it does not exist yet.
    pieces: AtomicU32,
    bytes: AtomicUsize,
}

/// A request in progress; dropping it ends it.
#[derive(Debug)]
pub(super) struct Stream {
    streams: Streams,
    progress: Arc<StreamProgress>,
    is_whole: bool,
}

/// A builder with the limits of a connection.
pub(super) fn builder(streams: &Streams, limits: &Limits) -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(StreamExecutor(streams.clone()));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(limits.progress);
    builder
}

impl Streams {
    pub(super) fn new(slots: Arc<ConnectionSlots>, limits: &Limits) -> Self {
        Self(Arc::new(StreamCounts {
            slots,
            open: watch::Sender::new(0),
            ended: AtomicU32::new(0),
            cancelled: AtomicU32::new(0),
            flooded: Notify::new(),
            next: Mutex::default(),
            progress: limits.progress,
        }))
    }

    /// A request whose head has arrived.
    pub(super) fn open(&self) -> Stream {
        let progress = Arc::new(StreamProgress::default());
        *self.0.next.lock() = Some(progress.clone());
        self.0.open.send_modify(|open| *open += 1);
        self.0.slots.stream_opened();
        Stream { streams: self.clone(), progress, is_whole: false }
    }

    /// Resolves when there has been no request for this long.
    pub(super) async fn idle(&self, limit: Duration) {
        let mut open = self.0.open.subscribe();
        loop {
            let _ = open.wait_for(|open| *open == 0).await;
            tokio::select! {
                biased;
                _ = open.changed() => {}
                () = tokio::time::sleep(limit) => return,
            }
        }
    }

    /// Resolves when a connection that is to close need not be waited for.
    pub(super) async fn left(&self) {
        self.idle(CLOSING_TIMEOUT).await;
    }

    /// Resolves when too many requests were cancelled.
    pub(super) async fn flooded(&self) {
        self.0.flooded.notified().await;
    }
}

impl Stream {
    /// The response, which ends the stream with its last piece.
    pub(super) fn respond(self, response: Response) -> http::Response<StreamBody> {
        self.progress.pieces.store(1, Ordering::Relaxed);
        let bytes = response.body().size_hint().exact().unwrap_or(0);
        self.progress.bytes.store(usize::try_from(bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
        response.map(|body| StreamBody { body, rest: Bytes::new(), stream: self })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let StreamCounts { slots, open, ended, cancelled, flooded, .. } = &*self.streams.0;
        slots.stream_closed();
        open.send_modify(|open| *open -= 1);
        if self.is_whole {
            ended.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let cancelled = 1 + cancelled.fetch_add(1, Ordering::Relaxed);
        if cancelled > MAX_CANCELLED && cancelled > ended.load(Ordering::Relaxed) {
            flooded.notify_one();
        }
    }
}

/// A body in pieces that are taken only when the client has room for them.
#[derive(Debug)]
pub(super) struct StreamBody {
    body: Body,
    rest: Bytes,
    stream: Stream,
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.stream.progress.pieces.fetch_add(1, Ordering::Relaxed);
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                other => {
                    self.stream.is_whole = other.is_none();
                    return Poll::Ready(other);
                }
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(piece);
        self.stream.is_whole = self.is_end_stream();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        // A body without any piece is never asked for one.
        self.stream.is_whole |= self.is_end_stream();
    }
}

/// Runs the streams of a connection, each until its response is sent or its client takes none of it for too long. What is
/// given up is reset.
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor(Streams);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        // The library runs a stream right after its request was passed on.
        let progress = self.0.0.next.lock().take();
        let limit = self.0.0.progress;
        tokio::spawn(async move {
            let mut stream = pin!(stream);
            let Some(progress) = progress else { return stream.await };
            let mut last = 0;
            let mut waited = Duration::ZERO;
            loop {
                if tokio::time::timeout(limit, stream.as_mut()).await.is_ok() {
                    return;
                }
                let pieces = progress.pieces.load(Ordering::Relaxed);
                let whole = total_limit(limit, progress.bytes.load(Ordering::Relaxed));
                if pieces > 0 && (pieces == last || waited >= whole) {
                    tracing::debug!("a client does not read the answer to a request; the stream is reset");
                    return;
                }
                if pieces > 0 {
                    waited += limit;
                }
                last = pieces;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::server::connection_table::ConnectionTable;
    use axum::response::IntoResponse;
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    fn streams() -> Streams {
        let slots = Arc::new(ConnectionSlots::new(4, 4, ConnectionTable::new(0)));
        Streams::new(slots, &Config::default().limits)
    }

    #[tokio::test]
    async fn a_body_is_passed_on_in_pieces_and_whole() {
        let streams = streams();
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut body = streams.open().respond(bytes.clone().into_response()).into_body();
        assert_eq!(streams.0.slots.load(), 1, "a request counts as a connection does");
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            assert_eq!(
                body.size_hint().exact(),
                Some(
                    (bytes.len() - all.len()) as u64
                        - frame.as_ref().unwrap().data_ref().unwrap().len() as u64
                )
            );
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PIECE_BYTES);
            all.extend_from_slice(&data);
        }
        assert_eq!(all, bytes);
        drop(body);
        assert_eq!((streams.0.ended.load(Ordering::Relaxed), streams.0.slots.load()), (1, 0));
    }

    #[test]
    fn a_client_that_cancels_more_than_it_lets_end_is_noticed() {
        let streams = streams();
        for _ in 0..150 {
            drop(streams.open().respond("".into_response()));
        }
        for _ in 0..150 {
            drop(streams.open());
        }
        assert!(streams.flooded().now_or_never().is_none(), "as many ended");
        drop(streams.open().respond("some".into_response()));
        assert!(streams.flooded().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_only_after_it_was_without_requests_for_long_enough() {
        let streams = streams();
        let stream = streams.open();
        let limit = Duration::from_secs(10);
        let idle = tokio::spawn({
            let streams = streams.clone();
            async move { streams.idle(limit).await }
        });
        tokio::time::sleep(limit * 2).await;
        assert!(!idle.is_finished(), "a request is in progress");
        drop(stream);
        tokio::time::sleep(limit / 2).await;
        drop(streams.open());
        tokio::time::sleep(limit * 3 / 4).await;
        assert!(!idle.is_finished(), "another request has come meanwhile");
        tokio::time::sleep(limit / 2).await;
        assert!(idle.is_finished());
    }
}
