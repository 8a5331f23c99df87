mod root_query;

use crate::wire::WireError;
use crate::wire::connect_error;
use aldaba_delivery::{AttemptFailure, FailureKind};
use futures_util::future::{Either, select};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use parking_lot::Mutex;
use root_query::RootProbe;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
const MIN_TTL: Duration = Duration::from_secs(1);
const MAX_TTL: Duration = Duration::from_secs(300);
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(30);
const CACHED_ANSWERS: u64 = 8_192;

/// How long a failed lookup is reused, so that deliveries to one name do not each wait for a silent server.
const FAILURE_TTL: Duration = Duration::from_secs(2);

/// How much longer the second address family may take once the first is known. A name server that never
/// answers one of the two queries must not delay every delivery.
const OTHER_FAMILY_TIMEOUT: Duration = Duration::from_millis(250);

/// How long the resolver has to answer the probe.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the result of a probe is reused.
const PROBE_TTL: Duration = Duration::from_secs(1);

/// The most names that are looked up (or whose failure is kept) at once. Past it an attempt fails for a
/// local reason and is retried later.
const MAX_PENDING_LOOKUPS: usize = 4_096;

pub(in crate::wire) const OVERLOADED: &str = "too many names are being resolved at once";

/// Resolves names without blocking a thread. Concurrent requests for a name share one lookup.
#[derive(Clone)]
pub(in crate::wire) struct Resolver {
    hickory: TokioResolver,
    /// The addresses of the name servers.
    servers: Arc<[SocketAddr]>,
    pending: PendingLookups,
    probe: Arc<Mutex<Option<watch::Receiver<Option<RootProbe>>>>>,
}

type PendingLookups = Arc<Mutex<HashMap<Arc<str>, watch::Receiver<Option<Resolution>>>>>;
type Resolution = Result<Arc<[IpAddr]>, ResolveError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum ResolveError {
    NoSuchName,
    NoAddresses,
    ServerFailed,
    ServerRefused,
    Timeout,
    Invalid,
    Unreachable,
    /// Local: too many lookups, or no sockets left.
    Overloaded,
    /// Local: the configured name servers are unreachable, or fail for the root as well.
    ResolverDown,
}

impl Resolver {
    /// Uses the servers of `/etc/resolv.conf` unless others are given. `/etc/hosts` applies in both cases.
    pub(in crate::wire) fn new(servers: Option<&[SocketAddr]>) -> Result<Self, WireError> {
        let (config, mut options) = match servers {
            Some(servers) => (explicit(servers), ResolverOpts::default()),
            None => read_system_conf().unwrap_or_else(|error| {
                tracing::warn!(%error, "no usable /etc/resolv.conf; using the name server on this machine");
                let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
                (explicit(&[local]), ResolverOpts::default())
            }),
        };
        apply_limits(&mut options);
        let servers = config
            .name_servers()
            .iter()
            .filter_map(|server| Some(SocketAddr::new(server.ip, server.connections.first()?.port)));
        let servers = servers.collect();
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let hickory = builder.with_options(options).build();
        let hickory = hickory.map_err(|error| WireError::Resolver(error.to_string()))?;
        Ok(Self { hickory, servers, pending: PendingLookups::default(), probe: Arc::default() })
    }

