use super::guard::Guard;
use super::identity::Identity;
use super::proxy::Proxy;
use super::resolve::{OVERLOADED, Resolver};
use super::stream::{Socket, Stream};
use super::target::{Target, TargetHost};
use super::tls::Tls;
use aldaba_delivery::{Failure, FailureKind};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use url::{Host, Url};

/// The most addresses of one name that are tried. All of them are judged.
const MAX_ADDRESSES: usize = 16;

/// How long an address may keep quiet before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// The most addresses of one name that are connected to at once.
const MOST_AT_ONCE: usize = 4;

const NO_SOCKET: &str = "no free socket on this server";

/// Everything that is needed to reach a receiver.
pub(super) struct Connector {
    pub(super) guard: Guard,
    pub(super) resolver: Resolver,
    pub(super) tls: Tls,
    pub(super) proxy: Option<Proxy>,
}

impl Connector {
    /// Name, connection and TLS, all before `by`.
    pub(super) async fn connect(
        &self,
        target: &Target<'_>,
        http2: bool,
        identity: Option<&Identity>,
        by: Instant,
    ) -> Result<Stream, Failure> {
        let addresses = in_time(by, "resolving the host name", self.vetted(&target.host)).await?;
        let socket = match &self.proxy {
            None => in_time(by, "connecting", first_to_answer(&addresses, target.port)).await?,
            Some(proxy) => proxy.reach(&self.resolver, &addresses, target.port, by).await?,
        };
        if !target.secure {
            return Ok(Stream::Plain(socket));
        }
        let name = server_name(target.url)?;
        let handshake = self.tls.handshake(name, socket, http2, identity);
        in_time(by, "the TLS handshake", handshake).await.map(Stream::Tls)
    }

    /// The addresses that may be connected to. One forbidden address among them forbids all: a name
    /// that points inside as well as outside was made to get inside.
    async fn vetted(&self, host: &TargetHost) -> Result<Vec<IpAddr>, Failure> {
        let name = match host {
            TargetHost::Addresses(addresses) => return Ok(addresses.clone()),
            TargetHost::Name(name) => name,
        };
        let answers = self.resolver.resolve(name).await?;
        if !answers.iter().all(|address| self.guard.allows(*address)) {
            return Err(forbidden());
        }
        Ok(answers.iter().take(MAX_ADDRESSES).map(IpAddr::to_canonical).collect())
    }
}

/// The tenant learns that the guard refused, and not what the name led to.
pub(super) fn forbidden() -> Failure {
    Failure {
        kind: FailureKind::TargetForbidden,
        detail: "the target leads to a private, local or reserved address".into(),
    }
}

pub(super) async fn in_time<T>(
    by: Instant,
    step: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout_at(by, work).await.unwrap_or_else(|_| {
        Err(Failure { kind: FailureKind::ConnectTimeout, detail: format!("{step} took too long").into() })
    })
}

/// The addresses in their order, each with a head start over the next; the first connection that
/// stands is taken.
pub(super) async fn first_to_answer(addresses: &[IpAddr], port: u16) -> Result<Socket, Failure> {
    let mut waiting = addresses.iter();
    let mut under_way = FuturesUnordered::new();
    let mut error = None;
    loop {
        if under_way.len() < MOST_AT_ONCE
            && let Some(address) = waiting.next()
        {
            under_way.push(TcpStream::connect(SocketAddr::new(*address, port)));
        } else if under_way.is_empty() {
            return Err(failure(error.as_ref()));
        }
        tokio::select! {
            biased;
            Some(connected) = under_way.next() => match connected {
                Ok(tcp) => {
                    // Without it the last bytes of a request would wait for an acknowledgement.
                    let _ = tcp.set_nodelay(true);
                    return Ok(Socket::new(tcp));
                }
                Err(new) if error.as_ref().is_none_or(says_little) => error = Some(new),
                Err(_) => {}
            },
            () = sleep(HEAD_START), if waiting.len() > 0 && under_way.len() < MOST_AT_ONCE => {}
        }
    }
}

/// That there is no way to one family of addresses is normal on many machines.
fn says_little(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), AddrNotAvailable | HostUnreachable | NetworkUnreachable)
}

/// In the kind's own words: the error itself can hold an address.
fn failure(error: Option<&io::Error>) -> Failure {
    let (kind, detail) = match error {
        Some(error) if own_shortage(error) => (FailureKind::Unsent, NO_SOCKET.into()),
        Some(error) if error.kind() == io::ErrorKind::TimedOut => {
            (FailureKind::ConnectTimeout, "connecting took too long".into())
        }
        Some(error) => (FailureKind::Connect, error.kind().to_string().into()),
        None => (FailureKind::Connect, "no address to connect to".into()),
    };
    Failure { kind, detail }
}

/// Out of file descriptors or memory: it says nothing about the receiver.
pub(super) fn own_shortage(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) || error.kind() == io::ErrorKind::OutOfMemory
}

/// Whether closing connections of ours would help.
pub(super) fn is_shortage(failure: &Failure) -> bool {
    failure.kind == FailureKind::Unsent && (failure.detail == NO_SOCKET || failure.detail == OVERLOADED)
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Failure> {
    let name = match url.host() {
        Some(Host::Ipv4(address)) => Some(ServerName::from(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => Some(ServerName::from(IpAddr::V6(address))),
        Some(Host::Domain(name)) => ServerName::try_from(name.trim_end_matches('.').to_owned()).ok(),
        None => None,
    };
    name.ok_or(Failure { kind: FailureKind::Tls, detail: "the host name cannot be used for TLS".into() })
}
