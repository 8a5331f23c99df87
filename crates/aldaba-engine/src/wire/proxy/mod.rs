use crate::wire::connect::connect_any;
use crate::wire::deadline::was_stalled;
use crate::wire::dns::Resolver;
use crate::wire::stream::Socket;
use crate::wire::target::BasicCredentials;
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

/// The most addresses of one receiver that are requested from the proxy in one attempt.
const MAX_ADDRESSES_TRIED: usize = 3;

/// The operator's egress proxy. It receives addresses, never names, so it connects to what the guard
/// checked.
#[derive(Clone, PartialEq, Eq)]
pub struct EgressProxy {
    kind: ProxyKind,
    host: ProxyHost,
    port: u16,
    credentials: Option<BasicCredentials>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyKind {
    HttpConnect,
    Socks5,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ProxyHost {
    Addresses(Vec<IpAddr>),
    Name(String),
}

/// Why a proxy URL is invalid. No variant holds any of the text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProxyUrlError {
    #[error("a proxy's URL must begin with http:// or socks5://")]
    Scheme,
    #[error("a proxy's URL must have a host and a port, and nothing after them")]
    Authority,
    #[error("user and password of a proxy must be percent-encoded UTF-8 text, for SOCKS5 of 1 to 255 bytes")]
    Credentials,
}

impl FromStr for EgressProxy {
    type Err = ProxyUrlError;

