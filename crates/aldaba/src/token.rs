//! API tokens: JWTs signed with HS256.

use aldaba_delivery::{AppId, OrgId, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;

/// The organization of tokens that name none.
pub const DEFAULT_ORGANIZATION: &str = "org_23rb8YdGqMT0qIzpgGwdXfHirMu";

const ISSUER: &str = "aldaba";
const LIFETIME_SECONDS: i64 = 10 * 365 * 24 * 3600;
/// How far the clocks of those who issue tokens may be off.
const LEEWAY_SECONDS: f64 = 15.0 * 60.0;
/// Tokens whose check is remembered. When more are in use, all are forgotten and checked again.
const REMEMBERED: usize = 4096;

#[derive(Serialize)]
struct Issued {
    sub: String,
    iat: i64,
    exp: i64,
    iss: &'static str,
}

/// A token for everything in one organization. It names no first moment: a clock that is set back must
/// not make a fresh token invalid.
pub fn issue_token(secret: &[u8], org: OrgId, now: Timestamp) -> String {
    let iat = now.millis().div_euclid(1000);
    let claims = Issued { sub: org.to_string(), iat, exp: iat.saturating_add(LIFETIME_SECONDS), iss: ISSUER };
    let key = EncodingKey::from_secret(secret);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).expect("HS256 signs any claims")
}

/// Whom a token speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Organization(OrgId),
    Application { org: OrgId, app: AppId },
}

impl Caller {
    /// Whether an application is one that the token speaks for.
    pub(crate) fn speaks_for(self, org: OrgId, app: AppId) -> bool {
        match self {
            Self::Organization(ours) => org == ours,
            Self::Application { org: ours, app: only } => (org, app) == (ours, only),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Not signed by us, not valid now, or no token at all.
    Invalid,
    /// What was sent is the secret that signs tokens.
    IsTheSecret,
    /// Ours, but it names no organization.
    NoOrganization,
    /// Ours, with an `org`, but it names no application of an organization.
    NoApplication,
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    org: Option<String>,
    exp: Option<Number>,
    nbf: Option<Number>,
}

#[derive(Clone, Copy)]
struct Checked {
    caller: Caller,
    from: f64,
    until: f64,
}

/// Checks tokens, and remembers those that passed: a request that follows costs one hash.
pub(crate) struct Tokens {
    /// Compared in place of the secret, so that the time it takes tells nothing.
    secret_digest: [u8; 32],
    key: DecodingKey,
    validation: Validation,
    passed: RwLock<HashMap<[u8; 32], Checked>>,
}

impl Tokens {
    pub(crate) fn new(secret: &[u8]) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        // Times are checked here, against the engine's clock. Issuer and audience bind nobody.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let key = DecodingKey::from_secret(secret);
        Self { secret_digest: Sha256::digest(secret).into(), key, validation, passed: RwLock::default() }
    }

    pub(crate) fn check(&self, token: &[u8], now: Timestamp) -> Result<Caller, Refused> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let remembered = self.passed.read().get(&digest).copied();
        let checked = match remembered {
            Some(checked) => checked,
            None => {
                let checked = self.decode(token, &digest)?;
                let mut passed = self.passed.write();
                if passed.len() >= REMEMBERED {
                    passed.clear();
                }
                passed.insert(digest, checked);
                checked
            }
        };
        let seconds = now.millis() as f64 / 1000.0;
        let valid = (checked.from - LEEWAY_SECONDS..=checked.until + LEEWAY_SECONDS).contains(&seconds);
        if valid { Ok(checked.caller) } else { Err(Refused::Invalid) }
    }

