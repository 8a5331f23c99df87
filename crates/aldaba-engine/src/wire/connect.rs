use super::guard::Guard;
use super::identity::Identity;
use super::moment_in;
use super::proxy::Proxy;
use super::resolve::{OVERLOADED, Resolver};
use super::shortage::{Meaning, NO_SOCKET};
use super::stream::{Socket, Stream};
use super::target::{Target, TargetHost};
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

/// The most addresses of one name that are tried. All of them are judged.
const MAX_ADDRESSES: usize = 16;

/// How long an address may keep quiet before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// The most addresses of one name that are connected to at once.
const MOST_AT_ONCE: usize = 4;

/// How much later than its deadline a step may be ended. One that ends later was not too slow: this process
/// did not run.
const MAX_LATENESS: Duration = Duration::from_secs(1);

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
    ) -> Result<Stream, AttemptFailure> {
        let addresses = match timeout_at(by, self.vetted(&target.host)).await {
            Ok(vetted) => vetted?,
            // Their name server is silent, or ours.
            Err(_) if self.resolver.is_down().await => return Err(super::resolve::own_resolver_down()),
            Err(_) => return Err(too_slow(by, "resolving the host name")),
        };
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
    async fn vetted(&self, host: &TargetHost) -> Result<Vec<IpAddr>, AttemptFailure> {
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
pub(super) fn forbidden() -> AttemptFailure {
    AttemptFailure {
        kind: FailureKind::TargetForbidden,
        detail: "the target leads to a private, local or reserved address".into(),
    }
}

pub(super) async fn in_time<T>(
    by: Instant,
    step: &'static str,
    work: impl Future<Output = Result<T, AttemptFailure>>,
) -> Result<T, AttemptFailure> {
    timeout_at(by, work).await.unwrap_or_else(|_| Err(too_slow(by, step)))
}

fn too_slow(by: Instant, step: &'static str) -> AttemptFailure {
    let now = moment_in(Duration::ZERO);
    let failure = timed_out(step);
    match now.saturating_duration_since(by) > MAX_LATENESS {
        true => AttemptFailure { kind: FailureKind::Unsent, ..failure },
        false => failure,
    }
}

pub(super) fn timed_out(step: &'static str) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::ConnectTimeout, detail: format!("{step} took too long").into() }
}

/// The addresses in their order, each with a head start over the next; the first connection that
/// stands is taken.
pub(super) async fn first_to_answer(addresses: &[IpAddr], port: u16) -> Result<Socket, AttemptFailure> {
    let tcp = first_of(addresses, port, TcpStream::connect::<SocketAddr>).await?;
    // Without it the last bytes of a request would wait for an acknowledgement.
    let _ = tcp.set_nodelay(true);
    Ok(Socket::new(tcp))
}

async fn first_of<T, F>(
    addresses: &[IpAddr],
    port: u16,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, AttemptFailure>
where
    F: Future<Output = io::Result<T>>,
{
    let mut waiting = addresses.iter();
    let mut under_way = FuturesUnordered::new();
    let mut said: Option<Meaning> = None;
    loop {
        if under_way.len() < MOST_AT_ONCE
            && let Some(address) = waiting.next()
        {
            let address = SocketAddr::new(*address, port);
            let connecting = connect(address);
            under_way.push(async move { (address, connecting.await) });
        } else if under_way.is_empty() {
            return Err(said.map_or_else(no_address, Meaning::failure));
        }
        tokio::select! {
            biased;
            Some((address, connected)) = under_way.next() => match connected {
                Ok(connected) => return Ok(connected),
                Err(error) => {
                    let new = Meaning::of(&error, address);
                    said = Some(said.map_or(new, |said| said.or(new)));
                }
            },
            () = sleep(HEAD_START), if waiting.len() > 0 && under_way.len() < MOST_AT_ONCE => {}
        }
    }
}

fn no_address() -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Connect, detail: "no address to connect to".into() }
}

/// Whether closing connections of ours would help.
pub(super) fn is_shortage(failure: &AttemptFailure) -> bool {
    failure.kind == FailureKind::Unsent && (failure.detail == NO_SOCKET || failure.detail == OVERLOADED)
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
        first_of(&addresses, 9, connect).await.unwrap_err()
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_server_without_free_ports_blames_no_host() {
        const EADDRNOTAVAIL: i32 = 99;
        const ECONNREFUSED: i32 = 111;
        for codes in [&[EADDRNOTAVAIL][..], &[ECONNREFUSED, EADDRNOTAVAIL], &[EADDRNOTAVAIL, ECONNREFUSED]] {
            let failure = with_errors(codes).await;
            assert_eq!(failure.kind, FailureKind::Unsent, "{codes:?}: {failure:?}");
            assert!(is_shortage(&failure));
        }
        assert_eq!(with_errors(&[ECONNREFUSED]).await.kind, FailureKind::Connect);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_ends_long_after_its_deadline_was_not_the_hosts() {
        let by = moment_in(Duration::from_secs(5));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(too_slow(by, "connecting").kind, FailureKind::ConnectTimeout);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(too_slow(by, "connecting").kind, FailureKind::Unsent);
    }
}
