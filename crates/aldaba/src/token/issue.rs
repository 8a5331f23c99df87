//! Tokens that this server signs.

use super::{Capabilities, ISSUER, JwtSecret};
use aldaba_delivery::{AppId, OrgId, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use std::time::Duration;

const LIFETIME_SECONDS: i64 = 10 * 365 * 24 * 3600;
/// How long a token counts that a command makes for itself.
const COMMAND_SECONDS: i64 = 600;
/// What such a token says of itself, for the audit log.
pub(super) const COMMAND_LINE: &str = "command_line";

#[derive(Serialize)]
struct Organization {
    sub: String,
    iat: i64,
    exp: i64,
    iss: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
}

/// A token for everything in one organization. It names no first moment: a clock that is set back must
/// not make a fresh token invalid.
pub fn issue_token(secret: &JwtSecret, org: OrgId, now: Timestamp) -> String {
    organization(secret, org, now, LIFETIME_SECONDS, None)
}

/// The same, for the requests of a command that has the secret.
pub(crate) fn issue_command_token(secret: &JwtSecret, org: OrgId, now: Timestamp) -> String {
    organization(secret, org, now, COMMAND_SECONDS, Some(COMMAND_LINE))
}

fn organization(
    secret: &JwtSecret,
    org: OrgId,
    now: Timestamp,
    lifetime: i64,
    by: Option<&'static str>,
) -> String {
    let iat = now.millis().div_euclid(1000);
    let claims =
        Organization { sub: org.to_string(), iat, exp: iat.saturating_add(lifetime), iss: ISSUER, by };
    sign(&EncodingKey::from_secret(secret.as_bytes()), &claims)
}

/// A token for an application's portal.
#[derive(Debug)]
pub(crate) struct NewPortalToken {
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
    /// May be ahead: a token that is issued after an end of others is not among those.
    pub(crate) issued_at: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) lifetime: Duration,
    /// `None`: all of them.
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) feature_flags: Vec<String>,
    pub(crate) session: Option<String>,
}

#[derive(Serialize)]
struct Portal<'a> {
    sub: String,
    org: String,
    /// To the millisecond, so that those of the second in which others were ended are told apart.
    iat: f64,
    exp: f64,
    iss: &'static str,
    feature_flags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

pub(super) fn portal(key: &EncodingKey, new: &NewPortalToken) -> String {
    let iat = new.issued_at.millis() as f64 / 1000.0;
    let claims = Portal {
        sub: new.app.to_string(),
        org: new.org.to_string(),
        iat,
        exp: (new.now + new.lifetime).millis() as f64 / 1000.0,
        iss: ISSUER,
        feature_flags: &new.feature_flags,
        capabilities: new.capabilities.map(Capabilities::names),
        session_id: new.session.as_deref(),
    };
    sign(key, &claims)
}

fn sign(key: &EncodingKey, claims: &impl Serialize) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, key).expect("HS256 signs any claims")
}