    fn decode(&self, token: &[u8], digest: &[u8; 32]) -> Result<Checked, Refused> {
        let claims = match jsonwebtoken::decode::<Claims>(token, &self.key, &self.validation) {
            Ok(data) => data.claims,
            // Whoever sends it has it; the answer is for the one who mixed the two up.
            Err(_) if *digest == self.secret_digest => return Err(Refused::IsTheSecret),
            Err(_) => return Err(Refused::Invalid),
        };
        let time = |claim: Option<Number>, otherwise| claim.map_or(Some(otherwise), |time| time.as_f64());
        let from = time(claims.nbf, f64::NEG_INFINITY).ok_or(Refused::Invalid)?;
        let until = time(claims.exp, f64::INFINITY).ok_or(Refused::Invalid)?;
        let sub = claims.sub.ok_or(Refused::Invalid)?;
        let caller = match claims.org {
            None => Caller::Organization(sub.parse().map_err(|_| Refused::NoOrganization)?),
            Some(org) => match (org.parse(), sub.parse()) {
                (Ok(org), Ok(app)) => Caller::Application { org, app },
                _ => return Err(Refused::NoApplication),
            },
        };
        Ok(Checked { caller, from, until })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &[u8] = b"a secret of the tests";
    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn signed(claims: &serde_json::Value, algorithm: Algorithm, secret: &[u8]) -> String {
        jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
    }

    fn check(claims: &serde_json::Value) -> Result<Caller, Refused> {
        let tokens = Tokens::new(SECRET);
        let token = signed(claims, Algorithm::HS256, SECRET);
        let first = tokens.check(token.as_bytes(), NOW);
        assert_eq!(tokens.check(token.as_bytes(), NOW), first, "a remembered token is judged the same");
        first
    }

    #[test]
    fn an_issued_token_speaks_for_its_organization() {
        let org = DEFAULT_ORGANIZATION.parse().unwrap();
        let token = issue_token(SECRET, org, NOW);
        assert_eq!(Tokens::new(SECRET).check(token.as_bytes(), NOW), Ok(Caller::Organization(org)));
    }

    #[test]
    fn a_fresh_token_is_valid_on_a_clock_that_was_set_back() {
        let token = issue_token(SECRET, DEFAULT_ORGANIZATION.parse().unwrap(), NOW);
        let day_before = Timestamp::from_millis(NOW.millis() - 24 * 3600 * 1000);
        assert!(Tokens::new(SECRET).check(token.as_bytes(), day_before).is_ok());
    }

    #[test]
    fn claims_decide_whom_a_token_speaks_for() {
        let org = DEFAULT_ORGANIZATION;
        let app = "app_23rb8YdGqMT0qIzpgGwdXfHirMu";
        let (org_id, app_id) = (org.parse().unwrap(), app.parse().unwrap());
        let organization = Ok(Caller::Organization(org_id));
        assert_eq!(check(&json!({"sub": org})), organization);
        assert_eq!(check(&json!({"sub": org, "iss": "another", "aud": "x"})), organization);
        assert_eq!(
            check(&json!({"sub": app, "org": org})),
            Ok(Caller::Application { org: org_id, app: app_id })
        );
        assert_eq!(check(&json!({"sub": app})), Err(Refused::NoOrganization));
        assert_eq!(check(&json!({"sub": "admin"})), Err(Refused::NoOrganization));
        assert_eq!(check(&json!({"sub": app, "org": "x"})), Err(Refused::NoApplication));
        assert_eq!(check(&json!({"sub": org, "org": org})), Err(Refused::NoApplication));
        assert_eq!(check(&json!({})), Err(Refused::Invalid));
        assert_eq!(check(&json!({"sub": 5})), Err(Refused::Invalid));
    }

    #[test]
    fn times_count_with_a_quarter_of_an_hour_of_tolerance() {
        let now = NOW.millis() / 1000;
        let token = |nbf: i64, exp: i64| check(&json!({"sub": DEFAULT_ORGANIZATION, "nbf": nbf, "exp": exp}));
        assert!(token(now + 899, now - 899).is_ok());
        assert_eq!(token(now, now - 901), Err(Refused::Invalid));
        assert_eq!(token(now + 901, now), Err(Refused::Invalid));
    }

    #[test]
    fn a_remembered_token_still_expires() {
        let tokens = Tokens::new(SECRET);
        let claims = json!({"sub": DEFAULT_ORGANIZATION, "exp": NOW.millis() / 1000});
        let token = signed(&claims, Algorithm::HS256, SECRET);
        assert!(tokens.check(token.as_bytes(), NOW).is_ok());
        let later = NOW + std::time::Duration::from_secs(16 * 60);
        assert_eq!(tokens.check(token.as_bytes(), later), Err(Refused::Invalid));
    }

    #[test]
    fn other_keys_other_algorithms_and_garbage_are_refused() {
        let tokens = Tokens::new(SECRET);
        let claims = json!({"sub": DEFAULT_ORGANIZATION});
        let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJvcmdfMjNyYjhZZEdxTVQwcUl6cGdHd2RYZkhpck11In0.";
        for token in [
            signed(&claims, Algorithm::HS256, b"another secret"),
            signed(&claims, Algorithm::HS512, SECRET),
            unsigned.to_owned(),
            String::new(),
            "..".to_owned(),
        ] {
            assert_eq!(tokens.check(token.as_bytes(), NOW), Err(Refused::Invalid), "{token}");
        }
        assert_eq!(tokens.check(SECRET, NOW), Err(Refused::IsTheSecret));
    }
}
