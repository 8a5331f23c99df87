//! The claims of a signed token.

use super::caller::{Caller, CallerCredential};
use super::capability::{Capabilities, Capability};
use super::expiry_warnings::Validity;
use super::issue::COMMAND_LINE;
use super::{LEEWAY_SECONDS, TokenError};
use aldaba_delivery::{AppId, Timestamp};
use aldaba_engine::{MAX_SESSION, Revocations, check_key_name};
use aldaba_store::{Actor, ActorIdentity};
use serde::Deserialize;
use serde_json::{Number, Value};

/// The owner of the secret may sign any claims: only the claims that matter here can make a token invalid that was
/// valid before they were known.
#[derive(Deserialize)]
pub(super) struct Claims {
    sub: Option<String>,
    org: Option<String>,
    exp: Option<Number>,
    nbf: Option<Number>,
    iat: Option<Value>,
    feature_flags: Option<Value>,
    capabilities: Option<Value>,
    session_id: Option<Value>,
    name: Option<Value>,
    by: Option<Value>,
}

/// A token that we signed, and when it is valid.
#[derive(Clone, Debug)]
pub(super) struct CheckedToken {
    caller: Caller,
    from: f64,
    until: f64,
    mark: [u8; 32],
    issued_at: Option<Timestamp>,
    portal: Option<PortalClaims>,
}

#[derive(Clone, Debug)]
struct PortalClaims {
    app: AppId,
    session: Option<String>,
}

impl Claims {
    pub(super) fn read(self, mark: [u8; 32]) -> Result<CheckedToken, TokenError> {
        let time = |claim: Option<Number>, otherwise| claim.map_or(Some(otherwise), |time| time.as_f64());
        let from = time(self.nbf, f64::NEG_INFINITY).ok_or(TokenError::Invalid)?;
        let mut until = time(self.exp, f64::INFINITY).ok_or(TokenError::Invalid)?;
        let sub = self.sub.ok_or(TokenError::Invalid)?;
        let Some(org) = self.org else {
            let org = sub.parse().map_err(|_| TokenError::NoOrganization)?;
            let identity = match self.by {
                Some(Value::String(by)) if by == COMMAND_LINE => ActorIdentity::CommandLine,
                _ => ActorIdentity::OrganizationToken { name: self.name.as_ref().and_then(token_name) },
            };
            let issued_at = self.iat.as_ref().and_then(Value::as_f64).and_then(moment);
            let shown = CallerCredential::Token { mark, expires_at: moment(until) };
            let caller = Caller::of_organization(Actor { org, identity }, shown);
            return Ok(CheckedToken { caller, from, until, mark, issued_at, portal: None });
        };
        let (Ok(org), Ok(app)) = (org.parse(), sub.parse::<AppId>()) else {
            return Err(TokenError::NoApplication);
        };
        let issued = self.iat.as_ref().and_then(Value::as_f64);
        let session = self.session_id.and_then(|session| Some(session.as_str()?.to_owned()));
        if session.is_some() {
            // The end of a session is remembered for this long. It cannot apply to a token without an issue date.
            until = until.min(issued.unwrap_or(f64::NEG_INFINITY) + MAX_SESSION.as_secs_f64());
        }
        let capabilities = self.capabilities.map_or_else(Capabilities::all, |names| {
            texts(&names).filter_map(Capability::from_name).collect()
        });
        let flags = self.feature_flags.iter().flat_map(texts).map(str::to_owned).collect();
        let actor = Actor { org, identity: ActorIdentity::PortalToken { app, session: session.clone() } };
        let shown = CallerCredential::Token { mark, expires_at: moment(until) };
        let caller = Caller::of_portal(actor, app, capabilities, flags, shown);
        let issued_at = issued.and_then(moment);
        let portal = Some(PortalClaims { app, session });
        Ok(CheckedToken { caller, from, until, mark, issued_at, portal })
    }
}

impl CheckedToken {
    /// Whether the token is valid at a moment, and whom it speaks for.
    pub(super) fn at(&self, now: Timestamp, revocations: &Revocations) -> Result<&Caller, TokenError> {
        let seconds = now.millis() as f64 / 1000.0;
        if !(self.from - LEEWAY_SECONDS..=self.until + LEEWAY_SECONDS).contains(&seconds) {
            return Err(TokenError::Invalid);
        }
        let ended = self.portal.as_ref().is_some_and(|PortalClaims { app, session }| {
            revocations.has_ended(*app, session.as_deref(), self.issued_at, now)
        });
        if ended || revocations.is_revoked(&self.mark) {
            return Err(TokenError::Ended);
        }
        Ok(&self.caller)
    }

    /// The start and the end of the token's validity, if both are known. Portal tokens are left out: they are valid
    /// for a few days, and their issuer makes the next ones too.
    pub(super) fn validity(&self) -> Option<Validity> {
        let CallerCredential::Token { expires_at, .. } = self.caller.shown() else { return None };
        let both = Validity { issued_at: self.issued_at?, expires_at: expires_at? };
        self.portal.is_none().then_some(both)
    }

    pub(super) fn mark(&self) -> [u8; 32] {
        self.mark
    }
}

/// A name that the API would refuse counts as none: it only decides what the audit log shows.
fn token_name(claim: &Value) -> Option<String> {
    claim.as_str().filter(|name| check_key_name(name).is_ok()).map(str::to_owned)
}

/// `None`: too far away to be a date.
fn moment(seconds: f64) -> Option<Timestamp> {
    let millis = (seconds * 1000.0).round();
    (millis.abs() < i64::MAX as f64).then(|| Timestamp::from_millis(millis as i64))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}
