use super::http1::{
    ExchangeError, ExchangeResponse, MAX_HEAD, broken, limit_exceeded, local_failure, malformed, read_head,
};
use super::progress::{ExchangeProgress, ExchangeStage, MAX_BODY_FRAMES, MAX_INTERIM_HEADS};
use super::stream::WireStream;
use crate::delivering::MAX_STORED_RESPONSE_BYTES;
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

/// The most concurrent requests over one connection, whatever the receiver allows.
pub(super) const MAX_STREAMS: usize = 100;

/// Flow-control windows, in bytes: for one response, and for one connection.
const STREAM_WINDOW_BYTES: u32 = 32 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 - 1;

/// The most bytes that a receiver may send per request in flight: heads, the part of the body that is kept,
/// and frames about the connection.
const MAX_BYTES_PER_REQUEST: usize = 256 * 1024;

/// The most bytes of a request body that are given to the connection at once.
const UPLOAD_CHUNK_BYTES: usize = 64 * 1024;

/// How often a connection is pinged, and how long the receiver has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PONG_TIMEOUT: Duration = Duration::from_secs(15);

/// One HTTP/2 connection. A task drives it; the task and the socket end when this is dropped.
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    is_closed: Arc<AtomicBool>,
    driver: AbortHandle,
    active_requests: AtomicUsize,
    progress: Arc<ExchangeProgress>,
}

/// The stage of a request, readable when it is given up.
#[derive(Debug, Default)]
pub(super) struct StageCell(AtomicU8);

impl StageCell {
    const STAGES: [ExchangeStage; 5] = [
        ExchangeStage::Queued,
        ExchangeStage::Sending,
        ExchangeStage::Answer,
        ExchangeStage::FinalHead,
        ExchangeStage::Body,
    ];

