use super::connect::first_to_answer;
use super::resolve::Resolver;
use super::stream::Socket;
use super::target::Credentials;
use aldaba_delivery::{AttemptFailure, FailureKind};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

mod http_connect;
mod socks5;

/// The most addresses of one receiver that a proxy is asked for in one attempt.
const MOST_ASKED: usize = 3;

/// The operator's way out. It is told addresses, never names: what it connects to is what the guard
/// has judged.
#[derive(Clone, PartialEq, Eq)]
pub struct EgressProxy {
    kind: Kind,
    host: ProxyHost,
    port: u16,
    credentials: Option<Credentials>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HttpConnect,
    Socks5,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ProxyHost {
    Addresses(Vec<IpAddr>),
    Name(String),
}

/// Why a text names no proxy. No variant holds any of the text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProxyRefused {
    #[error("a proxy's URL must begin with http:// or socks5://")]
    Scheme,
    #[error("a proxy's URL must name a host and a port, and nothing behind them")]
    Place,
    #[error("user and password of a proxy must be percent-encoded UTF-8 text, for SOCKS5 of 1 to 255 bytes")]
    Credentials,
}

impl FromStr for EgressProxy {
    type Err = ProxyRefused;

    /// Reads `http://[user:password@]host:port` or `socks5://…`.
    fn from_str(text: &str) -> Result<Self, ProxyRefused> {
        let (scheme, rest) = text.split_once("://").ok_or(ProxyRefused::Scheme)?;
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "http" => Kind::HttpConnect,
            "socks5" => Kind::Socks5,
            _ => return Err(ProxyRefused::Scheme),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(ProxyRefused::Place);
        }
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.filter(|port| *port != 0).ok_or(ProxyRefused::Place)?;
        // Only for this scheme does the parser see addresses in a host.
        let mut url = Url::parse(&format!("http://{authority}")).map_err(|_| ProxyRefused::Place)?;
        let credentials = Credentials::split_off(&mut url).map_err(|_| ProxyRefused::Credentials)?;
        let fits = |text: &str| (1..=255).contains(&text.len());
        if kind == Kind::Socks5 && credentials.as_ref().is_some_and(|c| !fits(&c.user) || !fits(&c.password))
        {
            return Err(ProxyRefused::Credentials);
        }
        let host = match url.host() {
            Some(Host::Ipv4(address)) => ProxyHost::Addresses(vec![address.into()]),
            Some(Host::Ipv6(address)) => ProxyHost::Addresses(vec![address.into()]),
            Some(Host::Domain("localhost")) => {
                ProxyHost::Addresses(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            Some(Host::Domain(name)) => ProxyHost::Name(name.trim_end_matches('.').to_owned()),
            None => return Err(ProxyRefused::Place),
        };
        Ok(Self { kind, host, port, credentials })
    }
}

/// Without the credentials.
impl fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, host, port, credentials: _ } = self;
        write!(f, "EgressProxy({kind:?} {host:?} {port})")
    }
}

/// The proxy at work.
pub(super) struct Proxy {
    proxy: EgressProxy,
    /// How often it has said anything about a receiver: the sign that it is alive.
    answers: AtomicU64,
}

/// Why a proxy did not make a connection.
enum Refusal {
    /// It could not reach the receiver there; another address may do.
    Receiver(AttemptFailure),
    /// It would not, or it is broken.
    Proxy(AttemptFailure),
}

impl Proxy {
    pub(super) fn new(proxy: EgressProxy) -> Self {
        Self { proxy, answers: AtomicU64::new(0) }
    }

    /// A connection to one of the addresses, made by the proxy before `by`.
    pub(super) async fn reach(
        &self,
        resolver: &Resolver,
        addresses: &[IpAddr],
        port: u16,
        by: Instant,
    ) -> Result<Socket, AttemptFailure> {
        let mut refused = None;
        for address in addresses.iter().take(MOST_ASKED) {
            let dialled = timeout_at(by, self.dial(resolver)).await;
            let mut socket = dialled.unwrap_or_else(|_| Err(no_way("did not answer in time")))?;
            let before = self.answers.load(Ordering::Relaxed);
            match timeout_at(by, self.ask(&mut socket, SocketAddr::new(*address, port))).await {
                Ok(Ok(())) => return Ok(socket),
                Ok(Err(Refusal::Receiver(failure))) => refused = Some(failure),
                Ok(Err(Refusal::Proxy(failure))) => return Err(failure),
                // Either of the two may be the silent one. It is the receiver if the proxy has spoken
                // in the meantime.
                Err(_) if self.answers.load(Ordering::Relaxed) > before => {
                    let detail = "the egress proxy did not reach the receiver in time".into();
                    return Err(AttemptFailure { kind: FailureKind::ConnectTimeout, detail });
                }
                Err(_) => return Err(own("said nothing in time")),
            }
        }
        Err(refused.unwrap_or_else(|| own("was not asked: there is no address")))
    }

