//! Authenticates callers: JWTs signed with HS256, and API keys.

mod caller;
mod capability;
mod claims;
mod dashboard_link;
mod expiry_warnings;
mod issue;
mod secret;

pub use aldaba_engine::DEFAULT_ORGANIZATION;
pub(crate) use caller::{Caller, CallerCredential, Rights};
pub(crate) use capability::{Capabilities, Capability};
pub(crate) use dashboard_link::{DashboardLink, LINK_LIFETIME, issue_dashboard_link};
pub(crate) use expiry_warnings::ExpiringTokens;
pub use issue::issue_token;
pub(crate) use issue::{NewOrganizationToken, NewPortalToken, issue_command_token, issue_organization_token};
pub use secret::{JwtSecret, SecretTooShort};

use aldaba_delivery::Timestamp;
use aldaba_engine::{Credentials, KEY_PREFIX, digest_of};
use claims::{CheckedToken, Claims};
use expiry_warnings::Validity;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;

const ISSUER: &str = "aldaba";
/// How far the clocks of token issuers may be off.
const LEEWAY_SECONDS: f64 = 15.0 * 60.0;
/// Tokens whose check is cached. When more are in use, the cache is cleared.
const MAX_CHECKED_TOKENS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Not signed by us, not valid now, or no token at all.
    Invalid,
    /// A key that has expired.
    Expired,
    /// A token that was ended before its time.
    Ended,
    /// The caller sent the secret that signs tokens.
    IsTheSecret,
    /// Signed by us, but it names no organization.
    NoOrganization,
    /// Signed by us, with an `org`, but it names no application of an organization.
    NoApplication,
}

/// Checks tokens and keys. A key costs a digest and a lookup, and so does a token that has passed before.
pub(crate) struct Tokens {
    /// Compared instead of the secret, so that the time of the comparison reveals nothing.
    secret_digest: [u8; 32],
    key: DecodingKey,
    signing: EncodingKey,
    validation: Validation,
    passed: RwLock<HashMap<[u8; 32], CheckedToken>>,
    credentials: Credentials,
    expiring: ExpiringTokens,
}

impl Tokens {
    pub(crate) fn new(secret: &JwtSecret, credentials: Credentials) -> Self {
        let secret = secret.as_bytes();
        let mut validation = Validation::new(Algorithm::HS256);
        // Times are checked here, against the engine's clock. Issuer and audience are ignored.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        Self {
            secret_digest: digest_of(secret),
            key: DecodingKey::from_secret(secret),
            signing: EncodingKey::from_secret(secret),
            validation,
            passed: RwLock::default(),
            credentials,
            expiring: ExpiringTokens::default(),
        }
    }

    pub(crate) fn check(&self, token: &[u8], now: Timestamp) -> Result<Caller, TokenError> {
        let digest = digest_of(token);
        if token.starts_with(KEY_PREFIX.as_bytes()) {
            let held = self.credentials.keys.find(&digest).ok_or(TokenError::Invalid)?;
            if held.key().has_expired(now) {
                return Err(TokenError::Expired);
            }
            held.used(now);
            let caller = Caller::of_key(&held);
            if let Some(expires_at) = held.key().expires_at {
                let validity = Validity { issued_at: held.key().created_at, expires_at };
                self.expiring.used(digest, validity, caller.actor(), now);
            }
            return Ok(caller);
        }
        if let Some(checked) = self.passed.read().get(&digest) {
            return self.let_in(checked, now);
        }
        let checked = self.decode(token, &digest)?;
        let caller = self.let_in(&checked, now);
        let mut passed = self.passed.write();
        if passed.len() >= MAX_CHECKED_TOKENS {
            passed.clear();
        }
        passed.insert(digest, checked);
        caller
    }

    fn let_in(&self, checked: &CheckedToken, now: Timestamp) -> Result<Caller, TokenError> {
        let caller = checked.at(now, &self.credentials.revocations)?;
        if let Some(validity) = checked.validity() {
            self.expiring.used(checked.mark(), validity, caller.actor(), now);
        }
        Ok(caller.clone())
    }

    /// Tokens and keys that are in use and expire soon.
    pub(crate) fn expiring(&self) -> &ExpiringTokens {
        &self.expiring
    }

    pub(crate) fn issue_portal(&self, new: &NewPortalToken) -> String {
        issue::portal(&self.signing, new)
    }

    fn decode(&self, token: &[u8], digest: &[u8; 32]) -> Result<CheckedToken, TokenError> {
        match jsonwebtoken::decode::<Claims>(token, &self.key, &self.validation) {
            // The signed part without the signature, which can be written in more than one way.
            Ok(data) => {
                let signed = token.iter().rposition(|byte| *byte == b'.').unwrap_or(token.len());
                data.claims.read(digest_of(&token[..signed]))
            }
            // The caller has the secret anyway; the error helps the one who confused the two.
            Err(_) if *digest == self.secret_digest => Err(TokenError::IsTheSecret),
            Err(_) => Err(TokenError::Invalid),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

#[cfg(test)]
mod tests;
