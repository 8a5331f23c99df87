use super::exchange::{Exchanged, Interrupted, MAX_HEAD, broken, lost, malformed, read_head, too_much};
use super::progress::{MAX_BODY_FRAMES, MAX_INTERIM_HEADS, Progress, Stage};
use super::stream::Stream;
use crate::delivering::RESPONSE_KEPT;
use aldaba_delivery::{AttemptFailure, FailureKind};
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::{Request, Response};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// The most requests at once over one connection, however many the receiver would take.
pub(super) const MOST_STREAMS: usize = 100;

/// What a receiver may send ahead of being read, in bytes: for one answer, and over one connection.
const STREAM_WINDOW: u32 = 32 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 - 1;

/// The most bytes that a receiver may send for each request under way: its head, interim heads, what is kept of
/// the body, and what it says about the connection itself.
const MAX_BYTES_PER_REQUEST: usize = 256 * 1024;

/// The most bytes of a request's body that are handed to the connection at once.
const CHUNK: usize = 64 * 1024;

/// A connection is asked so often whether it lives, and has so long to say so.
const PING_EVERY: Duration = Duration::from_secs(15);
const PONG_WITHIN: Duration = Duration::from_secs(15);

/// One HTTP/2 connection. It is driven by a task of its own, which ends when this is dropped, and
/// the socket with it.
pub(super) struct Line {
    sender: SendRequest<Bytes>,
    ended: Arc<AtomicBool>,
    driver: AbortHandle,
    under_way: AtomicUsize,
    progress: Arc<Progress>,
}

/// How far a request has come, for whoever gives it up.
#[derive(Debug, Default)]
pub(super) struct StageCell(AtomicU8);

impl StageCell {
    const STAGES: [Stage; 5] = [Stage::Queued, Stage::Sending, Stage::Answer, Stage::FinalHead, Stage::Body];

