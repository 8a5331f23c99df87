//! What proxies say of their clients, believed only of those that the operator trusts.
//!
//! A proxy appends to what it has received, so the last entry is the nearest. From there, entries of trusted proxies are
//! passed over; the first other address is the client. What stands before it, anybody can have written.

use crate::config::ProxyHeaders;
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

/// The proxies that are trusted now, and by which headers. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Arc<LiveProxies>);

#[derive(Debug, Default)]
struct LiveProxies {
    /// Whether there are any. Each request asks; without proxies it takes no lock.
    any: AtomicBool,
    settings: RwLock<ProxySettings>,
}

/// The settings `trusted_proxies` and `proxy_headers`.
#[derive(Debug, Default)]
struct ProxySettings {
    networks: Vec<IpNet>,
    headers: ProxyHeaders,
}

/// The other side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) tls: bool,
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
    pub(crate) fn new(networks: Vec<IpNet>, headers: ProxyHeaders) -> Self {
        let proxies = Self::default();
        proxies.set(networks, headers);
        proxies
    }

    pub(crate) fn set(&self, networks: Vec<IpNet>, headers: ProxyHeaders) {
        let mut settings = self.0.settings.write();
        self.0.any.store(!networks.is_empty(), Ordering::Release);
        *settings = ProxySettings { networks, headers };
    }

    pub(super) fn any(&self) -> bool {
        self.0.any.load(Ordering::Acquire)
    }

    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        self.any() && self.0.settings.read().trusts(address.to_canonical())
    }

    /// The origin of a request that came over this connection, by the settings of now: a connection may be older.
    pub(super) fn origin(&self, peer: Peer, headers: &HeaderMap) -> RequestOrigin {
        let direct = RequestOrigin { client: peer.address.to_canonical(), https: peer.tls, host: None };
        if !self.any() {
            return direct;
        }
        let settings = self.0.settings.read();
        if !settings.trusts(direct.client) {
            return direct;
        }
        match settings.headers {
            ProxyHeaders::XForwarded => settings.by_x_forwarded(headers, direct),
            ProxyHeaders::Forwarded => settings.by_forwarded(headers, direct),
        }
    }
}

impl ProxySettings {
    /// Takes an address that [`IpAddr::to_canonical`] has made.
    fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// By `Forwarded` (RFC 7239).
    fn by_forwarded(&self, headers: &HeaderMap, mut origin: RequestOrigin) -> RequestOrigin {
        for element in elements(headers, &FORWARDED).iter().rev() {
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
        origin
    }

    /// By `X-Forwarded-For`, and by its companions where it is there.
    fn by_x_forwarded(&self, headers: &HeaderMap, mut origin: RequestOrigin) -> RequestOrigin {
        let hops = elements(headers, &FORWARDED_FOR);
        if hops.is_empty() {
            return origin;
        }
        for client in hops.iter().rev().map_while(|hop| address(hop)) {
            origin.client = client;
            if !self.trusts(client) {
                break;
            }
        }
        // Of several values the last is the nearest proxy's.
        let last = |name: &HeaderName| elements(headers, name).pop();
        if let Some(scheme) = last(&FORWARDED_PROTO) {
            origin.https = scheme.eq_ignore_ascii_case("https");
        }
        origin.host = last(&FORWARDED_HOST).and_then(|host| authority(&host));
        origin
    }
}

/// The elements of a list, over all lines of a header. A comma within quotes separates nothing. Bytes that are no text
/// change their own element only: a client could hide behind them what its proxy appends.
fn elements(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let mut all = Vec::new();
    for line in headers.get_all(name) {
        let line = String::from_utf8_lossy(line.as_bytes());
        all.extend(split_unquoted(&line, ',').into_iter().map(|part| part.trim().to_owned()));
    }
    all.retain(|element| !element.is_empty());
    all
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
    if quoted {
        // A quote without its end is a client's: what its proxy appends is no part of it.
        return text.split(separator).collect();
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
    use http::HeaderValue;

    type Headers<'a> = &'a [(&'static str, &'a str)];

    fn networks() -> Vec<IpNet> {
        ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap()).into()
    }

    fn origin_by(family: ProxyHeaders, proxy: &str, headers: Headers<'_>) -> RequestOrigin {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let peer = Peer { address: proxy.parse().unwrap(), tls: false };
        TrustedProxies::new(networks(), family).origin(peer, &map)
    }

    fn origin(proxy: &str, headers: Headers<'_>) -> RequestOrigin {
        origin_by(ProxyHeaders::XForwarded, proxy, headers)
    }

    fn client(proxy: &str, headers: Headers<'_>) -> String {
        origin(proxy, headers).client.to_string()
    }

    fn client_by_standard(proxy: &str, value: &str) -> String {
        origin_by(ProxyHeaders::Forwarded, proxy, &[(STANDARD, value)]).client.to_string()
    }

    const FOR: &str = "x-forwarded-for";
    const STANDARD: &str = "forwarded";

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
        let found = origin_by(ProxyHeaders::Forwarded, "10.0.0.1", &[(STANDARD, standard)]);
        assert_eq!((found.client.to_string().as_str(), found.https), ("2001:db8::1", true));
        assert_eq!(found.host.unwrap().as_str(), "a.example:8443");
        assert_eq!(client_by_standard("10.0.0.1", "for=192.0.2.1, for=_hidden"), "10.0.0.1");
        assert_eq!(client_by_standard("10.0.0.1", "for=\"192.0.2.1, for=10.0.0.9\""), "10.0.0.1");
        assert_eq!(client_by_standard("10.0.0.1", "proto=https"), "10.0.0.1");
    }

