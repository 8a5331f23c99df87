//! The way out: one guarded, bounded HTTP request.
//!
//! `guard` and `target` judge, `resolve` and `connect` reach the receiver, `pool` keeps connections
//! for the next request, `exchange` speaks HTTP, `redirect` follows where a policy wants it.

mod connect;
mod exchange;
mod guard;
mod pool;
mod redirect;
mod resolve;
mod stream;
mod target;
mod tls;

pub use guard::Guard;
pub use pool::PoolLimits;
pub use target::{Credentials, TargetUrl, UrlRefused};

use crate::transport::{Sending, Transport, WireRequest, WireResponse};
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{Failure, FailureKind, Outcome};
use bytes::Bytes;
use connect::Connector;
use exchange::{Exchanged, Interrupted, exchange};
use http::Request;
use http_body_util::Full;
use ipnet::IpNet;
use pool::{Loan, Pool};
use redirect::Hop;
use resolve::Resolver;
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use target::Target;
use thiserror::Error;
use tls::Tls;
use tokio::time::{Instant, sleep, timeout_at};

#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// Networks that may be reached although they are private, local or reserved.
    pub allow_networks: Vec<IpNet>,
    /// Name servers to ask; `None`: those of the system.
    pub name_servers: Option<Vec<SocketAddr>>,
    /// Issuers of certificates that are trusted besides the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
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

/// The transport of the server. It obeys no proxy of the environment: a proxy would connect where
/// the guard cannot look.
#[derive(Clone)]
pub struct Wire(Arc<Inner>);

struct Inner {
    connector: Connector,
    pool: Pool,
}

impl Wire {
    pub fn new(options: WireOptions) -> Result<Self, WireError> {
        let connector = Connector {
            guard: Guard::new(options.allow_networks),
            resolver: Resolver::new(options.name_servers.as_deref())?,
            tls: Tls::new(options.extra_roots)?,
        };
        Ok(Self(Arc::new(Inner { connector, pool: Pool::new(options.pool) })))
    }

    /// The guard that every request passes, for judging URLs before they are stored.
    pub fn guard(&self) -> Guard {
        self.0.connector.guard.clone()
    }

    /// How many connections wait for their next request.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.idle()
    }

    /// Closes all connections that wait. Requests under way go on to their end.
    pub fn shutdown(&self) {
        self.0.pool.clear();
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
        let WireRequest { url, headers, body, timeouts, redirects } = request;
        let end = moment_in(timeouts.total);
        let mut hop = Hop::first(url, headers, body, redirects);
        loop {
            let exchanged = match self.follow(&hop, timeouts, end).await {
                Ok(exchanged) => exchanged,
                Err(failure) => return failed(failure),
            };
            match hop.onward(&exchanged) {
                Ok(Some(next)) => hop = next,
                Ok(None) => {
                    return WireResponse {
                        outcome: Outcome::Answered(exchanged.answer),
                        body: exchanged.body,
                    };
                }
                Err(failure) => return failed(failure),
            }
        }
    }

    async fn follow(&self, hop: &Hop, timeouts: Timeouts, end: Instant) -> Result<Exchanged, Failure> {
        let target = self.connector.guard.judge(&hop.url).map_err(|refused| refusal(&refused))?;
        let exchanged = self.deliver(hop, &target, timeouts, end).await;
        exchanged.map_err(|failure| if hop.at_home { failure } else { away(&failure) })
    }

    /// One request over one connection: a waiting one where there is one, else a new one.
    async fn deliver(
        &self,
        hop: &Hop,
        target: &Target<'_>,
        timeouts: Timeouts,
        end: Instant,
    ) -> Result<Exchanged, Failure> {
        if let Some(waiting) = self.pool.take(&target.origin) {
            match self.over(waiting, target, hop.request()?, timeouts, end).await {
                // The receiver closed it in the very moment and has seen nothing of the request.
                // This is the only case in which a second connection may carry it.
                Err(Interrupted { unsent: true, .. }) => {}
                Err(interrupted) => return Err(interrupted.failure),
                Ok(exchanged) => return Ok(exchanged),
            }
        }
        let stream = self.connector.connect(target, end.min(moment_in(timeouts.connect))).await;
        if matches!(&stream, Err(Failure { kind: FailureKind::Internal, .. })) {
            // Out of sockets, most likely; the idle ones are ours to give.
            self.pool.clear();
        }
        let fresh = self.pool.adopt(stream?);
        let exchanged = self.over(fresh, target, hop.request()?, timeouts, end).await;
        exchanged.map_err(|interrupted| interrupted.failure)
    }

    async fn over(
        &self,
        loan: Loan,
        target: &Target<'_>,
        request: Request<Full<Bytes>>,
        timeouts: Timeouts,
        end: Instant,
    ) -> Result<Exchanged, Interrupted> {
        let by = end.min(moment_in(timeouts.answer));
        let Loan { stream, born } = loan;
        let mut exchanged = match timeout_at(by, exchange(stream, request)).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(late().into()),
        };
        if let Some(stream) = exchanged.reusable.take() {
            self.pool.put_back(target.origin.clone(), Loan { stream, born });
        }
        Ok(exchanged)
    }
}

/// A moment on the clock of tokio's timers, which stands still where a test has paused it.
fn moment_in(duration: Duration) -> Instant {
    sleep(duration).deadline()
}

fn failed(failure: Failure) -> WireResponse {
    WireResponse { outcome: Outcome::Failed(failure), body: Bytes::new() }
}

fn late() -> Failure {
    Failure { kind: FailureKind::Timeout, detail: "no complete answer in time".into() }
}

fn refusal(refused: &UrlRefused) -> Failure {
    let kind = match refused {
        UrlRefused::Forbidden => return connect::forbidden(),
        // The endpoint's own URL has been read before it was stored; this one came in a redirect.
        UrlRefused::Unreadable(_) => FailureKind::Malformed,
        _ => FailureKind::TargetForbidden,
    };
    Failure { kind, detail: refused.to_string().into() }
}

/// Where a redirect leads is another host; what happens there must not be held against the
/// endpoint's own.
fn away(failure: &Failure) -> Failure {
    let kind = match failure.kind {
        FailureKind::Dns | FailureKind::Connect | FailureKind::Tls => FailureKind::Broken,
        FailureKind::ConnectTimeout => FailureKind::Timeout,
        kind => kind,
    };
    Failure { kind, detail: format!("after a redirect: {}", failure.detail).into() }
}
