//! Parses the values of settings.

use crate::api::nearest;
use aldaba_api::names;
use aldaba_engine::key_from_hex;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ipnet::IpNet;
use lettre::message::Mailbox;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use url::Url;

pub(super) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(super) fn days(number: u64) -> Duration {
    Duration::from_secs(number.saturating_mul(24 * 3600))
}

/// Reads the URL of an API.
pub(crate) fn api_url(text: &str) -> Result<Url, String> {
    let expected = || "expected http://host:port or https://host".to_owned();
    let url = Url::parse(text).map_err(|_| expected())?;
    let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if matches!(url.scheme(), "http" | "https") && url.has_host() && plain {
        Ok(url)
    } else {
        Err(expected())
    }
}

pub(super) fn encryption_key(text: &str) -> Option<[u8; 32]> {
    key_from_hex(text).or_else(|| BASE64_STANDARD.decode(text).ok()?.try_into().ok())
}

/// The sender of mails: an address, or a name with one.
pub(super) fn sender(text: &str) -> Option<Mailbox> {
    let mailbox: Mailbox = text.parse().ok()?;
    names::email(mailbox.email.as_ref()).ok().map(|()| mailbox)
}

pub(super) fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

/// An address, or a name that the machine resolves to one. The first IPv4 address is preferred: a client that
/// connects to `localhost` reaches it whichever address it tries first, and so does a client that connects to
/// 127.0.0.1.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let found: Vec<SocketAddr> = name_and_port(text)?.to_socket_addrs().ok()?.collect();
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

fn name_and_port(text: &str) -> Option<(&str, u16)> {
    let (name, port) = text.rsplit_once(':')?;
    Some((name, port.parse().ok()?)).filter(|(name, _)| !name.is_empty())
}

/// Says that a name does not resolve, if a text is written as a name and a port.
pub(crate) fn unresolved(text: &str) -> Option<String> {
    let (name, _) = name_and_port(text)?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_name.then(|| format!("this machine resolves the name {name} to no address"))
}

pub(super) fn is_service_name(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=100).contains(&text.len()) && text.bytes().all(is_sign)
}

/// The crates of the server, as the log names them.
const CRATES: [&str; 7] = [
    "aldaba",
    "aldaba_api",
    "aldaba_client",
    "aldaba_delivery",
    "aldaba_engine",
    "aldaba_signature",
    "aldaba_store",
];
/// Levels and crates, which most filters are made of.
pub(super) const LOG_WORDS: &[&str] = &[
    "error",
    "warn",
    "info",
    "debug",
    "trace",
    "off",
    "aldaba",
    "aldaba_api",
    "aldaba_client",
    "aldaba_delivery",
    "aldaba_engine",
    "aldaba_signature",
    "aldaba_store",
];

/// Whether a filter is meant as written. The library takes any word for the name of a module, so that `inof` would
/// log nothing; here a module has a level (`hyper=debug`), and one of ours is known.
pub(super) fn is_log_filter(text: &str) -> bool {
    let is_part = |part: &str| match part.split_once('=') {
        None => part.parse::<LevelFilter>().is_ok() || part.contains('['),
        Some((module, _)) => {
            let name = module.split(['[', ':']).next().unwrap_or_default();
            CRATES.contains(&name) || !(name.starts_with("aldaba") || nearest(name, &CRATES).is_some())
        }
    };
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
    parts.peek().is_some() && parts.all(is_part) && EnvFilter::try_new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_where_an_api_can_be() {
        for good in ["http://127.0.0.1:8071", "https://hooks.example.com/aldaba/", "http://[::1]:1"] {
            assert!(api_url(good).is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:8071", "ftp://a", "http://a/?b", "http://user:pass@a", "http://"] {
            assert!(api_url(bad).is_err(), "{bad}");
        }
    }
}
