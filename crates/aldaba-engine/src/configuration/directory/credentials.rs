//! Creates and revokes API keys and tokens.

use super::{ChangeError, ChangeOutcome, Directory, IdempotencyDigest};
use crate::configuration::credentials::{MAX_SESSION, NewKey, Revocations, make_key};
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{ActorIdentity, ApiKey, AuditAction, Change, PortalExpiry, RevokedToken};
use std::time::Duration;

/// How many prefixes are tried if they are taken.
const MAX_PREFIX_ATTEMPTS: usize = 5;
/// Tokens are accepted for this long past their expiry.
const EXPIRY_LEEWAY: Duration = Duration::from_secs(15 * 60);

impl Directory {
    /// Creates a key and returns its text, which cannot be read again. [`ChangeError::Repeated`]: an earlier
    /// request created it.
    pub async fn create_key(
        &self,
        new: NewKey,
        once: IdempotencyDigest,
    ) -> Result<(ApiKey, String), ChangeError> {
        for _ in 0..MAX_PREFIX_ATTEMPTS {
            let (key, text) = make_key(new.clone(), self.clock.now(), &*self.entropy);
            let change = Change::CreateApiKey { key: key.clone(), idempotency: self.idempotency(once) };
            match self.change(change).await {
                Ok(ChangeOutcome::RepeatOf(id)) => {
                    return Err(ChangeError::Repeated(ApiKeyId::from_bytes(id)));
                }
                Ok(_) => return Ok((key, text)),
                Err(ChangeError::UidTaken) => {}
                Err(ChangeError::TooMany) => return Err(ChangeError::TooManyApiKeys),
                Err(error) => return Err(error),
            }
        }
        Err(ChangeError::UidTaken)
    }

    pub async fn rename_key(&self, org: OrgId, id: ApiKeyId, name: String) -> Result<(), ChangeError> {
        if self.credentials.keys.get(org, id).is_some_and(|key| key.name == name) {
            return Ok(());
        }
        self.change(Change::RenameApiKey { org, id, name }).await.map(drop)
    }

    /// Revokes a key. It is invalid when this returns.
    pub async fn revoke_key(&self, org: OrgId, id: ApiKeyId) -> Result<(), ChangeError> {
        self.change(Change::RevokeApiKey { org, id }).await.map(drop)
    }

    /// Records that a portal token is granted, and returns the time at which it must be issued.
    pub async fn grant_portal_access(
        &self,
        app: AppId,
        session: Option<&str>,
    ) -> Result<Timestamp, ChangeError> {
        self.change(Change::GrantPortalAccess { app }).await?;
        Ok(self.credentials.revocations.issue_at(app, session, self.clock.now()))
    }

    /// Ends portal tokens of an application that were issued until now: those of some sessions, or all.
    pub async fn end_portal_tokens(
        &self,
        app: AppId,
        sessions: Vec<String>,
        delay: Duration,
    ) -> Result<(), ChangeError> {
        let (now, revocations) = (self.clock.now(), &self.credentials.revocations);
        let cut = |session: Option<String>| {
            let issued_before = revocations.end_before(app, session.as_deref(), now);
            // A cut for all sessions never expires: tokens signed with the secret may have no expiry.
            let expires_at = session.as_ref().map(|_| issued_before + delay.max(MAX_SESSION) + EXPIRY_LEEWAY);
            let ends_at = if delay.is_zero() {
                issued_before
            } else {
                PortalExpiry::delayed_end(issued_before, now + delay)
            };
            PortalExpiry { app, session, issued_before, ends_at, expires_at }
        };
        let cuts: Vec<_> = match sessions.is_empty() {
            true => vec![cut(None)],
            false => sessions.into_iter().map(|session| cut(Some(session))).collect(),
        };
        let at_once = delay.is_zero();
        let (fit, most) = match cuts.iter().all(|cut| cut.session.is_none()) {
            // It replaces all others, so it is always allowed.
            true if at_once => (true, 1),
            true => (revocations.can_add_delayed_cut(app), Revocations::MAX_DELAYED_CUTS),
            false => (revocations.can_add_cuts(app, cuts.len()), Revocations::MAX_CUTS),
        };
        if !fit {
            return Err(ChangeError::TooManyRevocations(most));
        }
        self.change(Change::EndPortalTokens { app, cuts, at: now }).await.map(drop)
    }

    /// Revokes one signed token. `ends_at`: its own expiry, if any.
    pub async fn revoke_token(
        &self,
        org: OrgId,
        mark: [u8; 32],
        ends_at: Option<Timestamp>,
    ) -> Result<(), ChangeError> {
        if !self.credentials.revocations.can_add_token(org) {
            return Err(ChangeError::TooManyRevocations(Revocations::MAX_TOKENS));
        }
        let expires_at = ends_at.map(|ends_at| ends_at + EXPIRY_LEEWAY);
        let change = Change::RevokeToken { token: RevokedToken { org, mark, expires_at } };
        let app = match &self.actor.identity {
            ActorIdentity::PortalToken { app, .. } => Some(*app),
            ActorIdentity::Key { .. }
            | ActorIdentity::OrganizationToken { .. }
            | ActorIdentity::CommandLine
            | ActorIdentity::Program => None,
        };
        self.change_as(AuditAction { app, ..change.audit_action() }, change).await.map(drop)
    }
}
