//! Sessions: the caller's own token in a sealed cookie. There is no table of sessions: each request checks the token as the API does,
//! so that revoking it works at once. The API never reads the cookie.

mod cross_site;
mod limits;
mod links;
mod login;
mod logout;

pub(crate) use cross_site::{CrossSite, cross_site};
pub(crate) use limits::LoginLimits;
pub(crate) use links::{LinkUses, SESSION_NAME, link_path};
pub(crate) use login::{LoginFault, login_in_place};

use super::ROOT;
use super::route::PageRoute;
use crate::api::Api;
use crate::server::RequestOrigin;
use crate::token::{Caller, TokenError};
use aldaba_delivery::Timestamp;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::COOKIE;
use http::request::Parts;
use std::net::IpAddr;
use std::time::Duration;

const COOKIE_NAME: &str = "aldaba_session";
/// A session ends when nobody has asked for a page for this long.
const IDLE: Duration = Duration::from_secs(12 * 3600);
/// The cookie is written again when it is this old.
const RENEWED_AFTER: Duration = Duration::from_secs(10 * 60);
/// Browsers keep cookies of 4 KiB; sealing and encoding make a token a third longer.
pub(crate) const MAX_TOKEN_BYTES: usize = 2800;
/// The first byte of what is sealed.
const FORMAT: u8 = 1;

pub(super) fn routes() -> Vec<PageRoute> {
    [login::routes(), links::routes(), logout::routes()].into_iter().flatten().collect()
}

/// Somebody who has logged in.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) caller: Caller,
    token: Vec<u8>,
    seen_at: Timestamp,
}

/// Why a request has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// There was none.
    Missing,
    /// Nobody has used it for long, or its token has ended.
    Ended,
}

impl Session {
    pub(crate) fn read(api: &Api, headers: &HeaderMap) -> Result<Self, NoSession> {
        let sealed = cookie(headers, COOKIE_NAME).ok_or(NoSession::Missing)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).map_err(|_| NoSession::Missing)?;
        // Another key, or none of ours.
        let plain = api.engine.open_session(&sealed).map_err(|_| NoSession::Ended)?;
        let (seen_at, token) = unpacked(&plain).ok_or(NoSession::Ended)?;
        let now = api.engine.clock().now();
        // A clock that was set back makes no session last for ever.
        if now.since(seen_at) > IDLE || seen_at.since(now) > IDLE {
            return Err(NoSession::Ended);
        }
        let caller = api.tokens.check(token, now).map_err(|_: TokenError| NoSession::Ended)?;
        Ok(Self { caller, token: token.to_vec(), seen_at })
    }

    /// The same person once more, while the page is open. `None`: the token has ended.
    pub(crate) fn is_valid(&self, api: &Api) -> bool {
        api.tokens.check(&self.token, api.engine.clock().now()).is_ok()
    }

    /// The cookie anew, where it is old enough. What a page asks for by itself does not count as use.
    pub(super) fn renewed(&self, api: &Api, parts: &Parts) -> Option<String> {
        let is_old = api.engine.clock().now().since(self.seen_at) > RENEWED_AFTER;
        let by_itself = parts.uri.path().strip_prefix(ROOT) == Some("/live");
        (is_old && !by_itself).then(|| begin(api, &self.token))
    }
}

/// The address that tries of credentials are counted for.
fn limits_address(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<RequestOrigin>().map(|origin| origin.client)
}

/// The cookie of a session that begins, or goes on, now.
fn begin(api: &Api, token: &[u8]) -> String {
    let plain = packed(api.engine.clock().now(), token);
    let sealed = BASE64_URL_SAFE_NO_PAD.encode(api.engine.seal_session(&plain, &*api.dashboard.entropy));
    set_cookie(COOKIE_NAME, &sealed, IDLE)
}

/// The cookie that ends a session.
fn end() -> String {
    set_cookie(COOKIE_NAME, "", Duration::ZERO)
}

/// A cookie for pages, which no script reads and no other site sends with a form. Where the answer leaves, it gets `Secure` if
/// the browser came over HTTPS.
pub(super) fn set_cookie(name: &str, value: &str, age: Duration) -> String {
    format!("{name}={value}; Path={ROOT}; Max-Age={}; HttpOnly; SameSite=Lax", age.as_secs())
}

pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut pairs = all.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(given, _)| *given == name).map(|(_, value)| value).filter(|value| !value.is_empty())
}

fn packed(seen_at: Timestamp, token: &[u8]) -> Vec<u8> {
    [&[FORMAT][..], &seen_at.millis().to_be_bytes(), token].concat()
}

fn unpacked(plain: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (&FORMAT, rest) = plain.split_first()? else { return None };
    let (millis, token) = rest.split_first_chunk::<8>()?;
    Some((Timestamp::from_millis(i64::from_be_bytes(*millis)), token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; aldaba_session=x.y ;b="));
        headers.append(COOKIE, HeaderValue::from_static("c=3"));
        assert_eq!(cookie(&headers, COOKIE_NAME), Some("x.y"));
        assert_eq!(cookie(&headers, "c"), Some("3"));
        assert_eq!(cookie(&headers, "b"), None);
        assert_eq!(cookie(&headers, "session"), None);
    }

    #[test]
    fn what_is_sealed_has_its_moment_and_token() {
        let at = Timestamp::from_millis(1_780_000_000_123);
        assert_eq!(unpacked(&packed(at, b"a token")), Some((at, &b"a token"[..])));
        assert_eq!(unpacked(b""), None);
        assert_eq!(unpacked(&[2; 20]), None);
    }
}
