//! Links that log a person in to the dashboard, and the tokens that they are exchanged for.

use super::issue::{NewOrganizationToken, sign_claims};
use super::{ISSUER, JwtSecret, TokenError, Tokens};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_engine::{Entropy, digest_of};
use jsonwebtoken::EncodingKey;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a link is valid.
pub(crate) const LINK_LIFETIME: Duration = Duration::from_secs(600);
/// The subject is no organization's id, so that a link is refused as a token of the API.
const SUBJECT: &str = "dashboard-link:";

/// A link that was signed by us and is valid now. It may have been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DashboardLink {
    pub(crate) org: OrgId,
    /// A digest of the signed part.
    pub(crate) mark: [u8; 32],
    pub(crate) expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct LinkClaims {
    sub: String,
    exp: i64,
    iss: String,
    jti: String,
}

/// A link for the holder of the secret.
pub(crate) fn issue_dashboard_link(
    secret: &JwtSecret,
    org: OrgId,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> String {
    let claims = LinkClaims {
        sub: format!("{SUBJECT}{org}"),
        exp: (now + LINK_LIFETIME).millis().div_euclid(1000),
        iss: ISSUER.to_owned(),
        jti: random_id(entropy),
    };
    sign_claims(&EncodingKey::from_secret(secret.as_bytes()), &claims)
}

fn random_id(entropy: &dyn Entropy) -> String {
    let random: [u8; 16] = entropy.bytes();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tokens {
    /// Reads a link. A clock that differs a little does not matter: the same machine makes it.
    pub(crate) fn dashboard_link(&self, link: &[u8], now: Timestamp) -> Result<DashboardLink, TokenError> {
        let claims = jsonwebtoken::decode::<LinkClaims>(link, &self.key, &self.validation)
            .map_err(|_| TokenError::Invalid)?
            .claims;
        let org = claims.sub.strip_prefix(SUBJECT).and_then(|org| org.parse().ok());
        let org = org.ok_or(TokenError::Invalid)?;
        let signed = link.iter().rposition(|byte| *byte == b'.').unwrap_or(link.len());
        let mark = digest_of(&link[..signed]);
        let expires_at = Timestamp::from_millis(claims.exp.saturating_mul(1000));
        if now > expires_at || expires_at > now + LINK_LIFETIME * 2 {
            return Err(TokenError::Expired);
        }
        if self.credentials.revocations.is_revoked(&mark) {
            return Err(TokenError::Ended);
        }
        Ok(DashboardLink { org, mark, expires_at })
    }

    /// The token of a session that began with a link.
    pub(crate) fn issue_session(
        &self,
        org: OrgId,
        name: &str,
        (now, lifetime): (Timestamp, Duration),
        entropy: &dyn Entropy,
    ) -> String {
        let new = NewOrganizationToken { org, name: Some(name.to_owned()), now, lifetime: Some(lifetime) };
        super::issue::session(&self.signing, new, random_id(entropy))
    }
}