    /// Stages follow each other: one that is passed does not come back.
    fn reach(&self, stage: Stage) {
        let number = Self::STAGES.iter().position(|known| *known == stage).unwrap_or_default();
        self.0.fetch_max(u8::try_from(number).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Stage {
        Self::STAGES[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

/// Counts a request that is under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Line {
    /// Waits for the receiver's settings, so that its limits are known before the first request.
    pub(super) async fn open(stream: Stream) -> Result<Self, AttemptFailure> {
        let progress = Arc::clone(stream.progress());
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD as u32)
            .max_send_buffer_size(CHUNK)
            .enable_push(false)
            // None before the receiver has said how many.
            .initial_max_send_streams(0)
            .handshake(stream)
            .await;
        let (sender, mut connection) = handshake.map_err(|error| not_opened(&error))?;
        std::future::poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Err(closed_early())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(not_opened(&error))),
            Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        let ended = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive(connection, Arc::clone(&ended))).abort_handle();
        Ok(Self { sender, ended, driver, under_way: AtomicUsize::new(0), progress })
    }

    /// How many requests may be under way at once.
    pub(super) fn room(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_STREAMS)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    /// Sends one request and reads its answer. Whoever drops this future (a deadline) resets the
    /// stream and leaves the connection to the others.
    pub(super) async fn exchange(
        &self,
        head: Request<()>,
        body: Bytes,
        stage: &StageCell,
    ) -> Result<Exchanged, Interrupted> {
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        let _counted = UnderWay(&self.under_way);
        self.progress.allow(under_way * MAX_BYTES_PER_REQUEST);
        let mut sender = self.sender.clone();
        let (response, upload) = match sender.send_request(head, body.is_empty()) {
            Ok(streams) => streams,
            // The connection has ended, or the receiver has said that it will (GOAWAY).
            Err(error) if error.is_io() || error.is_go_away() || !self.is_open() => {
                return Err(Interrupted::unsent(broken("connection closed before the request was sent")));
            }
            Err(error) => {
                return Err(
                    AttemptFailure { kind: FailureKind::Internal, detail: error.to_string().into() }.into()
                );
            }
        };
        // The receiver may have lowered its limit since the place was taken: then the stream waits in our own
        // library, and nothing has left.
        std::future::poll_fn(|cx| sender.poll_ready(cx))
            .await
            .map_err(|error| self.interrupted(&error, false))?;
        stage.reach(Stage::Sending);
        let receiving = pin!(self.receive(response, stage));
        let sending = async {
            if send(upload, body).await.is_some() {
                stage.reach(Stage::Answer);
            }
        };
        // An answer may come before the request has been sent, and a stream that takes no more of the
        // request may still bring one.
        match select(receiving, pin!(sending)).await {
            Either::Left((received, _)) => received,
            Either::Right(((), receiving)) => receiving.await,
        }
    }

    async fn receive(&self, response: ResponseFuture, stage: &StageCell) -> Result<Exchanged, Interrupted> {
        let response = final_head(response, stage).await.map_err(|error| match error {
            Some(error) => self.interrupted(&error, false),
            None => Interrupted::hostile(too_much(Stage::FinalHead)),
        })?;
        stage.reach(Stage::Body);
        let (answer, location, body) = read_head(response);
        let body = read_body(body).await.map_err(|error| self.interrupted(&error, true))?;
        Ok(Exchanged { answer, body, location, reusable: None })
    }

    fn interrupted(&self, error: &h2::Error, answered: bool) -> Interrupted {
        if self.progress.is_spent() {
            return Interrupted::hostile(malformed("the receiver sent far more than its answers need"));
        }
        interrupted(error, answered)
    }
}

/// The final head; the interim ones before it are counted. `Err(None)`: they were too many.
async fn final_head(
    mut response: ResponseFuture,
    stage: &StageCell,
) -> Result<Response<RecvStream>, Option<h2::Error>> {
    let mut interim_heads = 0;
    std::future::poll_fn(|cx| {
        while let Poll::Ready(Some(interim)) = response.poll_informational(cx) {
            interim?;
            stage.reach(Stage::FinalHead);
            interim_heads += 1;
            if interim_heads > MAX_INTERIM_HEADS {
                return Poll::Ready(Err(None));
            }
        }
        Pin::new(&mut response).poll(cx).map_err(Some)
    })
    .await
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn drive(mut connection: Connection<Stream, Bytes>, ended: Arc<AtomicBool>) {
    let living = pin!(lives(connection.ping_pong()));
    // Dropped with this task: that ends the requests which are under way.
    let connection = pin!(connection);
    drop(select(connection, living).await);
    ended.store(true, Ordering::Release);
}

/// Ends when the receiver no longer answers.
async fn lives(pings: Option<PingPong>) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        sleep(PING_EVERY).await;
        match timeout(PONG_WITHIN, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

async fn send(mut upload: SendStream<Bytes>, mut body: Bytes) -> Option<()> {
    while !body.is_empty() {
        upload.reserve_capacity(body.len().min(CHUNK));
        let room = std::future::poll_fn(|cx| upload.poll_capacity(cx)).await?.ok()?;
        let chunk = body.split_to(room.min(body.len()));
        upload.send_data(chunk, body.is_empty()).ok()?;
    }
    Some(())
}

/// What is kept of the body. Past it nothing is read: the stream is reset.
async fn read_body(mut body: RecvStream) -> Result<Bytes, h2::Error> {
    let mut kept = BytesMut::new();
    for _ in 0..MAX_BODY_FRAMES {
        let Some(data) = body.data().await.transpose()? else { break };
        let room = RESPONSE_KEPT - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        if kept.len() == RESPONSE_KEPT {
            break;
        }
        body.flow_control().release_capacity(data.len())?;
    }
    Ok(kept.freeze())
}

fn interrupted(error: &h2::Error, answered: bool) -> Interrupted {
    let when = if answered { "in the middle of the response body" } else { "before any answer" };
    let reason = error.reason().unwrap_or(Reason::NO_ERROR);
    let failure = if let Some(io) = error.get_io() {
        lost(io, false).unwrap_or_else(|| broken(format!("connection closed {when}")))
    } else if error.is_remote() && error.is_go_away() {
        broken(format!("the receiver closed the connection {when} ({reason:?})"))
    } else if error.is_remote() {
        broken(format!("the receiver reset the stream {when} ({reason:?})"))
    } else {
        malformed(format!(
            "not acceptable as HTTP/2 ({reason:?}), or a head larger than {} KiB",
            MAX_HEAD / 1024
        ))
    };
    // A stream that the receiver refused, or that came after the last one it will look at, has not
    // been processed: the two cases in which the standard lets a client send it again.
    let refused =
        error.is_remote() && (error.is_go_away() || error.is_reset() && reason == Reason::REFUSED_STREAM);
    Interrupted { unsent: refused && !answered, ..failure.into() }
}

fn not_opened(error: &h2::Error) -> AttemptFailure {
    match error.get_io() {
        Some(io) => super::tls::certificate_alert(io).unwrap_or_else(closed_early),
        None => malformed("the receiver chose HTTP/2 and did not speak it"),
    }
}

fn closed_early() -> AttemptFailure {
    let detail = "the receiver closed the connection during the HTTP/2 handshake".into();
    AttemptFailure { kind: FailureKind::Connect, detail }
}
