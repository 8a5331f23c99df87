//! The client: the server's URL, the token and the options of requests.

use crate::Error;
use crate::retry::Retries;
use crate::transport::Transport;
use http::HeaderValue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A client of an Aldaba server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<ClientState>,
    pub(crate) retries: Retries,
    /// The idempotency key of POST requests; `None`: each call gets its own.
    pub(crate) key: Option<Arc<str>>,
}

pub(crate) struct ClientState {
    /// The URL without a slash at its end.
    pub(crate) base: String,
    pub(crate) authorization: HeaderValue,
    /// Kept to remove it from texts that a server returns.
    pub(crate) token: String,
    pub(crate) user_agent: HeaderValue,
    pub(crate) transport: Transport,
}

/// Builds a [`Client`].
#[derive(Clone)]
pub struct ClientBuilder {
    url: String,
    token: String,
    retries: Retries,
    user_agent: String,
    roots: Vec<Vec<u8>>,
    known: Vec<Vec<u8>>,
}

impl Client {
    /// Creates a client for the server at `url`, such as `http://localhost:8071`, with a token or an API key.
    ///
    /// # Errors
    /// If the URL is not an http or https URL, or the token has characters that a header cannot hold.
    pub fn new(url: &str, token: &str) -> Result<Self, Error> {
        Self::builder(url, token).build()
    }

    /// Begins to build a client with further options.
    #[must_use]
    pub fn builder(url: &str, token: &str) -> ClientBuilder {
        ClientBuilder {
            url: url.to_owned(),
            token: token.to_owned(),
            retries: Retries::default(),
            user_agent: concat!("aldaba-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            roots: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Returns the same client with other limits.
    #[must_use]
    pub fn with_retries(&self, retries: Retries) -> Self {
        Self { retries, ..self.clone() }
    }

    /// Returns the same client, whose POST requests carry this idempotency key. POST requests to one path with the
    /// same key have one effect and the same answer for a day, even from another process with the same token.
    /// Use it for one call, such as `client.idempotent("order-17").app("acme").messages().send(…)`: two different
    /// messages with one key are one message. A blank key is refused when it is used ([`Error::Request`]).
    #[must_use]
    pub fn idempotent(&self, key: &str) -> Self {
        Self { key: Some(key.into()), ..self.clone() }
    }
}

impl ClientBuilder {
    /// How often requests are made, and how long they may take.
    #[must_use]
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// How long one request may take; see [`Retries::timeout`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { retries: self.retries.timeout(timeout), ..self }
    }

    /// The value of the header `user-agent`.
    #[must_use]
    pub fn user_agent(self, name: &str) -> Self {
        Self { user_agent: name.to_owned(), ..self }
    }

    /// Trusts these root certificates (PEM) in addition to the public ones, for a server with a private certificate.
    #[must_use]
    pub fn root_certificates(mut self, pem: &[u8]) -> Self {
        self.roots.push(pem.to_vec());
        self
    }

    /// Trusts the server that has this certificate (PEM) and its key, whatever name and issuer the certificate has: for a
    /// server on the same machine, whose certificate names another host. Issuers' certificates after it are left out.
    #[must_use]
    pub fn server_certificate(mut self, pem: &[u8]) -> Self {
        self.known.push(pem.to_vec());
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// If the URL is not an http or https URL, a certificate cannot be read, or the token has characters that
    /// a header cannot hold.
    pub fn build(self) -> Result<Client, Error> {
        let wrong = |detail: &str| Error::Request { detail: detail.to_owned() };
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", self.token))
            .ok()
            .filter(|_| !self.token.is_empty() && !self.token.contains(' '))
            .ok_or_else(|| {
                wrong("the token is empty or has characters that no token has; create one with `aldaba token create`")
            })?;
        authorization.set_sensitive(true);
        let user_agent =
            HeaderValue::try_from(self.user_agent).map_err(|_| wrong("the user agent cannot be a header"))?;
        let transport = Transport::new(&self.roots, &self.known)?;
        let shared =
            ClientState { base: base(&self.url)?, authorization, token: self.token, user_agent, transport };
        Ok(Client { shared: Arc::new(shared), retries: self.retries, key: None })
    }
}

/// Checks the URL, to which paths are appended.
fn base(url: &str) -> Result<String, Error> {
    let wrong = |why: &str| Error::Request {
        detail: format!("the URL of Aldaba {why}; expected one such as http://localhost:8071"),
    };
    let parsed = Url::parse(url).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(wrong("is not one of http or https"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(wrong("has a user or a password; give the token instead"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(wrong("has a query or a fragment"));
    }
    Ok(parsed.as_str().trim_end_matches('/').to_owned())
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.shared.base).finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("retries", &self.retries).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_shown() {
        let builder = Client::builder("http://localhost:8071", "a-secret-token");
        assert!(!format!("{builder:?}").contains("secret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("secret"));
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_reason() {
        for (url, why) in [
            ("localhost:8071", "not one of http"),
            ("ftp://localhost", "not one of http"),
            ("", "cannot be read"),
            ("http://user:word@localhost", "a user or a password"),
            ("http://localhost?a=b", "a query"),
        ] {
            let error = Client::new(url, "token").unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
            assert!(!error.contains("word@"), "{error}");
        }
        assert!(Client::new("https://example.com/behind/a/path/", "token").is_ok());
    }

    #[test]
    fn an_invalid_token_is_refused_and_not_shown() {
        for token in ["", "two words", "line\nbreak", "\u{0}"] {
            let error = Client::new("http://localhost", token).unwrap_err().to_string();
            assert!(error.contains("aldaba token create"), "{error}");
            assert!(!error.contains("two words"));
        }
    }

    #[test]
    fn an_invalid_certificate_is_refused() {
        let built = Client::builder("https://localhost", "token").root_certificates(b"nothing").build();
        assert!(built.unwrap_err().to_string().contains("expected PEM"));
    }
}
