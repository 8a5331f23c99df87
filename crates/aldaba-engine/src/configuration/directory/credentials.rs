//! Keys and tokens, made and ended.

use super::{ChangeError, Directory, Once, Repeat};
use crate::configuration::credentials::{LONGEST_SESSION, NewKey, Revocations, make_key};
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{ActorIdentity, ApiKey, AuditAction, Change, PortalExpiry, RevokedToken};
use std::time::Duration;

/// How often another prefix is tried because a key has it already.
const TRIES: usize = 5;
/// Tokens are taken for so much longer than they say.
const LEEWAY: Duration = Duration::from_secs(15 * 60);

impl Directory {
    /// A key and its text, which nobody can read again. [`ChangeError::Repeated`]: the request has made it before.
    pub async fn create_key(&self, new: NewKey, once: Once) -> Result<(ApiKey, String), ChangeError> {
        for _ in 0..TRIES {
            let (key, text) = make_key(new.clone(), self.clock.now(), &*self.entropy);
            let change = Change::CreateApiKey { key: key.clone(), idempotency: self.idempotency(once) };
            match self.change(change).await {
                Ok(Repeat::Of(id)) => return Err(ChangeError::Repeated(ApiKeyId::from_bytes(id))),
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

    /// It counts no longer when this returns.
    pub async fn revoke_key(&self, org: OrgId, id: ApiKeyId) -> Result<(), ChangeError> {
        self.change(Change::RevokeApiKey { org, id }).await.map(drop)
    }

    /// Notes that somebody was given a token for an application's portal. It is to be issued at the moment that
    /// this returns.
    pub async fn grant_portal_access(
        &self,
        app: AppId,
        session: Option<&str>,
    ) -> Result<Timestamp, ChangeError> {
        self.change(Change::GrantPortalAccess { app }).await?;
        Ok(self.credentials.revocations.issue_at(app, session, self.clock.now()))
    }

    /// Ends the portal tokens of an application that were issued until now: those of some sessions, or all.
    pub async fn end_portal_tokens(
        &self,
        app: AppId,
        sessions: Vec<String>,
        delay: Duration,
    ) -> Result<(), ChangeError> {
        let (now, revocations) = (self.clock.now(), &self.credentials.revocations);
        let cut = |session: Option<String>| {
            let issued_before = revocations.end_before(app, session.as_deref(), now);
            // Those for all have no end: whoever has the secret may have signed tokens that have none.
            let expires_at = session.as_ref().map(|_| issued_before + delay.max(LONGEST_SESSION) + LEEWAY);
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
            // It takes the place of all others, so there is always room for it.
            true if at_once => (true, 1),
            true => (revocations.has_room_for_delayed_cut(app), Revocations::MOST_DELAYED),
            false => (revocations.has_room_for_cuts(app, cuts.len()), Revocations::MOST_CUTS),
        };
        if !fit {
            return Err(ChangeError::TooManyRevocations(most));
        }
        self.change(Change::EndPortalTokens { app, cuts, at: now }).await.map(drop)
    }

    /// Ends one signed token. `ends_at`: when it would have ended by itself, if ever.
    pub async fn revoke_token(
        &self,
        org: OrgId,
        mark: [u8; 32],
        ends_at: Option<Timestamp>,
    ) -> Result<(), ChangeError> {
        if !self.credentials.revocations.has_room_for_token(org) {
            return Err(ChangeError::TooManyRevocations(Revocations::MOST_TOKENS));
        }
        let expires_at = ends_at.map(|ends_at| ends_at + LEEWAY);
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
