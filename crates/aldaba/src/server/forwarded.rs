//! What proxies say of their clients, believed only of those that the operator trusts.
//!
//! A proxy appends to what it has received, so the last entry is the nearest. From there, entries of trusted proxies are
//! passed over; the first other address is the client. What stands before it, anybody can have written.

use http::header::FORWARDED;
use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use parking_lot::RwLock;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The networks of the setting `trusted_proxies`. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Arc<ProxyNetworks>);

#[derive(Debug, Default)]
struct ProxyNetworks {
    networks: RwLock<Vec<IpNet>>,
    /// The log has said that the two kinds of headers disagree.
    warned: AtomicBool,
}

/// The other side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) tls: bool,
    /// Its headers about its clients are believed.
    pub(super) is_proxy: bool,
}

/// Where a request comes from, as an extension of it. A request without one came over a connection without TLS, and not
/// through a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestOrigin {
    pub(crate) client: IpAddr,
    pub(crate) https: bool,
    /// The host that the client named, where a proxy says so.
    pub(crate) host: Option<Authority>,
}

impl TrustedProxies {
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        let proxies = Self::default();
        proxies.set(networks);
        proxies
    }

    pub(crate) fn set(&self, networks: Vec<IpNet>) {
        *self.0.networks.write() = networks;
    }

    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.networks.read().iter().any(|network| network.contains(&address))
    }

    /// The origin of a request that came over this connection.
    pub(super) fn origin(&self, peer: Peer, headers: &HeaderMap) -> RequestOrigin {
        let direct = RequestOrigin { client: peer.address.to_canonical(), https: peer.tls, host: None };
        if !peer.is_proxy {
            return direct;
        }
        let (standard, usual) = (self.standard(headers, &direct), self.usual(headers, &direct));
        match (standard, usual) {
            (Some(standard), Some(usual)) if standard.client != usual.client => {
                // One of the two was written by the client, and nothing says which.
                if !self.0.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        proxy = %peer.address,
                        "a trusted proxy passes on Forwarded and X-Forwarded-For that disagree, so neither is believed; \
                         let it remove the one that it does not write itself"
                    );
                }
                direct
            }
            (Some(origin), _) | (None, Some(origin)) => origin,
            (None, None) => direct,
        }
    }

    /// By `Forwarded` (RFC 7239). `None`: there is none.
    fn standard(&self, headers: &HeaderMap, direct: &RequestOrigin) -> Option<RequestOrigin> {
        let elements = elements(headers, &FORWARDED)?;
        let mut origin = direct.clone();
        for element in elements.iter().rev() {
            let Some(client) = parameter(element, "for").and_then(|node| address(&node)) else { break };
            origin.client = client;
            if let Some(scheme) = parameter(element, "proto") {
                origin.https = scheme.eq_ignore_ascii_case("https");
            }
            origin.host = parameter(element, "host").and_then(|host| authority(&host)).or(origin.host);
            if !self.trusts(client) {
                break;
            }
        }
        Some(origin)
    }

    /// By `X-Forwarded-For` and its companions. `None`: there is none.
    fn usual(&self, headers: &HeaderMap, direct: &RequestOrigin) -> Option<RequestOrigin> {
        let hops = elements(headers, &FORWARDED_FOR)?;
        let mut origin = direct.clone();
        for client in hops.iter().rev().map_while(|hop| address(hop)) {
            origin.client = client;
            if !self.trusts(client) {
                break;
            }
        }
        // Of several values the last is the nearest proxy's.
        let last = |name: &HeaderName| elements(headers, name).and_then(|mut values| values.pop());
        if let Some(scheme) = last(&FORWARDED_PROTO) {
            origin.https = scheme.eq_ignore_ascii_case("https");
        }
        origin.host = last(&FORWARDED_HOST).and_then(|host| authority(&host));
        Some(origin)
    }
}

