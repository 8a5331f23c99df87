use super::connect_error::{ConnectError, NO_LOCAL_RESOURCES};
use super::deadline::{not_connected, with_deadline};
use super::dns::{OVERLOADED, Resolver};
use super::guard::Guard;
use super::proxy::Proxy;
use super::stream::{Socket, WireStream};
use super::target::{TargetHost, WireTarget};
use super::tls::Identity;
use super::tls::Tls;
use aldaba_delivery::{AttemptFailure, FailureKind};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use url::{Host, Url};

/// The most addresses of one name that are tried. All of them are checked.
const MAX_ADDRESSES: usize = 16;

/// How long a connection attempt runs before the next address is tried in parallel.
const FALLBACK_DELAY: Duration = Duration::from_millis(250);

/// The most parallel connection attempts for one name.
const MAX_CONCURRENT_CONNECTS: usize = 4;

/// Opens connections to receivers.
pub(super) struct Connector {
    pub(super) guard: Guard,
    pub(super) resolver: Resolver,
    pub(super) tls: Tls,
    pub(super) proxy: Option<Proxy>,
}

impl Connector {
    /// Resolves the name, connects and completes TLS, all before `deadline`.
    pub(super) async fn connect(
        &self,
        target: &WireTarget<'_>,
        http2: bool,
        identity: Option<&Identity>,
        deadline: Instant,
    ) -> Result<WireStream, AttemptFailure> {
        let addresses = match timeout_at(deadline, self.allowed_addresses(&target.host)).await {
            Ok(addresses) => addresses?,
            Err(_) => {
                return Err(self.not_connected(&target.host, deadline, "resolving the host name").await);
            }
        };
        let socket = match &self.proxy {
            None => with_deadline(deadline, "connecting", connect_any(&addresses, target.port)).await?,
            Some(proxy) => proxy.connect(&self.resolver, &addresses, target.port, deadline).await?,
        };
        if !target.secure {
            return Ok(WireStream::Plain(socket));
        }
        let name = server_name(target.url)?;
        let handshake = self.tls.handshake(name, socket, http2, identity);
        with_deadline(deadline, "the TLS handshake", handshake).await.map(WireStream::Tls)
    }

    /// The failure of a request without a connection at its deadline, be it that it connects itself or that it waits for
    /// another one to connect. Until the name is resolved, either the receiver's name server or ours is silent.
    pub(super) async fn not_connected(
        &self,
        host: &TargetHost,
        deadline: Instant,
        step: &'static str,
    ) -> AttemptFailure {
        let failure = not_connected(deadline, step);
        let is_ours = match host {
            TargetHost::Name(name) if failure.kind == FailureKind::ConnectTimeout => {
                self.resolver.is_looking_up(name) && self.resolver.is_down().await
            }
            TargetHost::Name(_) | TargetHost::Addresses(_) => false,
        };
        if is_ours { super::dns::resolver_down() } else { failure }
    }

    /// The addresses that may be connected to. One forbidden address rejects all: a name that resolves to
    /// both public and private addresses is likely an attack.
    async fn allowed_addresses(&self, host: &TargetHost) -> Result<Vec<IpAddr>, AttemptFailure> {
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

/// The tenant learns that the guard refused, but not which address the name resolved to.
pub(super) fn forbidden() -> AttemptFailure {
    AttemptFailure {
        kind: FailureKind::TargetForbidden,
        detail: "the target leads to a private, local or reserved address".into(),
    }
}

/// Tries the addresses in order, each with a head start over the next, and takes the first connection.
pub(super) async fn connect_any(addresses: &[IpAddr], port: u16) -> Result<Socket, AttemptFailure> {
    let tcp = race_connects(addresses, port, TcpStream::connect::<SocketAddr>).await?;
    // Without this, the last bytes of a request would wait for an acknowledgement.
    let _ = tcp.set_nodelay(true);
    Ok(Socket::new(tcp))
}

async fn race_connects<T, F>(
    addresses: &[IpAddr],
    port: u16,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, AttemptFailure>
where
    F: Future<Output = io::Result<T>>,
{
    let mut untried = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut error_so_far: Option<ConnectError> = None;
    loop {
        if attempts.len() < MAX_CONCURRENT_CONNECTS
            && let Some(address) = untried.next()
        {
            let address = SocketAddr::new(*address, port);
            let connecting = connect(address);
            attempts.push(async move { (address, connecting.await) });
        } else if attempts.is_empty() {
            return Err(error_so_far.map_or_else(no_address, ConnectError::failure));
        }
        tokio::select! {
            biased;
            Some((address, connected)) = attempts.next() => match connected {
                Ok(connected) => return Ok(connected),
                Err(error) => {
                    let new = ConnectError::of(&error, address);
                    error_so_far = Some(error_so_far.map_or(new, |error: ConnectError| error.more_specific(new)));
                }
            },
            () = sleep(FALLBACK_DELAY), if untried.len() > 0 && attempts.len() < MAX_CONCURRENT_CONNECTS => {}
        }
    }
}

fn no_address() -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Connect, detail: "no address to connect to".into() }
}

/// Whether closing idle connections would free what was missing.
pub(super) fn is_local_exhaustion(failure: &AttemptFailure) -> bool {
    failure.kind == FailureKind::Unsent
        && (failure.detail == NO_LOCAL_RESOURCES || failure.detail == OVERLOADED)
}

fn server_name(url: &Url) -> Result<ServerName<'static>, AttemptFailure> {
    let name = match url.host() {
        Some(Host::Ipv4(address)) => Some(ServerName::from(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => Some(ServerName::from(IpAddr::V6(address))),
        Some(Host::Domain(name)) => ServerName::try_from(name.trim_end_matches('.').to_owned()).ok(),
        None => None,
    };
    name.ok_or(AttemptFailure {
        kind: FailureKind::Tls,
        detail: "the host name cannot be used for TLS".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn with_errors(codes: &[i32]) -> AttemptFailure {
        let addresses: Vec<IpAddr> = (1..=codes.len() as u8).map(|n| [127, 0, 0, n].into()).collect();
        let connect = |address: SocketAddr| {
            let IpAddr::V4(v4) = address.ip() else { unreachable!("none was given") };
            let code = codes[usize::from(v4.octets()[3]) - 1];
            async move { Err::<(), _>(io::Error::from_raw_os_error(code)) }
        };
        race_connects(&addresses, 9, connect).await.unwrap_err()
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn running_out_of_local_ports_is_not_counted_against_the_host() {
        const EADDRNOTAVAIL: i32 = 99;
        const ECONNREFUSED: i32 = 111;
        for codes in [&[EADDRNOTAVAIL][..], &[ECONNREFUSED, EADDRNOTAVAIL], &[EADDRNOTAVAIL, ECONNREFUSED]] {
            let failure = with_errors(codes).await;
            assert_eq!(failure.kind, FailureKind::Unsent, "{codes:?}: {failure:?}");
            assert!(is_local_exhaustion(&failure));
        }
        assert_eq!(with_errors(&[ECONNREFUSED]).await.kind, FailureKind::Connect);
    }
}