    /// Reads `http://[user:password@]host:port` or `socks5://…`.
    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(ProxyUrlError::Scheme)?;
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyKind::HttpConnect,
            "socks5" => ProxyKind::Socks5,
            _ => return Err(ProxyUrlError::Scheme),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(ProxyUrlError::Authority);
        }
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.filter(|port| *port != 0).ok_or(ProxyUrlError::Authority)?;
        // The parser recognizes addresses in a host only for this scheme.
        let mut url = Url::parse(&format!("http://{authority}")).map_err(|_| ProxyUrlError::Authority)?;
        let credentials = BasicCredentials::split_off(&mut url).map_err(|_| ProxyUrlError::Credentials)?;
        let fits = |text: &str| (1..=255).contains(&text.len());
        if kind == ProxyKind::Socks5
            && credentials.as_ref().is_some_and(|c| !fits(&c.user) || !fits(&c.password))
        {
            return Err(ProxyUrlError::Credentials);
        }
        let host = match url.host() {
            Some(Host::Ipv4(address)) => ProxyHost::Addresses(vec![address.into()]),
            Some(Host::Ipv6(address)) => ProxyHost::Addresses(vec![address.into()]),
            Some(Host::Domain("localhost")) => {
                ProxyHost::Addresses(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            Some(Host::Domain(name)) => ProxyHost::Name(name.trim_end_matches('.').to_owned()),
            None => return Err(ProxyUrlError::Authority),
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

/// The proxy at run time.
pub(super) struct Proxy {
    proxy: EgressProxy,
    /// How often it answered about a receiver: the sign that it is alive.
    responses: AtomicU64,
}

/// Why the proxy did not connect.
enum ProxyError {
    /// It could not reach this address; another may work.
    Receiver(AttemptFailure),
    /// It refused, or it failed itself.
    Proxy(AttemptFailure),
}

impl Proxy {
    pub(super) fn new(proxy: EgressProxy) -> Self {
        Self { proxy, responses: AtomicU64::new(0) }
    }

    /// Connects to one of the addresses through the proxy, before `deadline`.
    pub(super) async fn connect(
        &self,
        resolver: &Resolver,
        addresses: &[IpAddr],
        port: u16,
        deadline: Instant,
    ) -> Result<Socket, AttemptFailure> {
        let mut refused = None;
        for address in addresses.iter().take(MAX_ADDRESSES_TRIED) {
            let dialled = timeout_at(deadline, self.dial(resolver)).await;
            let mut socket = dialled.unwrap_or_else(|_| Err(unavailable("did not answer in time")))?;
            let before = self.responses.load(Ordering::Relaxed);
            match timeout_at(deadline, self.request_connection(&mut socket, SocketAddr::new(*address, port)))
                .await
            {
                Ok(Ok(())) => return Ok(socket),
                Ok(Err(ProxyError::Receiver(failure))) => refused = Some(failure),
                Ok(Err(ProxyError::Proxy(failure))) => return Err(failure),
                // Either the proxy or the receiver is silent. It is the receiver if the proxy has answered
                // others meanwhile.
                Err(_) if self.responses.load(Ordering::Relaxed) > before && !was_stalled(deadline) => {
                    let detail = "the egress proxy did not reach the receiver in time".into();
                    return Err(AttemptFailure { kind: FailureKind::ConnectTimeout, detail });
                }
                Err(_) => return Err(proxy_failure("said nothing in time")),
            }
        }
        Err(refused.unwrap_or_else(|| proxy_failure("was not asked: there is no address")))
    }

    async fn dial(&self, resolver: &Resolver) -> Result<Socket, AttemptFailure> {
        let EgressProxy { host, port, .. } = &self.proxy;
        let dialled = match host {
            ProxyHost::Addresses(addresses) => connect_any(addresses, *port).await,
            ProxyHost::Name(name) => match resolver.resolve(name).await {
                Ok(addresses) => connect_any(&addresses, *port).await,
                Err(unresolved) => Err(unresolved.into()),
            },
        };
        dialled.map_err(|failure| match failure.kind {
            FailureKind::Unsent => failure,
            FailureKind::Dns => unavailable("has a host name that cannot be resolved"),
            _ => unavailable("cannot be connected to"),
        })
    }

    async fn request_connection(&self, socket: &mut Socket, target: SocketAddr) -> Result<(), ProxyError> {
        let credentials = self.proxy.credentials.as_ref();
        let answer = match self.proxy.kind {
            ProxyKind::HttpConnect => http_connect::request_connection(socket, target, credentials).await,
            ProxyKind::Socks5 => {
                socks5::negotiate(socket, credentials).await?;
                self.responses.fetch_add(1, Ordering::Relaxed);
                socks5::request_connection(socket, target).await
            }
        };
        if !matches!(answer, Err(ProxyError::Proxy(_))) {
            self.responses.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// The proxy is unavailable: nothing was sent, and no delivery is to blame.
fn unavailable(what: &str) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Unsent, detail: format!("the egress proxy {what}").into() }
}

/// The proxy failed for this request. The receiver is not to blame.
fn proxy_failure(what: &str) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Internal, detail: format!("the egress proxy {what}").into() }
}

fn receiver_unreachable(what: &str) -> ProxyError {
    let detail = format!("the egress proxy could not reach the receiver: {what}").into();
    ProxyError::Receiver(AttemptFailure { kind: FailureKind::Connect, detail })
}

/// The connection to the proxy ended during the negotiation.
impl From<std::io::Error> for ProxyError {
    fn from(_: std::io::Error) -> Self {
        Self::Proxy(proxy_failure("closed the connection without an answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_from_its_url_and_hides_its_credentials() {
        let proxy: EgressProxy = "http://user:s%40cret@proxy.example:3128/".parse().unwrap();
        let credentials = BasicCredentials { user: "user".into(), password: "s@cret".into() };
        let expected = EgressProxy {
            kind: ProxyKind::HttpConnect,
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
    fn invalid_proxy_urls_are_refused() {
        use ProxyUrlError as Refused;
        let long = format!("socks5://{}:b@h:1", "x".repeat(256));
        for (text, expected) in [
            ("proxy:3128", Refused::Scheme),
            ("https://proxy:3128", Refused::Scheme),
            ("socks4://proxy:1080", Refused::Scheme),
            ("http://proxy", ProxyUrlError::Authority),
            ("http://[::1]", ProxyUrlError::Authority),
            ("http://proxy:0", ProxyUrlError::Authority),
            ("http://proxy:99999", ProxyUrlError::Authority),
            ("http://:3128", ProxyUrlError::Authority),
            ("http://proxy:3128/path", ProxyUrlError::Authority),
            ("http://proxy:3128?a", ProxyUrlError::Authority),
            ("http://a%3Ab:c@proxy:3128", Refused::Credentials),
            ("socks5://user@proxy:1080", Refused::Credentials),
            (&long, Refused::Credentials),
        ] {
            assert_eq!(text.parse::<EgressProxy>(), Err(expected), "{text}");
        }
    }
}
