//! The HTTP client for deliveries: one guarded, bounded request per attempt.
//!
//! `guard` and `target` check URLs and addresses. `dns`, `connect`, `proxy` and `tls` open the connection.
//! `deliver` chooses one: `pool` keeps idle HTTP/1.1 connections (`http1`) and shares HTTP/2 ones (`http2`),
//! with a queue for requests that wait. `progress` limits what a receiver may send and tracks the stage of a
//! request. `connect_error` separates local errors from network errors, and `deadline` says whose fault a missed
//! deadline is. `redirect` follows redirects where
//! the policy allows them.

mod connect;
mod connect_error;
mod deadline;
mod deliver;
mod dns;
mod guard;
mod http1;
mod http2;
mod pool;
mod progress;
mod proxy;
mod redirect;
mod route;
mod stream;
mod target;
mod tls;

pub use guard::Guard;
pub use pool::PoolLimits;
pub use proxy::{EgressProxy, ProxyUrlError};
pub use target::{BasicCredentials, TargetUrl, UrlError};
pub use tls::{Identity, IdentityError, RootsError, client_tls, first_expiry, read_roots};

use crate::delivering::{Sending, Transport, WireRequest, WireResponse};
use crate::housekeeping::background::Background;
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{AttemptFailure, FailureKind, Outcome};
use bytes::Bytes;
use connect::Connector;
use deliver::HopDelivery;
use dns::Resolver;
use http1::ExchangeResponse;
use ipnet::IpNet;
use pool::{Http1Pool, Http2Pool, IdleLimit, Supervisor};
use proxy::Proxy;
use redirect::Hop;
pub use rustls::pki_types::{CertificateDer, ServerName};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tls::Tls;
use tokio::time::{Instant, sleep};

#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// Private, local or reserved networks that requests may reach.
    pub allow_networks: Vec<IpNet>,
    /// Name servers to query; `None`: those of the system.
    pub name_servers: Option<Vec<SocketAddr>>,
    /// Root certificates that are trusted in addition to the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// The proxy for all connections.
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

/// The transport of the server. It ignores proxies of the environment and uses only the configured egress
/// proxy, which receives checked addresses and never names.
#[derive(Clone)]
pub struct Wire(Arc<WireState>);

struct WireState {
    connector: Connector,
    http1_pool: Http1Pool,
    http2_pool: Http2Pool,
    idle_limit: Arc<IdleLimit>,
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
        let idle_limit = IdleLimit::new(options.pool.idle_overall);
        let supervisor = Supervisor::default();
        let http1_pool = Http1Pool::new(options.pool, Arc::clone(&idle_limit), Arc::clone(&supervisor));
        let http2_pool = Http2Pool::new(options.pool, Arc::clone(&idle_limit), Arc::clone(&supervisor));
        Ok(Self(Arc::new(WireState { connector, http1_pool, http2_pool, idle_limit, supervisor })))
    }

    /// Sets where panics of background tasks are reported. Only the first call counts.
    pub(crate) fn supervise_with(&self, background: Background) {
        let _ = self.0.supervisor.set(background);
    }

    /// The guard of every request, for checking URLs before they are stored.
    pub fn guard(&self) -> Guard {
        self.0.connector.guard.clone()
    }

    /// The number of idle connections.
    pub fn idle_connections(&self) -> usize {
        self.0.idle_limit.in_use()
    }

    /// Closes all idle connections. Requests in flight finish.
    pub fn shutdown(&self) {
        self.0.http1_pool.clear();
        self.0.http2_pool.clear();
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

impl WireState {
    /// Sends an attempt and follows its redirects.
    async fn send(&self, request: WireRequest) -> WireResponse {
        let timeouts = request.timeouts;
        let mut deadline = instant_after(timeouts.total);
        let mut hop = Hop::first(request);
        loop {
            let body = hop.take_body();
            let exchanged = match self.send_hop(&hop, body, timeouts, &mut deadline).await {
                Ok(exchanged) => exchanged,
                Err(failure) => return failed(failure),
            };
            match hop.next_hop(&exchanged) {
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

    async fn send_hop(
        &self,
        hop: &Hop,
        body: Bytes,
        timeouts: Timeouts,
        deadline: &mut Instant,
    ) -> Result<ExchangeResponse, AttemptFailure> {
        let exchanged = match self.connector.guard.check_url(&hop.url) {
            Ok(target) => {
                let mut delivery = HopDelivery {
                    hop,
                    target: &target,
                    timeouts,
                    deadline: *deadline,
                    waited: Duration::ZERO,
                };
                let exchanged = self.deliver(&mut delivery, body).await;
                *deadline = delivery.deadline;
                exchanged
            }
            Err(refused) => Err(refusal(&refused)),
        };
        exchanged
            .map_err(|failure| if hop.on_original_origin { failure } else { attribute_to_redirect(&failure) })
    }
}

/// An instant on the clock of tokio's timers, which tests can pause.
fn instant_after(duration: Duration) -> Instant {
    sleep(duration).deadline()
}

fn failed(failure: AttemptFailure) -> WireResponse {
    WireResponse { outcome: Outcome::Failed(failure), body: Bytes::new() }
}

fn refusal(refused: &UrlError) -> AttemptFailure {
    let kind = match refused {
        UrlError::Forbidden => return connect::forbidden(),
        // The endpoint's own URL was parsed before it was stored; this one came from a redirect.
        UrlError::Unreadable(_) => FailureKind::Malformed,
        // Older endpoints may have one that was stored before the check existed.
        UrlError::HostName => FailureKind::Dns,
        _ => FailureKind::TargetForbidden,
    };
    AttemptFailure { kind, detail: refused.to_string().into() }
}

/// A redirect leads to another host. Its failures must not count against the endpoint's own host.
fn attribute_to_redirect(failure: &AttemptFailure) -> AttemptFailure {
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
