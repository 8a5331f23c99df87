//! Challenges: requests by which a sender tests that a URL is a receiver.
//!
//! Each function returns the answer, or `None` for any other request. An answer is a short text without control
//! characters. Send it with its content type and with `X-Content-Type-Options: nosniff`, because it is foreign text.

use super::Secret;
use crate::{HashKind, VerifyingKey, hex};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::borrow::Cow;
use subtle::ConstantTimeEq;

/// The maximum length of a query that is parsed, in bytes.
pub const MAX_QUERY: usize = 4096;
/// The maximum length of an echoed text, in bytes.
pub const MAX_TEXT: usize = 1024;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// The answer to a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status: 200, or 403 for a challenge with a wrong token.
    pub status: u16,
    /// The value of the header `content-type`.
    pub content_type: &'static str,
    /// The body of the answer.
    pub body: String,
}

impl Answer {
    fn text(body: &str) -> Self {
        Self { status: 200, content_type: PLAIN, body: body.to_owned() }
    }

    fn refused(why: &str) -> Self {
        Self { status: 403, ..Self::text(why) }
    }
}

/// Slack's `url_verification`: a POST whose body has a `challenge`. Call it only for a request with a valid signature
/// ([`Inspector::open`](super::Inspector::open) does that).
pub fn slack(body: &[u8]) -> Option<Answer> {
    slack_in(&serde_json::from_slice(body).ok()?)
}

pub(crate) fn slack_in(document: &Value) -> Option<Answer> {
    let challenge = document.get("challenge")?.as_str()?;
    (document.get("type")?.as_str()? == "url_verification" && is_token(challenge))
        .then(|| Answer::text(challenge))
}

/// Zoom's `endpoint.url_validation`: a POST whose `plainToken` is returned with its HMAC. Call it only for a request with
/// a valid signature ([`Inspector::open`](super::Inspector::open) does that). The token may have only letters, digits,
/// `-`, `_`, `.` and `~`: Zoom signs its events with the same secret, over texts that contain colons, so another token
/// could obtain a valid signature for a forged event.
pub fn zoom(body: &[u8], secret: &Secret) -> Option<Answer> {
    zoom_answer(zoom_token(&serde_json::from_slice(body).ok()?)?, &secret.0)
}

pub(crate) fn zoom_token(document: &Value) -> Option<&str> {
    let token = document.get("payload")?.get("plainToken")?.as_str()?;
    (document.get("event")?.as_str()? == "endpoint.url_validation" && is_token(token)).then_some(token)
}

pub(crate) fn zoom_answer(token: &str, key: &VerifyingKey) -> Option<Answer> {
    let signed = HashKind::Sha256.hmac(key.secret()?, &[token.as_bytes()]);
    let body = json!({ "plainToken": token, "encryptedToken": hex::write(&signed) }).to_string();
    Some(Answer { status: 200, content_type: JSON, body })
}

/// Meta's GET with `hub.mode=subscribe`, `hub.verify_token` and `hub.challenge` in the query. The token is the one that
/// was entered at Meta; an empty one matches nothing.
pub fn meta(query: &str, verify_token: &str) -> Option<Answer> {
    let query = Query::read(query)?;
    let mode = query.one("hub.mode")?;
    let token = query.one("hub.verify_token").unwrap_or_default();
    let fits = bool::from(token.as_bytes().ct_eq(verify_token.as_bytes())) && !verify_token.is_empty();
    if mode != "subscribe" || !fits {
        return Some(Answer::refused("the verify token is another one"));
    }
    match query.one("hub.challenge") {
        Some(challenge) if is_token(&challenge) => Some(Answer::text(&challenge)),
        _ => Some(Answer::refused("hub.challenge must come once, as a short token")),
    }
}

/// Microsoft Graph's POST with a `validationToken` in the query, whose decoded text is returned. It is not signed.
pub fn microsoft_graph(query: &str) -> Option<Answer> {
    let token = Query::read(query)?.one("validationToken")?;
    let fits = (1..=MAX_TEXT).contains(&token.len()) && !token.chars().any(char::is_control);
    fits.then(|| Answer::text(&token))
}

fn is_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    (1..=MAX_TEXT).contains(&text.len()) && text.bytes().all(plain)
}

struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// The query, with or without the `?`.
    fn read(text: &'a str) -> Option<Self> {
        (text.len() <= MAX_QUERY).then(|| Self(text.strip_prefix('?').unwrap_or(text)))
    }

    /// The value of a name that is present once; `None` also if it is not UTF-8.
    fn one(&self, name: &str) -> Option<String> {
        let mut values = self.0.split('&').filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key)? == name).then_some(value)
        });
        match (values.next(), values.next()) {
            (Some(value), None) => decode(value),
            _ => None,
        }
    }
}

/// Decodes a form: `+` is a space.
fn decode(text: &str) -> Option<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode_str(&spaced).decode_utf8().ok().map(Cow::into_owned)
}
