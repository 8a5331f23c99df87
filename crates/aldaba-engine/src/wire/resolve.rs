use super::WireError;
use super::root_query::{RootAnswer, ask_root};
use super::shortage;
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
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
const SHORTEST_TTL: Duration = Duration::from_secs(1);
const LONGEST_TTL: Duration = Duration::from_secs(300);
const LONGEST_NEGATIVE_TTL: Duration = Duration::from_secs(30);
const CACHED_ANSWERS: u64 = 8_192;

/// How long a failure of the name server answers for the name, so that many deliveries to it do not
/// each wait for a server that is silent.
const FAILURE_KEPT: Duration = Duration::from_secs(2);

/// Once one family of addresses is known, the other gets this much longer: a name server that never
/// answers one of the two questions must not delay every delivery.
const OTHER_FAMILY_GRACE: Duration = Duration::from_millis(250);

/// How long our resolver has to answer a question that needs no name server but itself.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long what it answered, or did not, counts.
const PROBE_KEPT: Duration = Duration::from_secs(1);

/// The most names that are looked up (or whose failure is kept) at once. Past it an attempt fails
/// for a reason of ours and is tried again later.
const MAX_FLIGHTS: usize = 4_096;

pub(super) const OVERLOADED: &str = "too many names are being resolved at once";

/// Asks name servers, without ever blocking a thread. However many requests want a name, one lookup
/// is under way for it.
#[derive(Clone)]
pub(super) struct Resolver {
    hickory: TokioResolver,
    /// Those that are asked.
    servers: Arc<[SocketAddr]>,
    flights: Flights,
    probe: Arc<Mutex<Option<watch::Receiver<Option<RootAnswer>>>>>,
}

type Flights = Arc<Mutex<HashMap<Arc<str>, watch::Receiver<Option<Answer>>>>>;
type Answer = Result<Arc<[IpAddr]>, Unresolved>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    NoSuchName,
    NoAddresses,
    ServerFailed,
    ServerRefused,
    Silence,
    Invalid,
    Unreachable,
    /// Ours: too many lookups, or no sockets left.
    Overloaded,
    /// Ours: the name servers that we ask cannot be reached, or fail for the root as well.
    ResolverDown,
}

impl Resolver {
    /// With no servers given, those of `/etc/resolv.conf`. `/etc/hosts` counts in both cases.
    pub(super) fn new(servers: Option<&[SocketAddr]>) -> Result<Self, WireError> {
        let (config, mut options) = match servers {
            Some(servers) => (explicit(servers), ResolverOpts::default()),
            None => read_system_conf().unwrap_or_else(|error| {
                tracing::warn!(%error, "no usable /etc/resolv.conf: asking the name server on this machine");
                let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
                (explicit(&[local]), ResolverOpts::default())
            }),
        };
        bound(&mut options);
        let servers = config
            .name_servers()
            .iter()
            .filter_map(|server| Some(SocketAddr::new(server.ip, server.connections.first()?.port)));
        let servers = servers.collect();
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let hickory = builder.with_options(options).build();
        let hickory = hickory.map_err(|error| WireError::Resolver(error.to_string()))?;
        Ok(Self { hickory, servers, flights: Flights::default(), probe: Arc::default() })
    }

    /// All addresses of the name, the two families by turns. There is at least one.
    pub(super) async fn resolve(&self, name: &str) -> Answer {
        let mut flight = self.board(name).ok_or(Unresolved::Overloaded)?;
        match flight.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or(Err(Unresolved::Unreachable)),
            Err(_) => Err(Unresolved::Unreachable),
        }
    }

    /// Joins the lookup that is under way for this name, or starts it. It runs on its own, so that
    /// its answer serves the next attempt even if nobody could wait for it.
    fn board(&self, name: &str) -> Option<watch::Receiver<Option<Answer>>> {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(name) {
            return Some(flight.clone());
        }
        if flights.len() >= MAX_FLIGHTS {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        let name: Arc<str> = name.into();
        flights.insert(Arc::clone(&name), receiver.clone());
        let landing = Landing { flights: Arc::clone(&self.flights), name };
        tokio::spawn(fly(self.clone(), landing, sender));
        Some(receiver)
    }

    /// Whether no resolver of ours says anything, whatever it is asked.
    pub(super) async fn is_down(&self) -> bool {
        self.root().await.silent
    }

    /// What our resolvers say about the root. However many lookups fail, they are asked once in a while.
    async fn root(&self) -> RootAnswer {
        let mut asked = self.ask_root_once();
        let answer = asked.wait_for(Option::is_some).await.map(|answer| *answer);
        // Without an answer there is nothing to clear the host of the name with.
        answer.ok().flatten().unwrap_or(RootAnswer { silent: false, failed: false, refused: false })
    }

    fn ask_root_once(&self) -> watch::Receiver<Option<RootAnswer>> {
        let mut probe = self.probe.lock();
        if let Some(asked) = &*probe {
            return asked.clone();
        }
        let (sender, receiver) = watch::channel(None);
        *probe = Some(receiver.clone());
        drop(probe);
        let (servers, probe) = (Arc::clone(&self.servers), Arc::clone(&self.probe));
        tokio::spawn(async move {
            let answer = ask_root(&servers, PROBE_TIMEOUT).await;
            sender.send_replace(Some(answer));
            sleep(PROBE_KEPT).await;
            *probe.lock() = None;
        });
        receiver
    }

    /// A failure for one name is the name's, unless our resolvers fail alike for the root.
    async fn whose(&self, unresolved: Unresolved) -> Unresolved {
        let ours = match unresolved {
            Unresolved::Silence | Unresolved::Unreachable => self.root().await.silent,
            Unresolved::ServerFailed => self.root().await.failed,
            Unresolved::ServerRefused => self.root().await.refused,
            _ => false,
        };
        if ours { Unresolved::ResolverDown } else { unresolved }
    }
}