    /// Stages only advance.
    fn reach(&self, stage: ExchangeStage) {
        let number = Self::STAGES.iter().position(|known| *known == stage).unwrap_or_default();
        self.0.fetch_max(u8::try_from(number).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> ExchangeStage {
        Self::STAGES[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

/// Counts a request in flight.
struct ActiveRequest<'a>(&'a AtomicUsize);

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Http2Connection {
    /// Opens the connection and waits for the receiver's settings, so its limits are known before the first
    /// request.
    pub(super) async fn open(stream: WireStream) -> Result<Self, AttemptFailure> {
        let progress = Arc::clone(stream.progress());
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(MAX_HEAD as u32)
            .max_send_buffer_size(UPLOAD_CHUNK_BYTES)
            .enable_push(false)
            // No stream before the receiver has announced its limit.
            .initial_max_send_streams(0)
            .handshake(stream)
            .await;
        let (sender, mut connection) = handshake.map_err(|error| handshake_failure(&error))?;
        std::future::poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Err(closed_in_handshake())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(handshake_failure(&error))),
            Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive_connection(connection, Arc::clone(&is_closed))).abort_handle();
        Ok(Self { sender, is_closed, driver, active_requests: AtomicUsize::new(0), progress })
    }

    /// How many requests may be in flight at once.
    pub(super) fn max_streams(&self) -> usize {
        self.sender.current_max_send_streams().min(MAX_STREAMS)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }

    /// Sends one request and reads its response. Dropping this future (at a deadline) resets the stream and
    /// leaves the connection to other requests.
    pub(super) async fn exchange(
        &self,
        head: Request<()>,
        body: Bytes,
        stage: &StageCell,
    ) -> Result<ExchangeResponse, ExchangeError> {
        let active_requests = self.active_requests.fetch_add(1, Ordering::Relaxed) + 1;
        let _counted = ActiveRequest(&self.active_requests);
        self.progress.allow(active_requests * MAX_BYTES_PER_REQUEST);
        let mut sender = self.sender.clone();
        let (response, upload) = match sender.send_request(head, body.is_empty()) {
            Ok(streams) => streams,
            // The connection has ended, or the receiver announced its end (GOAWAY).
            Err(error) if error.is_io() || error.is_go_away() || !self.is_open() => {
                return Err(ExchangeError::unsent(broken("connection closed before the request was sent")));
            }
            Err(error) => {
                return Err(
                    AttemptFailure { kind: FailureKind::Internal, detail: error.to_string().into() }.into()
                );
            }
        };
        // The receiver may have lowered its limit since the permit was taken. Then the stream waits in the
        // library, and nothing was sent.
        std::future::poll_fn(|cx| sender.poll_ready(cx))
            .await
            .map_err(|error| self.interrupted(&error, false))?;
        stage.reach(ExchangeStage::Sending);
        let receiving = pin!(self.receive(response, stage));
        let sending = async {
            if send(upload, body).await.is_some() {
                stage.reach(ExchangeStage::Answer);
            }
        };
        // A response may come before the request is sent in full, even on a stream that accepts no more of
        // the request.
        match select(receiving, pin!(sending)).await {
            Either::Left((received, _)) => received,
            Either::Right(((), receiving)) => receiving.await,
        }
    }

    async fn receive(
        &self,
        response: ResponseFuture,
        stage: &StageCell,
    ) -> Result<ExchangeResponse, ExchangeError> {
        let response = final_head(response, stage).await.map_err(|error| match error {
            Some(error) => self.interrupted(&error, false),
            None => ExchangeError::hostile(limit_exceeded(ExchangeStage::FinalHead)),
        })?;
        stage.reach(ExchangeStage::Body);
        let (answer, location, body) = read_head(response);
        let body = read_body(body).await.map_err(|error| self.interrupted(&error, true))?;
        Ok(ExchangeResponse { answer, body, location, reusable: None })
    }

    fn interrupted(&self, error: &h2::Error, answered: bool) -> ExchangeError {
        if self.progress.is_exhausted() {
            return ExchangeError::hostile(malformed("the receiver sent far more than its answers need"));
        }
        interrupted(error, answered)
    }
}

/// The final response head. Interim heads before it are counted. `Err(None)`: there were too many.
async fn final_head(
    mut response: ResponseFuture,
    stage: &StageCell,
) -> Result<Response<RecvStream>, Option<h2::Error>> {
    let mut interim_heads = 0;
    std::future::poll_fn(|cx| {
        while let Poll::Ready(Some(interim)) = response.poll_informational(cx) {
            interim?;
            stage.reach(ExchangeStage::FinalHead);
            interim_heads += 1;
            if interim_heads > MAX_INTERIM_HEADS {
                return Poll::Ready(Err(None));
            }
        }
        Pin::new(&mut response).poll(cx).map_err(Some)
    })
    .await
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn drive_connection(mut connection: Connection<WireStream, Bytes>, is_closed: Arc<AtomicBool>) {
    let pings = pin!(ping_until_silent(connection.ping_pong()));
    // Dropped with this task, which ends the requests in flight.
    let connection = pin!(connection);
    drop(select(connection, pings).await);
    is_closed.store(true, Ordering::Release);
}

/// Pings the receiver and ends when it no longer answers.
async fn ping_until_silent(pings: Option<PingPong>) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        sleep(PING_INTERVAL).await;
        match timeout(PONG_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

async fn send(mut upload: SendStream<Bytes>, mut body: Bytes) -> Option<()> {
    while !body.is_empty() {
        upload.reserve_capacity(body.len().min(UPLOAD_CHUNK_BYTES));
        let free = std::future::poll_fn(|cx| upload.poll_capacity(cx)).await?.ok()?;
        let chunk = body.split_to(free.min(body.len()));
        upload.send_data(chunk, body.is_empty()).ok()?;
    }
    Some(())
}

/// Reads the part of the body that is kept. Then the stream is reset.
async fn read_body(mut body: RecvStream) -> Result<Bytes, h2::Error> {
    let mut kept = BytesMut::new();
    for _ in 0..MAX_BODY_FRAMES {
        let Some(data) = body.data().await.transpose()? else { break };
        let free = MAX_STORED_RESPONSE_BYTES - kept.len();
        kept.extend_from_slice(&data[..data.len().min(free)]);
        if kept.len() == MAX_STORED_RESPONSE_BYTES {
            break;
        }
        body.flow_control().release_capacity(data.len())?;
    }
    Ok(kept.freeze())
}

fn interrupted(error: &h2::Error, answered: bool) -> ExchangeError {
    let when = if answered { "in the middle of the response body" } else { "before any answer" };
    let reason = error.reason().unwrap_or(Reason::NO_ERROR);
    let failure = if let Some(io) = error.get_io() {
        local_failure(io, false).unwrap_or_else(|| broken(format!("connection closed {when}")))
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
    // A stream that the receiver refused, or that is above its last processed id, has not been processed.
    // These are the two cases in which the standard allows a client to retry.
    let refused =
        error.is_remote() && (error.is_go_away() || error.is_reset() && reason == Reason::REFUSED_STREAM);
    ExchangeError { unsent: refused && !answered, ..failure.into() }
}

fn handshake_failure(error: &h2::Error) -> AttemptFailure {
    match error.get_io() {
        Some(io) => super::tls::certificate_alert(io).unwrap_or_else(closed_in_handshake),
        None => malformed("the receiver chose HTTP/2 and did not speak it"),
    }
}

fn closed_in_handshake() -> AttemptFailure {
    let detail = "the receiver closed the connection during the HTTP/2 handshake".into();
    AttemptFailure { kind: FailureKind::Connect, detail }
}
