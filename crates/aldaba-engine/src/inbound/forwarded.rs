//! Headers of an inbound event that are forwarded unchanged.

use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// Headers that belong to one connection or to the sender.
const FORBIDDEN: [&str; 17] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
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
];

/// Prefixes of our own signature headers.
const FORBIDDEN_PREFIXES: [&str; 5] = ["webhook-", "svix-", "x-svix-", "x-webhook-", "x-aldaba-"];

/// Headers that describe the body. They are always forwarded.
pub(crate) const BODY_HEADERS: [HeaderName; 3] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE];

/// In order of arrival.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ForwardedHeaders(Vec<(HeaderName, HeaderValue)>);

impl ForwardedHeaders {
    /// How many names a source may forward.
    pub const MAX_HEADERS: usize = 50;
    /// Bytes of all names and values together.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Checks a name that a source wants to forward.
    pub fn name(text: &str) -> Result<HeaderName, String> {
        let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
            "is not a valid header name: use letters, digits and the characters !#$%&'*+-.^_`|~".to_owned()
        })?;
        if FORBIDDEN.contains(&name.as_str()) {
            return Err("belongs to the connection or the sender and cannot be forwarded".into());
        }
        match FORBIDDEN_PREFIXES.iter().find(|prefix| name.as_str().starts_with(**prefix)) {
            Some(prefix) => {
                Err(format!("names with the prefix `{prefix}` are reserved for signatures; remove it"))
            }
            None => Ok(name),
        }
    }

    /// Picks the headers with these names. `None`: they are too large.
    pub(crate) fn pick(names: &[HeaderName], headers: &HeaderMap) -> Option<Self> {
        let of_name = |name: &HeaderName| {
            let values = headers.get_all(name).iter().cloned().collect::<Vec<_>>();
            let name = name.clone();
            values.into_iter().map(move |value| (name.clone(), value))
        };
        let mut picked: Vec<_> = names.iter().flat_map(of_name).collect();
        // The sender did not describe the body. Our own messages are JSON; this one need not be.
        if names.contains(&CONTENT_TYPE) && !headers.contains_key(CONTENT_TYPE) {
            picked.push((CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")));
        }
        let bytes: usize = picked.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        (bytes <= Self::MAX_BYTES).then_some(Self(picked))
    }

    /// Encodes every byte of a value as the character with its number, so that nothing is lost.
    pub(crate) fn write(&self) -> Vec<u8> {
        let text =
            |value: &HeaderValue| value.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>();
        let all: Vec<_> = self.0.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        serde_json::to_vec(&all).expect("strings serialise")
    }

    pub(crate) fn read(written: &[u8]) -> Option<Self> {
        let all: Vec<(String, String)> = serde_json::from_slice(written).ok()?;
        let one = |(name, text): (String, String)| {
            let bytes: Option<Vec<u8>> = text.chars().map(|sign| u8::try_from(sign).ok()).collect();
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let mut value = HeaderValue::from_bytes(&bytes?).ok()?;
            // Headers that describe the body follow it across redirects. All others are for the endpoint's
            // own origin.
            value.set_sensitive(!BODY_HEADERS.contains(&name));
            Some((name, value))
        };
        all.into_iter().map(one).collect::<Option<Vec<_>>>().map(Self)
    }

    pub(crate) fn into_inner(self) -> Vec<(HeaderName, HeaderValue)> {
        self.0
    }
}

/// Values may be secrets.
impl fmt::Debug for ForwardedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_headers_are_restored_byte_by_byte() {
        let mut headers = HeaderMap::new();
        headers.append("x-many", HeaderValue::from_static("one"));
        headers.append("x-many", HeaderValue::from_bytes(b"\xe1\xff two").unwrap());
        headers.append("x-other", HeaderValue::from_static("no"));
        headers.append(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
        let names = [HeaderName::from_static("x-many"), CONTENT_TYPE, HeaderName::from_static("x-absent")];
        let picked = ForwardedHeaders::pick(&names, &headers).unwrap();
        let read = ForwardedHeaders::read(&picked.write()).unwrap();
        assert_eq!(read, picked);
        let values: Vec<_> = read.0.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(
            values,
            [("x-many", &b"one"[..]), ("x-many", b"\xe1\xff two"), ("content-type", b"text/xml")]
        );
        assert!(!format!("{read:?}").contains("two"));
        headers.insert("x-many", HeaderValue::from_str(&"x".repeat(16 << 10)).unwrap());
        assert!(ForwardedHeaders::pick(&names, &headers).is_none(), "too large");
    }

    #[test]
    fn headers_of_the_connection_or_our_own_cannot_be_forwarded() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "webhook-id",
            "SVIX-signature",
            "x-webhook-a",
            "a b",
            "",
        ] {
            assert!(ForwardedHeaders::name(name).is_err(), "{name}");
        }
        for name in ["content-type", "X-Hub-Signature-256", "stripe-signature", "authorization"] {
            assert_eq!(ForwardedHeaders::name(name).unwrap().as_str(), name.to_ascii_lowercase());
        }
    }
}
