//! Custom headers of an endpoint, sent with every request.

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

const MAX_NAME_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 4096;

/// Headers that belong to the connection, the body or the sender.
const FORBIDDEN: [&str; 28] = [
    "accept-encoding",
    "age",
    "cache-control",
    "clear-site-data",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-type",
    "expect",
    "expires",
    "host",
    "keep-alive",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "warning",
    "x-hub-signature",
    "x-hub-signature-256",
];

/// Prefixes of headers that belong to signatures or to intermediaries.
const FORBIDDEN_PREFIXES: [&str; 12] = [
    "webhook-",
    "svix-",
    "x-svix-",
    "x-webhook-",
    "x-aldaba-",
    "x-amz-",
    "x-amzn-",
    "x-google",
    "x-goog-",
    "x-gfe",
    "x-azure-",
    "x-fd-",
];

/// Headers whose values are never shown again.
const SENSITIVE: [&str; 15] = [
    "api-key",
    "apikey",
    "authorization",
    "cookie",
    "cookie2",
    "proxy-authenticate",
    "proxy-authorization",
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "x-access-token",
    "x-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-gitlab-token",
];

/// Names and values as given, sorted by name. No two names differ only in case.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EndpointHeaders(Vec<(String, String)>);

/// Why a header is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderProblem {
    /// Empty if it concerns all headers.
    pub name: String,
    pub why: String,
}

impl EndpointHeaders {
    /// Headers per endpoint.
    pub const MAX_HEADERS: usize = 50;

    pub fn new(headers: impl IntoIterator<Item = (String, String)>) -> Result<Self, Vec<HeaderProblem>> {
        let (mut kept, mut problems) = (Vec::<(String, String)>::new(), Vec::new());
        for (name, value) in headers {
            match check(&name, &value) {
                Err(why) => problems.push(HeaderProblem { name, why }),
                Ok(()) if kept.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) => {
                    let why = "is given twice: header names are case-insensitive".into();
                    problems.push(HeaderProblem { name, why });
                }
                Ok(()) => kept.push((name, value)),
            }
        }
        if kept.len() > Self::MAX_HEADERS {
            let why = format!(
                "an endpoint may have at most {} headers; there are {}",
                Self::MAX_HEADERS,
                kept.len()
            );
            problems.push(HeaderProblem { name: String::new(), why });
        }
        kept.sort_unstable();
        if problems.is_empty() { Ok(Self(kept)) } else { Err(problems) }
    }

    /// Applies a patch; `None` removes a header.
    pub fn patched(
        &self,
        changes: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Self, Vec<HeaderProblem>> {
        let mut all = self.0.clone();
        for (name, value) in changes {
            all.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
            all.extend(value.map(|value| (name, value)));
        }
        Self::new(all)
    }

    /// The values by lower-case name.
    pub(crate) fn by_name(&self) -> BTreeMap<String, &str> {
        self.0.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers whose values may be shown.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(name, _)| !is_sensitive(name))
    }

    /// The names of the sensitive headers.
    pub fn sensitive(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name).filter(|name| is_sensitive(name))
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The headers as they are sent. All are marked as sensitive, so that a redirect to another origin drops
    /// them.
    pub(crate) fn on_the_wire(&self) -> Vec<(HeaderName, HeaderValue)> {
        let parsed = self.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        parsed.collect()
    }
}

/// Values may be secrets.
impl fmt::Debug for EndpointHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Whether a header's value must not be shown.
pub(crate) fn is_sensitive(name: &str) -> bool {
    SENSITIVE.iter().any(|sensitive| sensitive.eq_ignore_ascii_case(name))
}

fn check(name: &str, value: &str) -> Result<(), String> {
    let lower = name.to_ascii_lowercase();
    if name.len() > MAX_NAME_BYTES || HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(format!(
            "a header name must be 1 to {MAX_NAME_BYTES} letters, digits or characters of !#$%&'*+-.^_`|~"
        ));
    }
    if FORBIDDEN.contains(&lower.as_str()) {
        return Err("belongs to the connection, the body or the sender; choose another".into());
    }
    if let Some(prefix) = FORBIDDEN_PREFIXES.iter().find(|prefix| lower.starts_with(**prefix)) {
        return Err(format!("names with the prefix `{prefix}` are reserved; choose another"));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!("must be at most {MAX_VALUE_BYTES} bytes long; it is {}", value.len()));
    }
    if HeaderValue::from_str(value).is_err() {
        return Err("must not contain line breaks, NUL or other control characters".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&str, &str)]) -> Result<EndpointHeaders, Vec<HeaderProblem>> {
        EndpointHeaders::new(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn headers_that_break_the_request_or_its_signature_are_refused() {
        let long = "x".repeat(4097);
        for (name, value) in [
            ("a b", "x"),
            ("", "x"),
            ("a:b", "x"),
            ("Host", "x"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            ("WEBHOOK-signature", "x"),
            ("svix-id", "x"),
            ("X-Webhook-Signature", "x"),
            ("x-a", "a\r\nb: c"),
            ("x-a", "a\nb"),
            ("x-a", "a\0b"),
            ("x-a", long.as_str()),
        ] {
            let problems = headers(&[(name, value)]).unwrap_err();
            assert_eq!(problems[0].name, name, "{value}");
        }
        assert!(headers(&[("x-a", "1"), ("X-A", "2")]).is_err(), "the same header twice");
        assert!(headers(&[("x-a", "ñandú"), ("Authorization", "Bearer 1"), ("x-empty", "")]).is_ok());
        let many: Vec<_> = (0..51).map(|n| (format!("x-{n}"), String::new())).collect();
        assert!(EndpointHeaders::new(many[..50].to_vec()).is_ok());
        assert!(EndpointHeaders::new(many).is_err());
    }

    #[test]
    fn a_patch_replaces_adds_and_removes_regardless_of_case() {
        let first = headers(&[("X-One", "1"), ("X-Two", "2"), ("x-three", "3")]).unwrap();
        let change = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let patched = first
            .patched([change("x-one", Some("uno")), change("x-TWO", None), change("x-no", None)])
            .unwrap();
        assert_eq!(patched, headers(&[("x-one", "uno"), ("x-three", "3")]).unwrap());
    }

    #[test]
    fn sensitive_values_are_named_and_never_shown() {
        let all = headers(&[("X-Api-Key", "secret"), ("x-team", "billing")]).unwrap();
        assert_eq!(all.shown().collect::<Vec<_>>(), [("x-team", "billing")]);
        assert_eq!(all.sensitive().collect::<Vec<_>>(), ["X-Api-Key"]);
        assert!(!format!("{all:?}").contains("secret"));
        for name in ["Cookie", "set-cookie", "API-Key", "x-access-token", "X-Gitlab-Token"] {
            let all = headers(&[(name, "secret")]).unwrap();
            assert_eq!((all.shown().count(), all.sensitive().collect::<Vec<_>>()), (0, vec![name]));
        }
        let sent = all.on_the_wire();
        assert!(sent.iter().any(|(name, value)| name == "x-api-key" && value == "secret"));
    }
}