    /// All addresses of the name, the two families interleaved. There is at least one.
    pub(in crate::wire) async fn resolve(&self, name: &str) -> Resolution {
        let mut lookup = self.join_lookup(name).ok_or(ResolveError::Overloaded)?;
        match lookup.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or(Err(ResolveError::Unreachable)),
            Err(_) => Err(ResolveError::Unreachable),
        }
    }

    /// Joins the pending lookup of this name, or starts one. It runs as its own task, so its result serves
    /// the next attempt even if no request could wait for it.
    fn join_lookup(&self, name: &str) -> Option<watch::Receiver<Option<Resolution>>> {
        let mut pending = self.pending.lock();
        if let Some(lookup) = pending.get(name) {
            return Some(lookup.clone());
        }
        if pending.len() >= MAX_PENDING_LOOKUPS {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        let name: Arc<str> = name.into();
        pending.insert(Arc::clone(&name), receiver.clone());
        let guard = LookupGuard { pending: Arc::clone(&self.pending), name };
        tokio::spawn(run_lookup(self.clone(), guard, sender));
        Some(receiver)
    }

    /// Whether this name is being looked up.
    pub(in crate::wire) fn is_looking_up(&self, name: &str) -> bool {
        self.pending.lock().get(name).is_some_and(|lookup| lookup.borrow().is_none())
    }

    /// Whether all configured name servers are silent.
    pub(in crate::wire) async fn is_down(&self) -> bool {
        self.probe_root().await.silent
    }

    /// What the configured name servers answer for the root. Lookups that fail share one probe at a time.
    async fn probe_root(&self) -> RootProbe {
        let mut pending_probe = self.probe_root_once();
        let answer = pending_probe.wait_for(Option::is_some).await.map(|answer| *answer);
        // Without a result the failure stays with the host name.
        answer.ok().flatten().unwrap_or(RootProbe { silent: false, failed: false, refused: false })
    }

    fn probe_root_once(&self) -> watch::Receiver<Option<RootProbe>> {
        let mut probe = self.probe.lock();
        if let Some(pending_probe) = &*probe {
            return pending_probe.clone();
        }
        let (sender, receiver) = watch::channel(None);
        *probe = Some(receiver.clone());
        drop(probe);
        let (servers, probe) = (Arc::clone(&self.servers), Arc::clone(&self.probe));
        tokio::spawn(async move {
            let answer = root_query::probe_root(&servers, PROBE_TIMEOUT).await;
            sender.send_replace(Some(answer));
            sleep(PROBE_TTL).await;
            *probe.lock() = None;
        });
        receiver
    }

    /// A failure counts against the name, unless the name servers fail for the root too.
    async fn attribute(&self, error: ResolveError) -> ResolveError {
        let ours = match error {
            ResolveError::Timeout | ResolveError::Unreachable => self.probe_root().await.silent,
            ResolveError::ServerFailed => self.probe_root().await.failed,
            ResolveError::ServerRefused => self.probe_root().await.refused,
            _ => false,
        };
        if ours { ResolveError::ResolverDown } else { error }
    }
}

async fn run_lookup(resolver: Resolver, guard: LookupGuard, sender: watch::Sender<Option<Resolution>>) {
    let answer = match look_up(&resolver.hickory, &guard.name).await {
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(resolver.attribute(error).await),
    };
    let failure_of_server = matches!(
        answer,
        Err(ResolveError::ServerFailed
            | ResolveError::ServerRefused
            | ResolveError::Timeout
            | ResolveError::ResolverDown)
    );
    sender.send_replace(Some(answer));
    if failure_of_server {
        sleep(FAILURE_TTL).await;
    }
}

/// Removes the pending lookup, however it ends.
struct LookupGuard {
    pending: PendingLookups,
    name: Arc<str>,
}

impl Drop for LookupGuard {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.name);
    }
}

async fn look_up(hickory: &TokioResolver, name: &str) -> Resolution {
    // A name with a dot is absolute. The search list is for short names of a local network.
    let absolute = name.contains('.');
    let mut name = Name::from_ascii(name).map_err(|_| ResolveError::Invalid)?;
    name.set_fqdn(absolute);

    let v6 = pin!(hickory.ipv6_lookup(name.clone()));
    let v4 = pin!(hickory.ipv4_lookup(name));
    let (v6, v4) = match select(v6, v4).await {
        Either::Left((v6, v4)) => {
            let v4 = other_family(&v6, v4).await;
            (v6, v4)
        }
        Either::Right((v4, v6)) => (other_family(&v4, v6).await, v4),
    };
    let addresses = interleave(&addresses(&v6), &addresses(&v4));
    if addresses.is_empty() { Err(more_specific(reason(v6), reason(v4))) } else { Ok(addresses) }
}

