use super::guard::Guard;
use aldaba_delivery::Origin;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;
use url::{Host, Url};

/// A checked endpoint URL, normalised: no user, no password, no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    pub url: Url,
    pub credentials: Option<BasicCredentials>,
}

/// User and password from a URL. They are sent as basic authentication and stored as a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct BasicCredentials {
    pub user: String,
    pub password: String,
}

/// Why a URL is refused, worded for its author.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    #[error("the URL holds a control character, or blanks around it: remove them or percent-encode them")]
    ControlCharacter,
    #[error("the URL cannot be read: {0}")]
    Unreadable(String),
    #[error("the URL's host has an empty part: look for two dots in a row, or one at its beginning")]
    HostName,
    #[error("port 0 cannot be reached: give the port that the receiver listens on")]
    Port,
    #[error("user and password in the URL must be UTF-8 text (percent-encoded), the user without a colon")]
    Credentials,
    #[error(
        "the URL leads to a private, local or reserved address: give a public one, or ask the operator of \
         this server to allow the network (ALDABA_ALLOW_NETWORKS)"
    )]
    Forbidden,
}

/// The destination of a request, as far as the URL tells.
#[derive(Debug)]
pub(super) struct WireTarget<'a> {
    pub(super) url: &'a Url,
    pub(super) origin: Origin,
    pub(super) secure: bool,
    pub(super) host: TargetHost,
    pub(super) port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TargetHost {
    /// Checked addresses that need no lookup.
    Addresses(Vec<IpAddr>),
    /// A name whose addresses are checked once resolved.
    Name(Box<str>),
}

impl Guard {
    /// Checks a URL for an endpoint. A name that resolves to a forbidden address is found only at each
    /// attempt.
    pub fn parse_url(&self, text: &str) -> Result<TargetUrl, UrlError> {
        // The parser would drop these silently, and the check would miss them.
        if text.chars().any(char::is_control) || text.trim() != text {
            return Err(UrlError::ControlCharacter);
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(UrlError::Scheme);
        }
        let mut url = Url::parse(text).map_err(|error| UrlError::Unreadable(error.to_string()))?;
        let credentials = BasicCredentials::split_off(&mut url)?;
        url.set_fragment(None);
        self.check_url(&url)?;
        request_target(&url)?;
        Ok(TargetUrl { url, credentials })
    }

    /// Checks the parsed host: the parser has normalised every spelling of an address.
    pub(super) fn check_url<'a>(&self, url: &'a Url) -> Result<WireTarget<'a>, UrlError> {
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlError::Port)?;
        let host = match url.host() {
            Some(Host::Ipv4(address)) => self.check_address(address.into())?,
            Some(Host::Ipv6(address)) => self.check_address(address.into())?,
            Some(Host::Domain(name)) => self.check_name(name)?,
            None => return Err(UrlError::Unreadable("it has no host".to_owned())),
        };
        let origin = Origin::new(url.scheme(), url.host_str().unwrap_or_default(), port);
        Ok(WireTarget { url, origin, secure, host, port })
    }

    fn check_address(&self, address: IpAddr) -> Result<TargetHost, UrlError> {
        if self.allows(address) {
            Ok(TargetHost::Addresses(vec![address.to_canonical()]))
        } else {
            Err(UrlError::Forbidden)
        }
    }

    fn check_name(&self, name: &str) -> Result<TargetHost, UrlError> {
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() {
            return Err(UrlError::Unreadable("it has no host".to_owned()));
        }
        // No name server knows such a name, and other parsers may take `127.0.0.1..` for an address.
        if name.split('.').any(str::is_empty) {
            return Err(UrlError::HostName);
        }
        if let Ok(address) = name.parse() {
            return self.check_address(address);
        }
        if name == "localhost" || name.ends_with(".localhost") {
            return self.localhost();
        }
        Ok(TargetHost::Name(name.into()))
    }

    /// These names mean this machine and are never looked up. An operator may allow one family of loopback
    /// addresses only.
    fn localhost(&self) -> Result<TargetHost, UrlError> {
        let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        addresses.retain(|address| self.allows(*address));
        if addresses.is_empty() { Err(UrlError::Forbidden) } else { Ok(TargetHost::Addresses(addresses)) }
    }
}

/// Path and query for the request line.
pub(super) fn request_target(url: &Url) -> Result<Uri, UrlError> {
    let text = &url[url::Position::BeforePath..url::Position::AfterQuery];
    text.parse().map_err(|error: http::uri::InvalidUri| UrlError::Unreadable(error.to_string()))
}

impl BasicCredentials {
    pub(super) fn split_off(url: &mut Url) -> Result<Option<Self>, UrlError> {
        if url.username().is_empty() && url.password().is_none() {
            return Ok(None);
        }
        let user = percent_decode_str(url.username()).decode_utf8().map_err(|_| UrlError::Credentials)?;
        let password = percent_decode_str(url.password().unwrap_or_default())
            .decode_utf8()
            .map_err(|_| UrlError::Credentials)?;
        // A colon would end the user name in basic authentication.
        if user.contains(':') || user.chars().chain(password.chars()).any(char::is_control) {
            return Err(UrlError::Credentials);
        }
        let credentials = Self { user: user.into_owned(), password: password.into_owned() };
        let cleared = url.set_username("").and_then(|()| url.set_password(None));
        cleared.map_err(|()| UrlError::Credentials)?;
        Ok(Some(credentials))
    }

    /// The value of the `authorization` header, marked as sensitive.
    pub fn basic_auth(&self) -> HeaderValue {
        let encoded = STANDARD.encode(format!("{}:{}", self.user, self.password));
        let mut value = HeaderValue::try_from(format!("Basic {encoded}")).expect("base64 is a header value");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for BasicCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}