/// The elements of a list, over all lines of a header. A comma within quotes separates nothing. `None`: there is no such
/// header. A line that is no text ends the list from its side: what is before it could be anything.
fn elements(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<String>> {
    let lines: Vec<_> = headers.get_all(name).iter().collect();
    if lines.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    for line in lines {
        match line.to_str() {
            Ok(line) => all.extend(split_unquoted(line, ',').into_iter().map(|part| part.trim().to_owned())),
            Err(_) => all.clear(),
        }
    }
    all.retain(|element| !element.is_empty());
    Some(all)
}

fn split_unquoted(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (place, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == separator && !quoted => {
                parts.push(&text[begin..place]);
                begin = place + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// The value of a parameter of an element of `Forwarded`, without quotes.
fn parameter(element: &str, name: &str) -> Option<String> {
    split_unquoted(element, ';').into_iter().find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        key.trim().eq_ignore_ascii_case(name).then(|| value.replace('\\', ""))
    })
}

/// An address with or without a port; IPv6 with or without brackets. `unknown` and obfuscated names are none.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = || text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    plain().or_else(with_port).or_else(bracketed).map(|address| address.to_canonical())
}

fn authority(text: &str) -> Option<Authority> {
    Authority::try_from(text).ok().filter(|authority| !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(proxy: &str, headers: &[(&'static str, &str)]) -> RequestOrigin {
        let proxies = TrustedProxies::new(["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap()).into());
        let address = proxy.parse().unwrap();
        let peer = Peer { address, tls: false, is_proxy: proxies.trusts(address) };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        proxies.origin(peer, &map)
    }

    fn client(proxy: &str, headers: &[(&'static str, &str)]) -> String {
        origin(proxy, headers).client.to_string()
    }

    const FOR: &str = "x-forwarded-for";

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let headers = [(FOR, "192.0.2.1"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "a.example")];
        let believed = origin("10.0.0.1", &headers);
        assert_eq!(believed.client.to_string(), "192.0.2.1");
        assert_eq!((believed.https, believed.host.unwrap().as_str()), (true, "a.example"));
        let stranger = origin("192.0.2.9", &headers);
        assert_eq!(
            (stranger.client.to_string().as_str(), stranger.https, stranger.host),
            ("192.0.2.9", false, None)
        );
        assert_eq!(client("::ffff:10.0.0.1", &headers), "192.0.2.1", "IPv4 within IPv6");
        assert_eq!(client("fd00::1", &headers), "192.0.2.1");
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy_whatever_stands_before_it() {
        for (hops, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("203.0.113.7, 192.0.2.1", "192.0.2.1"),
            ("203.0.113.7, 192.0.2.1, 10.0.0.2", "192.0.2.1"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("nonsense, 192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, nonsense", "10.0.0.1"),
            ("192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[(FOR, hops)]), expected, "{hops}");
        }
        let lines = [(FOR, "203.0.113.7"), (FOR, "192.0.2.1")];
        assert_eq!(client("10.0.0.1", &lines), "192.0.2.1", "lines are one list");
    }

    #[test]
    fn the_standard_header_says_the_same() {
        let standard = "for=203.0.113.7;host=evil.example, For=\"[2001:db8::1]:4711\";proto=https;host=\"a.example:8443\", for=10.0.0.2";
        let found = origin("10.0.0.1", &[("forwarded", standard)]);
        assert_eq!((found.client.to_string().as_str(), found.https), ("2001:db8::1", true));
        assert_eq!(found.host.unwrap().as_str(), "a.example:8443");
        assert_eq!(client("10.0.0.1", &[("forwarded", "for=192.0.2.1, for=_hidden")]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[("forwarded", "for=\"192.0.2.1, for=10.0.0.9\"")]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[("forwarded", "proto=https")]), "10.0.0.1");
    }

    #[test]
    fn headers_that_disagree_are_not_believed() {
        let spoofed = [("forwarded", "for=203.0.113.7"), (FOR, "192.0.2.1")];
        assert_eq!(client("10.0.0.1", &spoofed), "10.0.0.1");
        let agreed = [("forwarded", "for=192.0.2.1;proto=https"), (FOR, "192.0.2.1")];
        assert!(origin("10.0.0.1", &agreed).https);
        let alone = [("x-forwarded-host", "evil.example"), ("x-forwarded-proto", "https")];
        let direct = origin("10.0.0.1", &alone);
        assert_eq!((direct.https, direct.host), (false, None), "without an address nothing is believed");
    }

    #[test]
    fn a_host_that_is_none_is_left_out() {
        for host in ["user@evil.example", "a b", "http://a.example/"] {
            let found = origin("10.0.0.1", &[(FOR, "192.0.2.1"), ("x-forwarded-host", host)]);
            assert_eq!(found.host, None, "{host}");
        }
    }
}