async fn other_family(
    first: &Result<Lookup, NetError>,
    other: impl Future<Output = Result<Lookup, NetError>>,
) -> Result<Lookup, NetError> {
    if addresses(first).is_empty() {
        other.await
    } else {
        timeout(OTHER_FAMILY_TIMEOUT, other).await.unwrap_or(Err(NetError::Timeout))
    }
}

fn addresses(lookup: &Result<Lookup, NetError>) -> Vec<IpAddr> {
    let Ok(lookup) = lookup else { return Vec::new() };
    lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect()
}

fn interleave(v6: &[IpAddr], v4: &[IpAddr]) -> Arc<[IpAddr]> {
    (0..v6.len().max(v4.len())).flat_map(|i| [v6.get(i), v4.get(i)]).flatten().copied().collect()
}

fn reason(lookup: Result<Lookup, NetError>) -> ResolveError {
    match lookup {
        Ok(_) => ResolveError::NoAddresses,
        Err(NetError::Timeout) => ResolveError::Timeout,
        Err(NetError::Busy) => ResolveError::Overloaded,
        Err(NetError::Io(error)) if connect_error::is_shortage(&error) => ResolveError::Overloaded,
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => of_code(none.response_code),
        Err(NetError::Dns(DnsError::ResponseCode(code))) => of_code(code),
        Err(_) => ResolveError::Unreachable,
    }
}

fn of_code(code: ResponseCode) -> ResolveError {
    match code {
        ResponseCode::NXDomain => ResolveError::NoSuchName,
        ResponseCode::NoError => ResolveError::NoAddresses,
        ResponseCode::Refused | ResponseCode::NotAuth | ResponseCode::NotImp => ResolveError::ServerRefused,
        _ => ResolveError::ServerFailed,
    }
}

/// The more specific of two errors: a family without addresses is normal.
fn more_specific(v6: ResolveError, v4: ResolveError) -> ResolveError {
    if v4 == ResolveError::NoAddresses { v6 } else { v4 }
}

impl From<ResolveError> for AttemptFailure {
    fn from(error: ResolveError) -> Self {
        let (kind, detail) = match error {
            ResolveError::NoSuchName => (FailureKind::Dns, "the host name does not exist (NXDOMAIN)"),
            ResolveError::NoAddresses => (FailureKind::Dns, "the host name has no addresses"),
            ResolveError::ServerFailed => (FailureKind::Dns, "the name server failed (SERVFAIL)"),
            ResolveError::ServerRefused => (FailureKind::Dns, "the name server refused to answer (REFUSED)"),
            ResolveError::Timeout => (FailureKind::Dns, "the name server did not answer in time"),
            ResolveError::Invalid => (FailureKind::Dns, "the host name is not a valid name"),
            ResolveError::Unreachable => (FailureKind::Dns, "the host name could not be resolved"),
            ResolveError::Overloaded => (FailureKind::Unsent, OVERLOADED),
            ResolveError::ResolverDown => return resolver_down(),
        };
        Self { kind, detail: detail.into() }
    }
}

/// The configured name servers are down: no host is to blame.
pub(in crate::wire) fn resolver_down() -> AttemptFailure {
    AttemptFailure {
        kind: FailureKind::Unsent,
        detail: "this server's own name servers do not answer".into(),
    }
}

fn explicit(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.into())
    });
    ResolverConfig::from_name_servers(servers.collect())
}

fn apply_limits(options: &mut ResolverOpts) {
    options.timeout = QUERY_TIMEOUT;
    // A lost packet is resent within the two seconds; a second round would double them.
    options.attempts = 0;
    options.cache_size = CACHED_ANSWERS;
    options.positive_min_ttl = Some(MIN_TTL);
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_min_ttl = Some(MIN_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
}