async fn fly(resolver: Resolver, landing: Landing, sender: watch::Sender<Option<Answer>>) {
    let answer = match look_up(&resolver.hickory, &landing.name).await {
        Ok(addresses) => Ok(addresses),
        Err(unresolved) => Err(resolver.whose(unresolved).await),
    };
    let failure_of_server = matches!(
        answer,
        Err(Unresolved::ServerFailed
            | Unresolved::ServerRefused
            | Unresolved::Silence
            | Unresolved::ResolverDown)
    );
    sender.send_replace(Some(answer));
    if failure_of_server {
        sleep(FAILURE_KEPT).await;
    }
}

/// Takes the lookup off the board, however it ends.
struct Landing {
    flights: Flights,
    name: Arc<str>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.name);
    }
}

async fn look_up(hickory: &TokioResolver, name: &str) -> Answer {
    // A name with a dot is meant as it stands; the search list is for short names of a local network.
    let absolute = name.contains('.');
    let mut name = Name::from_ascii(name).map_err(|_| Unresolved::Invalid)?;
    name.set_fqdn(absolute);

    let v6 = pin!(hickory.ipv6_lookup(name.clone()));
    let v4 = pin!(hickory.ipv4_lookup(name));
    let (v6, v4) = match select(v6, v4).await {
        Either::Left((v6, v4)) => {
            let v4 = second(&v6, v4).await;
            (v6, v4)
        }
        Either::Right((v4, v6)) => (second(&v4, v6).await, v4),
    };
    let addresses = by_turns(&addresses(&v6), &addresses(&v4));
    if addresses.is_empty() { Err(worse(reason(v6), reason(v4))) } else { Ok(addresses) }
}

async fn second(
    first: &Result<Lookup, NetError>,
    other: impl Future<Output = Result<Lookup, NetError>>,
) -> Result<Lookup, NetError> {
    if addresses(first).is_empty() {
        other.await
    } else {
        timeout(OTHER_FAMILY_GRACE, other).await.unwrap_or(Err(NetError::Timeout))
    }
}

fn addresses(lookup: &Result<Lookup, NetError>) -> Vec<IpAddr> {
    let Ok(lookup) = lookup else { return Vec::new() };
    lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect()
}

fn by_turns(v6: &[IpAddr], v4: &[IpAddr]) -> Arc<[IpAddr]> {
    (0..v6.len().max(v4.len())).flat_map(|i| [v6.get(i), v4.get(i)]).flatten().copied().collect()
}

fn reason(lookup: Result<Lookup, NetError>) -> Unresolved {
    match lookup {
        Ok(_) => Unresolved::NoAddresses,
        Err(NetError::Timeout) => Unresolved::Silence,
        Err(NetError::Busy) => Unresolved::Overloaded,
        Err(NetError::Io(error)) if shortage::is_shortage(&error) => Unresolved::Overloaded,
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => of_code(none.response_code),
        Err(NetError::Dns(DnsError::ResponseCode(code))) => of_code(code),
        Err(_) => Unresolved::Unreachable,
    }
}

fn of_code(code: ResponseCode) -> Unresolved {
    match code {
        ResponseCode::NXDomain => Unresolved::NoSuchName,
        ResponseCode::NoError => Unresolved::NoAddresses,
        ResponseCode::Refused | ResponseCode::NotAuth | ResponseCode::NotImp => Unresolved::ServerRefused,
        _ => Unresolved::ServerFailed,
    }
}

/// Of two reasons, the one that says more: that a family has no addresses is normal.
fn worse(v6: Unresolved, v4: Unresolved) -> Unresolved {
    if v4 == Unresolved::NoAddresses { v6 } else { v4 }
}

impl From<Unresolved> for AttemptFailure {
    fn from(unresolved: Unresolved) -> Self {
        let (kind, detail) = match unresolved {
            Unresolved::NoSuchName => (FailureKind::Dns, "the host name does not exist (NXDOMAIN)"),
            Unresolved::NoAddresses => (FailureKind::Dns, "the host name has no addresses"),
            Unresolved::ServerFailed => (FailureKind::Dns, "the name server failed (SERVFAIL)"),
            Unresolved::ServerRefused => (FailureKind::Dns, "the name server refused to answer (REFUSED)"),
            Unresolved::Silence => (FailureKind::Dns, "the name server did not answer in time"),
            Unresolved::Invalid => (FailureKind::Dns, "the host name is not a valid name"),
            Unresolved::Unreachable => (FailureKind::Dns, "the host name could not be resolved"),
            Unresolved::Overloaded => (FailureKind::Unsent, OVERLOADED),
            Unresolved::ResolverDown => return own_resolver_down(),
        };
        Self { kind, detail: detail.into() }
    }
}

/// The name servers that this server asks are down: no host is to blame.
pub(super) fn own_resolver_down() -> AttemptFailure {
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

fn bound(options: &mut ResolverOpts) {
    options.timeout = QUERY_TIMEOUT;
    // A lost packet is sent again within the two seconds; a second round would double them.
    options.attempts = 0;
    options.cache_size = CACHED_ANSWERS;
    options.positive_min_ttl = Some(SHORTEST_TTL);
    options.positive_max_ttl = Some(LONGEST_TTL);
    options.negative_min_ttl = Some(SHORTEST_TTL);
    options.negative_max_ttl = Some(LONGEST_NEGATIVE_TTL);
}
