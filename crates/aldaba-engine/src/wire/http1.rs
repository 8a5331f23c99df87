use super::connect_error;
use super::progress::{ExchangeProgress, ExchangeStage, MAX_BODY_FRAMES, MAX_INTERIM_HEADS};
use super::stream::WireStream;
use super::tls;
use crate::delivering::MAX_STORED_RESPONSE_BYTES;
use aldaba_delivery::{AttemptFailure, FailureKind, ResponseHead, RetryAfter};
use bytes::{Bytes, BytesMut};
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::ext::ReasonPhrase;
use hyper_util::rt::TokioIo;
use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// The most bytes of a response head.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// The most headers of an HTTP/1.1 response: the parser's own limit. Another limit would cost an allocation
/// per response.
const MAX_HEADERS: usize = 100;

/// The most characters of a reason phrase that are kept.
const MAX_PHRASE: usize = 200;

/// A complete response.
pub(super) struct ExchangeResponse {
    pub(super) answer: ResponseHead,
    pub(super) body: Bytes,
    pub(super) location: Option<HeaderValue>,
    /// The connection, if it can be reused.
    pub(super) reusable: Option<WireStream>,
}

/// Why there is no response.
pub(super) struct ExchangeError {
    pub(super) failure: AttemptFailure,
    /// No byte of the request was sent, so sending it again is no repetition.
    pub(super) unsent: bool,
    /// The receiver exceeded a limit: its connection is not used again.
    pub(super) hostile: bool,
}

impl ExchangeError {
    pub(super) fn unsent(failure: AttemptFailure) -> Self {
        Self { failure, unsent: true, hostile: false }
    }

    pub(super) fn hostile(failure: AttemptFailure) -> Self {
        Self { failure, unsent: false, hostile: true }
    }
}

type HyperConnection = http1::Connection<TokioIo<WireStream>, Full<Bytes>>;

/// Sends one request and reads its response. The connection is driven here and not by a task of its own, so
/// dropping this future (at a deadline) closes the socket.
pub(super) async fn exchange(
    stream: WireStream,
    mut request: Request<Full<Bytes>>,
) -> Result<ExchangeResponse, ExchangeError> {
    let progress = Arc::clone(stream.progress());
    let counter = Arc::clone(&progress);
    hyper::ext::on_informational(&mut request, move |_| counter.note_interim_head());
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| {
        ExchangeError::unsent(AttemptFailure {
            kind: FailureKind::Internal,
            detail: error.to_string().into(),
        })
    })?;
    let mut connection = Http1Connection { connection, ended: false };

    let response = match connection.drive(sender.try_send_request(request)).await {
        Some(Ok(response)) => response,
        Some(Err(error)) => return Err(connection.interrupted(Some(error.error()))),
        None => return Err(connection.interrupted(None)),
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(malformed("the receiver switched protocols (101) without being asked").into());
    }
    progress.begin_body();
    let (answer, location, body) = read_head(response);
    let (body, complete) = read_body(&mut connection, &progress, body).await?;
    let reusable = if complete { connection.release(&sender).await } else { None };
    Ok(ExchangeResponse { answer, body, location, reusable })
}

/// A connection that is polled while something else is awaited.
struct Http1Connection {
    connection: HyperConnection,
    ended: bool,
}

impl Http1Connection {
    /// Awaits `work` while driving the connection. `None`: the connection ended first.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            // Polled before and after: the first poll tells the connection what is wanted, the second picks
            // up what it received.
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if !self.ended {
                self.ended = Pin::new(&mut self.connection).poll(cx).is_ready();
            }
            match work.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if self.ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// The bare stream, if the connection is ready for another request.
    async fn release(mut self, sender: &http1::SendRequest<Full<Bytes>>) -> Option<WireStream> {
        // One poll lets the connection finish its bookkeeping, and notice a close or unexpected bytes.
        std::future::poll_fn(|cx| {
            self.ended = self.ended || Pin::new(&mut self.connection).poll(cx).is_ready();
            Poll::Ready(())
        })
        .await;
        if self.ended || !sender.is_ready() {
            return None;
        }
        let parts = self.connection.into_parts();
        parts.read_buf.is_empty().then(|| parts.io.into_inner())
    }

    fn interrupted(self, error: Option<&hyper::Error>) -> ExchangeError {
        let parts = self.connection.into_parts();
        let stream = parts.io.into_inner();
        let unsent = !stream.has_written();
        let progress = stream.progress();
        let io = error.and_then(io_error);
        let failure = if progress.is_exhausted() {
            limit_exceeded(progress.stage())
        } else if let Some(failure) = io.and_then(|io| local_failure(io, unsent)) {
            failure
        } else {
            match error {
                // The parser has one error for all limits. What it left unread tells which limit it was.
                Some(error) if error.is_parse_too_large() && parts.read_buf.trim_ascii().is_empty() => {
                    malformed("nothing but empty lines where the answer should begin".to_owned())
                }
                Some(error) if error.is_parse_too_large() && parts.read_buf.len() < MAX_HEAD => {
                    malformed(format!("the response head has more than {MAX_HEADERS} headers"))
                }
                Some(error) if error.is_parse_too_large() => {
                    malformed(format!("the response head is larger than {} KiB", MAX_HEAD / 1024))
                }
                Some(error) if error.is_parse() => malformed(format!("not acceptable as HTTP: {error}")),
                Some(error) if error.is_user() => {
                    AttemptFailure { kind: FailureKind::Internal, detail: error.to_string().into() }
                }
                _ => {
                    let when = match (unsent, progress.stage()) {
                        (true, _) => "before the request was sent",
                        (false, ExchangeStage::Head) => "in the middle of the response head",
                        (false, ExchangeStage::FinalHead) => "after interim answers (1xx)",
                        (false, _) => "before any answer",
                    };
                    broken(format!("{} {when}", close_reason(io)))
                }
            }
        };
        ExchangeError { failure, unsent, hostile: false }
    }
}

