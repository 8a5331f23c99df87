//! The way out: one guarded, bounded HTTP request.
//!
//! `guard` and `target` judge, `resolve`, `connect`, `proxy` and `tls` reach the receiver. `deliver`
//! picks the connection: `pool` keeps those of HTTP/1.1 for the next request, which `exchange` speaks;
//! `lines` shares those of HTTP/2, which `multiplex` speaks, and `queue` has those who wait for one. `progress` bounds
//! what a receiver may send, and knows what a request waited for. `shortage` tells our own errors from the network's.
//! `redirect` follows where a policy wants it.

mod certificate;
mod connect;
mod deliver;
mod exchange;
mod guard;
mod identity;
mod lines;
mod multiplex;
mod places;
mod pool;
mod progress;
mod proxy;
mod queue;
mod redirect;
mod resolve;
mod root_query;
mod roots;
mod route;
mod shortage;
mod stream;
mod target;
mod ticks;
mod tls;

pub use guard::Guard;
pub use identity::{Identity, IdentityError};
pub use pool::PoolLimits;
pub use proxy::{EgressProxy, ProxyRefused};
pub use roots::{RootsError, read_roots};
pub use target::{Credentials, TargetUrl, UrlRefused};
pub use tls::client_tls;

use crate::delivering::{Sending, Transport, WireRequest, WireResponse};
use crate::housekeeping::background::Background;
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{AttemptFailure, FailureKind, Outcome};
use bytes::Bytes;
use connect::Connector;
use deliver::Delivery;
use exchange::Exchanged;
use ipnet::IpNet;
use lines::Lines;
use places::Places;
use pool::Pool;
use proxy::Proxy;
use redirect::Hop;
use resolve::Resolver;
pub use rustls::pki_types::{CertificateDer, ServerName};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use ticks::Supervisor;
use tls::Tls;
use tokio::time::{Instant, sleep};

#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// Networks that may be reached although they are private, local or reserved.
    pub allow_networks: Vec<IpNet>,
    /// Name servers to ask; `None`: those of the system.
    pub name_servers: Option<Vec<SocketAddr>>,
    /// Issuers of certificates that are trusted besides the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Through which all connections are made.
    pub egress_proxy: Option<EgressProxy>,
    pub pool: PoolLimits,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    #[error("the resolver could not be set up: {0}")]
    Resolver(String),
    #[error("a root certificate cannot be used: {0}")]
    Root(String),
    #[error("TLS could not be set up: {0}")]
    Tls(String),
}

/// The transport of the server. It obeys no proxy of the environment, only the one that the operator
/// has named, and tells that one the address that the guard has judged.
#[derive(Clone)]
pub struct Wire(Arc<Inner>);

struct Inner {
    connector: Connector,
    pool: Pool,
    lines: Lines,
    places: Arc<Places>,
    supervisor: Supervisor,
}

impl Wire {
    pub fn new(options: WireOptions) -> Result<Self, WireError> {
        let connector = Connector {
            guard: Guard::new(options.allow_networks),
            resolver: Resolver::new(options.name_servers.as_deref())?,
            tls: Tls::new(options.extra_roots)?,
            proxy: options.egress_proxy.map(Proxy::new),
        };
        let places = Places::new(options.pool.idle_overall);
        let supervisor = Supervisor::default();
        let pool = Pool::new(options.pool, Arc::clone(&places), Arc::clone(&supervisor));
        let lines = Lines::new(options.pool, Arc::clone(&places), Arc::clone(&supervisor));
        Ok(Self(Arc::new(Inner { connector, pool, lines, places, supervisor })))
    }

    /// Names who is told when one of its tasks panics. Only the first call counts.
    pub(crate) fn supervise_with(&self, background: Background) {
        let _ = self.0.supervisor.set(background);
    }

    /// The guard that every request passes, for judging URLs before they are stored.
    pub fn guard(&self) -> Guard {
        self.0.connector.guard.clone()
    }

    /// How many connections wait for their next request.
    pub fn idle_connections(&self) -> usize {
        self.0.places.taken()
    }

    /// Closes all connections that wait. Requests under way go on to their end.
    pub fn shutdown(&self) {
        self.0.pool.clear();
        self.0.lines.clear();
    }
}

impl Transport for Wire {
    fn send(&self, request: WireRequest) -> Sending {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.send(request).await })
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("idle_connections", &self.idle_connections()).finish_non_exhaustive()
    }
}

impl Inner {
    /// The whole path of an attempt, redirects included.
    async fn send(&self, request: WireRequest) -> WireResponse {
        let timeouts = request.timeouts;
        let mut end = moment_in(timeouts.total);
        let mut hop = Hop::first(request);
        loop {
            let body = hop.lend_body();
            let exchanged = match self.follow(&hop, body, timeouts, &mut end).await {
                Ok(exchanged) => exchanged,
                Err(failure) => return failed(failure),
            };
            match hop.onward(&exchanged) {
                Ok(Some(next)) => hop = next,
                Ok(None) => {
                    return WireResponse {
                        outcome: Outcome::Response(exchanged.answer),
                        body: exchanged.body,
                    };
                }
                Err(failure) => return failed(failure),
            }
        }
    }

    async fn follow(
        &self,
        hop: &Hop,
        body: Bytes,
        timeouts: Timeouts,
        end: &mut Instant,
    ) -> Result<Exchanged, AttemptFailure> {
        let exchanged = match self.connector.guard.judge(&hop.url) {
            Ok(target) => {
                let mut delivery =
                    Delivery { hop, target: &target, timeouts, end: *end, waited: Duration::ZERO };
                let exchanged = self.deliver(&mut delivery, body).await;
                *end = delivery.end;
                exchanged
            }
            Err(refused) => Err(refusal(&refused)),
        };
        exchanged.map_err(|failure| if hop.at_home { failure } else { away(&failure) })
    }
}

/// A moment on the clock of tokio's timers, which stands still where a test has paused it.
fn moment_in(duration: Duration) -> Instant {
    sleep(duration).deadline()
}

fn failed(failure: AttemptFailure) -> WireResponse {
    WireResponse { outcome: Outcome::Failed(failure), body: Bytes::new() }
}

fn refusal(refused: &UrlRefused) -> AttemptFailure {
    let kind = match refused {
        UrlRefused::Forbidden => return connect::forbidden(),
        // The endpoint's own URL has been read before it was stored; this one came in a redirect.
        UrlRefused::Unreadable(_) => FailureKind::Malformed,
        // Endpoints may have one that were made before it was refused.
        UrlRefused::HostName => FailureKind::Dns,
        _ => FailureKind::TargetForbidden,
    };
    AttemptFailure { kind, detail: refused.to_string().into() }
}

/// Where a redirect leads is another host; what happens there must not be held against the
/// endpoint's own.
fn away(failure: &AttemptFailure) -> AttemptFailure {
    let kind = match failure.kind {
        FailureKind::Dns | FailureKind::Connect | FailureKind::Tls => FailureKind::Broken,
        FailureKind::ConnectTimeout => FailureKind::Timeout,
        kind => kind,
    };
    let what = match kind {
        FailureKind::TargetForbidden => "the redirect was refused",
        _ => "after a redirect",
    };
    AttemptFailure { kind, detail: format!("{what}: {}", failure.detail).into() }
}