    async fn dial(&self, resolver: &Resolver) -> Result<Socket, AttemptFailure> {
        let EgressProxy { host, port, .. } = &self.proxy;
        let dialled = match host {
            ProxyHost::Addresses(addresses) => first_to_answer(addresses, *port).await,
            ProxyHost::Name(name) => match resolver.resolve(name).await {
                Ok(addresses) => first_to_answer(&addresses, *port).await,
                Err(unresolved) => Err(unresolved.into()),
            },
        };
        dialled.map_err(|failure| match failure.kind {
            FailureKind::Unsent => failure,
            FailureKind::Dns => no_way("has a host name that cannot be resolved"),
            _ => no_way("cannot be connected to"),
        })
    }

    async fn ask(&self, socket: &mut Socket, target: SocketAddr) -> Result<(), Refusal> {
        let credentials = self.proxy.credentials.as_ref();
        let answer = match self.proxy.kind {
            Kind::HttpConnect => http_connect::ask(socket, target, credentials).await,
            Kind::Socks5 => {
                socks5::greet(socket, credentials).await?;
                self.answers.fetch_add(1, Ordering::Relaxed);
                socks5::ask(socket, target).await
            }
        };
        if !matches!(answer, Err(Refusal::Proxy(_))) {
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// Nothing can leave as long as it is so; no delivery is to blame.
fn no_way(what: &str) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Unsent, detail: format!("the egress proxy {what}").into() }
}

/// It may have to do with this receiver, but is not its fault.
fn own(what: &str) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Internal, detail: format!("the egress proxy {what}").into() }
}

fn unreached(what: &str) -> Refusal {
    let detail = format!("the egress proxy could not reach the receiver: {what}").into();
    Refusal::Receiver(AttemptFailure { kind: FailureKind::Connect, detail })
}

/// The connection to the proxy broke while it was spoken to.
impl From<std::io::Error> for Refusal {
    fn from(_: std::io::Error) -> Self {
        Self::Proxy(own("closed the connection without an answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_from_its_url_and_hides_its_credentials() {
        let proxy: EgressProxy = "http://user:s%40cret@proxy.example:3128/".parse().unwrap();
        let credentials = Credentials { user: "user".into(), password: "s@cret".into() };
        let expected = EgressProxy {
            kind: Kind::HttpConnect,
            host: ProxyHost::Name("proxy.example".into()),
            port: 3128,
            credentials: Some(credentials),
        };
        assert_eq!(proxy, expected);
        assert!(!format!("{proxy:?}").contains("cret"), "{proxy:?}");
        for (text, address) in [("SOCKS5://127.0.0.1:80", "127.0.0.1"), ("http://[::1]:80", "::1")] {
            let proxy: EgressProxy = text.parse().unwrap();
            let host = ProxyHost::Addresses(vec![address.parse().unwrap()]);
            assert_eq!((proxy.host, proxy.port, proxy.credentials), (host, 80, None));
        }
    }

    #[test]
    fn what_names_no_proxy_is_refused() {
        use ProxyRefused as Refused;
        let long = format!("socks5://{}:b@h:1", "x".repeat(256));
        for (text, expected) in [
            ("proxy:3128", Refused::Scheme),
            ("https://proxy:3128", Refused::Scheme),
            ("socks4://proxy:1080", Refused::Scheme),
            ("http://proxy", Refused::Place),
            ("http://[::1]", Refused::Place),
            ("http://proxy:0", Refused::Place),
            ("http://proxy:99999", Refused::Place),
            ("http://:3128", Refused::Place),
            ("http://proxy:3128/path", Refused::Place),
            ("http://proxy:3128?a", Refused::Place),
            ("http://a%3Ab:c@proxy:3128", Refused::Credentials),
            ("socks5://user@proxy:1080", Refused::Credentials),
            (&long, Refused::Credentials),
        ] {
            assert_eq!(text.parse::<EgressProxy>(), Err(expected), "{text}");
        }
    }
}