/// Failures that are neither a response nor a plain close: a rejected client certificate, or exhausted local
/// resources.
pub(super) fn local_failure(error: &io::Error, unsent: bool) -> Option<AttemptFailure> {
    if let Some(refused) = tls::certificate_alert(error) {
        return Some(refused);
    }
    // A request that may have left in part must not be sent again.
    let kind = if unsent { FailureKind::Unsent } else { FailureKind::Internal };
    connect_error::is_shortage(error)
        .then(|| AttemptFailure { kind, detail: connect_error::NO_LOCAL_RESOURCES.into() })
}

/// How an established connection ended.
fn close_reason(error: Option<&io::Error>) -> Cow<'static, str> {
    match error {
        // Over TLS: the connection ended without a closing alert.
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => "connection closed".into(),
        Some(error) => tls::alert(error).unwrap_or_else(|| error.kind().to_string().into()),
        None => "connection closed".into(),
    }
}

/// The receiver sent more than the limits allow.
pub(super) fn limit_exceeded(stage: ExchangeStage) -> AttemptFailure {
    malformed(match stage {
        ExchangeStage::FinalHead => {
            format!("more than {MAX_INTERIM_HEADS} interim answers (1xx), or too large ones")
        }
        ExchangeStage::Body => "the response body spends too many bytes on its chunk sizes".to_owned(),
        _ => "too many bytes before any answer".to_owned(),
    })
}

pub(super) fn read_head<B>(mut response: Response<B>) -> (ResponseHead, Option<HeaderValue>, B) {
    let status = response.status();
    let phrase = match response.extensions().get::<ReasonPhrase>() {
        Some(sent) => {
            let sent = String::from_utf8_lossy(sent.as_bytes());
            Cow::Owned(sent.chars().filter(|c| !c.is_control()).take(MAX_PHRASE).collect())
        }
        None => Cow::Borrowed(status.canonical_reason().unwrap_or_default()),
    };
    let wishes = response.headers().get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
    let answer = ResponseHead { status: status.as_u16(), phrase, retry_after: RetryAfter::parse(wishes) };
    let location = response.headers_mut().remove(LOCATION);
    (answer, location, response.into_body())
}

/// Reads the body up to its limit. Returns what is kept and whether the body was read to its end. Past
/// [`MAX_STORED_RESPONSE_BYTES`] or [`MAX_BODY_FRAMES`] nothing more is read.
async fn read_body(
    connection: &mut Http1Connection,
    progress: &ExchangeProgress,
    mut body: Incoming,
) -> Result<(Bytes, bool), ExchangeError> {
    let (mut kept, mut frames) = (BytesMut::new(), 0);
    while !body.is_end_stream() {
        let frame = match connection.drive(body.frame()).await {
            Some(Some(Ok(frame))) => frame,
            Some(Some(Err(_))) | None if progress.is_exhausted() => {
                return Err(limit_exceeded(ExchangeStage::Body).into());
            }
            Some(Some(Err(error))) => return Err(body_failure(&error).into()),
            Some(None) => break,
            None => return Err(broken("connection closed in the middle of the response body").into()),
        };
        let Some(data) = frame.data_ref() else { continue };
        let free = MAX_STORED_RESPONSE_BYTES - kept.len();
        kept.extend_from_slice(&data[..data.len().min(free)]);
        frames += 1;
        let is_enough = kept.len() == MAX_STORED_RESPONSE_BYTES || frames == MAX_BODY_FRAMES;
        if data.len() > free || (is_enough && !body.is_end_stream()) {
            return Ok((kept.freeze(), false));
        }
    }
    Ok((kept.freeze(), true))
}

fn body_failure(error: &hyper::Error) -> AttemptFailure {
    let io = io_error(error);
    if let Some(failure) = io.and_then(|io| local_failure(io, false)) {
        return failure;
    }
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
            if io.is_some_and(|io| tls::alert(io).is_none()) =>
        {
            malformed("the response body is not framed as HTTP: a chunk or a trailer is invalid")
        }
        _ => broken(format!("{} in the middle of the response body", close_reason(io))),
    }
}

fn io_error(error: &hyper::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

pub(super) fn malformed(detail: impl Into<Cow<'static, str>>) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Malformed, detail: detail.into() }
}

pub(super) fn broken(detail: impl Into<Cow<'static, str>>) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Broken, detail: detail.into() }
}

/// Once a response has begun, the request has been sent.
impl From<AttemptFailure> for ExchangeError {
    fn from(failure: AttemptFailure) -> Self {
        Self { failure, unsent: false, hostile: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stream::Socket;
    use socket2::SockRef;
    use std::time::Duration;
    use tokio::net::{TcpListener, TcpStream};

    /// The race between checking an idle connection and writing to it cannot be closed. But it is known that
    /// no byte was sent.
    #[tokio::test]
    async fn a_connection_that_closed_before_the_first_byte_has_sent_nothing() {
        for reset in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            if reset {
                SockRef::from(&server).set_linger(Some(Duration::ZERO)).unwrap();
            }
            drop(server);
            client.readable().await.unwrap();
            let result =
                exchange(WireStream::Plain(Socket::new(client)), Request::new(Full::default())).await;
            let interrupted = result.err().expect("nobody is there");
            assert!(interrupted.unsent, "{:?}", interrupted.failure);
            assert_eq!(interrupted.failure.kind, FailureKind::Broken);
        }
    }
}
