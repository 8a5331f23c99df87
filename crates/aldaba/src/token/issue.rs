//! Tokens that this server signs.

use super::{Capabilities, ISSUER, JwtSecret};
use aldaba_delivery::{AppId, OrgId, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use std::time::Duration;

/// How long a token of [`issue_token`] is valid: the demo and tests use it. `aldaba token create` has a lifetime of its own.
const DEMO_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The lifetime of a token that a command makes for itself.
const COMMAND_LIFETIME: Duration = Duration::from_secs(600);
/// The name of such a token in the audit log.
pub(super) const COMMAND_LINE: &str = "command_line";

#[derive(Serialize)]
struct OrganizationClaims {
    sub: String,
    iat: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    iss: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    /// Tells tokens of the same second apart: to end one must not end the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
}

/// A token for everything in one organization, valid for ten years. It has no start date: a clock that is set back
/// must not make a fresh token invalid.
pub fn issue_token(secret: &JwtSecret, org: OrgId, now: Timestamp) -> String {
    issue_organization_token(
        secret,
        NewOrganizationToken { org, name: None, now, lifetime: Some(DEMO_LIFETIME) },
    )
}

/// A token for everything in one organization.
#[derive(Debug)]
pub(crate) struct NewOrganizationToken {
    pub(crate) org: OrgId,
    /// For the audit log.
    pub(crate) name: Option<String>,
    pub(crate) now: Timestamp,
    /// `None`: it does not expire.
    pub(crate) lifetime: Option<Duration>,
}

impl NewOrganizationToken {
    /// When it expires, to the second as the token has it.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        let issued_at = Timestamp::from_millis(seconds(self.now).saturating_mul(1000));
        Some(issued_at + self.lifetime?)
    }
}

pub(crate) fn issue_organization_token(secret: &JwtSecret, new: NewOrganizationToken) -> String {
    organization(secret, new, None)
}

/// Signs a token for the requests of a command that has the secret.
pub(crate) fn issue_command_token(secret: &JwtSecret, org: OrgId, now: Timestamp) -> String {
    let new = NewOrganizationToken { org, name: None, now, lifetime: Some(COMMAND_LIFETIME) };
    organization(secret, new, Some(COMMAND_LINE))
}

/// The token of a session of the dashboard.
pub(super) fn session(key: &EncodingKey, new: NewOrganizationToken, jti: String) -> String {
    signed(key, new, None, Some(jti))
}

fn organization(secret: &JwtSecret, new: NewOrganizationToken, by: Option<&'static str>) -> String {
    signed(&EncodingKey::from_secret(secret.as_bytes()), new, by, None)
}

fn signed(
    key: &EncodingKey,
    new: NewOrganizationToken,
    by: Option<&'static str>,
    jti: Option<String>,
) -> String {
    let exp = new.expires_at().map(seconds);
    let claims = OrganizationClaims {
        sub: new.org.to_string(),
        iat: seconds(new.now),
        exp,
        iss: ISSUER,
        name: new.name,
        by,
        jti,
    };
    sign_claims(key, &claims)
}

fn seconds(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(1000)
}

/// A token for an application's portal.
#[derive(Debug)]
pub(crate) struct NewPortalToken {
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
    /// May be ahead: a token that is issued after others were ended is not among them.
    pub(crate) issued_at: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) lifetime: Duration,
    /// `None`: all of them.
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) feature_flags: Vec<String>,
    pub(crate) session: Option<String>,
}

#[derive(Serialize)]
struct PortalClaims<'a> {
    sub: String,
    org: String,
    /// To the millisecond, which separates it from tokens of the second in which others were ended.
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
    let claims = PortalClaims {
        sub: new.app.to_string(),
        org: new.org.to_string(),
        iat,
        exp: (new.now + new.lifetime).millis() as f64 / 1000.0,
        iss: ISSUER,
        feature_flags: &new.feature_flags,
        capabilities: new.capabilities.map(Capabilities::names),
        session_id: new.session.as_deref(),
    };
    sign_claims(key, &claims)
}

pub(super) fn sign_claims(key: &EncodingKey, claims: &impl Serialize) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, key).expect("HS256 signs any claims")
}