    #[test]
    fn only_the_headers_of_the_setting_are_read_whatever_a_client_adds() {
        let both = [
            (STANDARD, "for=203.0.113.7;proto=https;host=a.example"),
            (FOR, "192.0.2.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "b.example"),
        ];
        for (family, client, https, host) in [
            (ProxyHeaders::XForwarded, "192.0.2.1", false, "b.example"),
            (ProxyHeaders::Forwarded, "203.0.113.7", true, "a.example"),
        ] {
            let found = origin_by(family, "10.0.0.1", &both);
            assert_eq!((found.client.to_string().as_str(), found.https), (client, https), "{family:?}");
            assert_eq!(found.host.unwrap().as_str(), host, "{family:?}");
        }
        let others = origin("10.0.0.1", &both[..1]);
        assert_eq!(
            (others.client.to_string().as_str(), others.https, others.host),
            ("10.0.0.1", false, None)
        );
        let alone = [("x-forwarded-host", "evil.example"), ("x-forwarded-proto", "https")];
        let direct = origin("10.0.0.1", &alone);
        assert_eq!((direct.https, direct.host), (false, None), "without an address nothing is believed");
    }

    #[test]
    fn a_client_cannot_hide_what_its_proxy_appends_behind_a_quote_or_bytes_that_are_no_text() {
        for begin in ["\"", "\"\\\"", "\"a\", \"b", "\u{e9}", "192.0.2.66 \u{e9}"] {
            let hops = format!("{begin}, 192.0.2.1");
            assert_eq!(client("10.0.0.1", &[(FOR, hops.as_str())]), "192.0.2.1", "{begin}");
            let standard = format!("for={begin}, for=\"[2001:db8::1]:4711\"");
            assert_eq!(client_by_standard("10.0.0.1", &standard), "2001:db8::1", "{begin}");
        }
    }

    #[test]
    fn a_network_that_is_removed_is_no_longer_believed_on_connections_that_are_open() {
        let proxies = TrustedProxies::new(networks(), ProxyHeaders::XForwarded);
        let peer = Peer { address: "10.0.0.1".parse().unwrap(), tls: false };
        let mut headers = HeaderMap::new();
        headers.append(FOR, HeaderValue::from_static("192.0.2.1"));
        let client = || proxies.origin(peer, &headers).client.to_string();
        assert_eq!(client(), "192.0.2.1");
        proxies.set(vec!["172.16.0.0/12".parse().unwrap()], ProxyHeaders::XForwarded);
        assert_eq!(client(), "10.0.0.1");
        proxies.set(Vec::new(), ProxyHeaders::XForwarded);
        assert_eq!((client().as_str(), proxies.any()), ("10.0.0.1", false));
        proxies.set(networks(), ProxyHeaders::XForwarded);
        assert_eq!(client(), "192.0.2.1");
    }

    #[test]
    fn a_host_that_is_none_is_left_out() {
        for host in ["user@evil.example", "a b", "http://a.example/"] {
            let found = origin("10.0.0.1", &[(FOR, "192.0.2.1"), ("x-forwarded-host", host)]);
            assert_eq!(found.host, None, "{host}");
        }
    }
}
