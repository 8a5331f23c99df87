//! The receivers: a listener for each endpoint that behaves as the scenario says, and reports accepted events to the
//! counters.

use super::counters::DeliveryCounters;
use super::scenario::{self, Behaviour, ENDPOINT_COUNT, ENDPOINTS, EndpointScript, SLOW_DELAY};
use aldaba_engine::{Clock, Entropy};
use aldaba_signature::{SigningKey, Verifier, VerifyingKey};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

const BACKLOG: u32 = 1024;
/// The pause before binding a port again that another process has taken.
const BIND_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Longer than any policy of the demo waits.
const SILENT_DURATION: Duration = Duration::from_secs(60);

/// The state that all endpoints share.
#[derive(Clone, Debug)]
pub(super) struct DemoContext {
    pub(super) counters: Arc<Mutex<DeliveryCounters>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
}

/// All endpoints, listening. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) addresses: [SocketAddr; ENDPOINT_COUNT],
    _endpoints: JoinSet<()>,
}

impl Receiver {
    pub(super) fn start(context: &DemoContext, keys: &[SigningKey; ENDPOINT_COUNT]) -> io::Result<Self> {
        let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); ENDPOINT_COUNT];
        let mut endpoints = JoinSet::new();
        for (lane, address) in addresses.iter_mut().enumerate() {
            let socket = bind(*address)?;
            *address = socket.local_addr()?;
            let endpoint = Endpoint {
                lane,
                script: &ENDPOINTS[lane],
                address: *address,
                verifier: Verifier::new([VerifyingKey::from(&keys[lane])]),
                context: context.clone(),
            };
            endpoints.spawn(Arc::new(endpoint).run(socket));
        }
        Ok(Self { addresses, _endpoints: endpoints })
    }
}

/// Reserves a port without listening: connections are refused.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[derive(Debug)]
struct Endpoint {
    lane: usize,
    script: &'static EndpointScript,
    address: SocketAddr,
    verifier: Verifier,
    context: DemoContext,
}

/// Makes the HTTP library close the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint hangs up")]
struct HangUp;

type ScriptedResponse = Result<Response<Full<Bytes>>, HangUp>;

impl Endpoint {
    /// Alternates between listening and being down.
    async fn run(self: Arc<Self>, mut socket: TcpSocket) {
        loop {
            let now = self.context.clock.monotonic();
            let (behaviour, end) = self.script.behaviour(now);
            if behaviour == Behaviour::Down {
                sleep(end.saturating_sub(now)).await;
                continue;
            }
            if let Ok(listener) = socket.listen(BACKLOG) {
                let until = self.script.next_down(now);
                self.listen(&listener, until.map(|until| until.saturating_sub(now))).await;
            }
            socket = loop {
                match bind(self.address) {
                    Ok(socket) => break socket,
                    Err(_) => sleep(BIND_RETRY_DELAY).await,
                }
            };
        }
    }

    /// Serves for a while, or for ever; at the end every connection breaks.
    async fn listen(self: &Arc<Self>, listener: &TcpListener, time: Option<Duration>) {
        let mut connections = JoinSet::new();
        let over = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(self.clone().serve(stream))),
                    // Too many open files, for example: some may close in the meantime.
                    Err(_) => sleep(BIND_RETRY_DELAY).await,
                },
            }
        }
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| self.answer(request));
        // A sender may close its connection at any time.
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> ScriptedResponse {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| HangUp)?.to_bytes();
        let came = self.context.clock.monotonic();
        if !self.is_genuine(&head.headers, &body) {
            self.context.counters.lock().forged(self.lane);
            return answer(StatusCode::BAD_REQUEST);
        }
        match self.script.behaviour(came).0 {
            Behaviour::Healthy => {}
            Behaviour::Slow => sleep(self.slow_delay()).await,
            Behaviour::Failing(status) => {
                return answer(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
            }
            Behaviour::Busy(seconds) => {
                let mut busy = answer(StatusCode::TOO_MANY_REQUESTS)?;
                busy.headers_mut().insert(RETRY_AFTER, seconds.into());
                return Ok(busy);
            }
            Behaviour::Silent => {
                sleep(SILENT_DURATION).await;
                return Err(HangUp);
            }
            Behaviour::HangsUp | Behaviour::Down => return Err(HangUp),
        }
        self.take(&body);
        answer(StatusCode::OK)
    }

    fn take(&self, body: &[u8]) {
        let now = self.context.clock.monotonic();
        let mut counters = self.context.counters.lock();
        match scenario::number_of(body) {
            Some(number) => counters.arrived(self.lane, number, now),
            None => {
                counters.recent_events.note(now, self.script.name, "took a message of yours".into(), None);
            }
        }
    }

    fn is_genuine(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
        let now = self.context.clock.now().millis().div_euclid(1000);
        self.verifier.verify(id, timestamp, header("webhook-signature"), body, now).is_ok()
    }

    /// How long a slow endpoint takes this time.
    fn slow_delay(&self) -> Duration {
        let (shortest, longest) = SLOW_DELAY;
        let part = u32::from(u16::from_le_bytes(self.context.entropy.bytes()));
        shortest + (longest - shortest) * part / u32::from(u16::MAX)
    }
}

fn answer(status: StatusCode) -> ScriptedResponse {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    Ok(response)
}
