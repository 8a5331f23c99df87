//! Creates and changes sources.

use super::{ChangeError, ChangeOutcome, CreateOutcome, Directory, IdempotencyDigest};
use crate::inbound::{NewSource, SourceSecrets, token_digest};
use crate::{SourceCache, SourceCounters, VaultError};
use aldaba_delivery::{AppId, SourceId};
use aldaba_store::{Application, Change, FieldChange, Source, SourceToken};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;

impl Directory {
    /// Creates a checked source and the application that it owns.
    pub async fn create_source(
        &self,
        new: NewSource,
        once: IdempotencyDigest,
    ) -> Result<CreateOutcome<Source>, ChangeError> {
        let now = self.clock.now();
        let (id, org) = (SourceId::new(now, self.entropy.bytes()), new.org);
        let (token, newest) = self.token();
        let config = new.config();
        let secrets = SourceSecrets { token, ..new.secrets };
        let application = Application {
            id: AppId::new(now, self.entropy.bytes()),
            org,
            uid: None,
            name: format!("Source: {}", new.name),
            throttle_rate: None,
            alert_email: None,
            metadata: format!(r#"{{"sourceId":"{id}"}}"#),
            created_at: now,
            updated_at: now,
        };
        let source = Source {
            id,
            org,
            app: application.id,
            config,
            sealed: self.vault.seal_source(org, id, &secrets, &*self.entropy),
            tokens: vec![newest],
            created_at: now,
            updated_at: now,
        };
        let idempotency = self.idempotency(once);
        let change = Change::CreateSource { source: source.clone(), application, idempotency };
        match self.change(change).await {
            Ok(ChangeOutcome::RepeatOf(bytes)) => {
                let id = SourceId::from_bytes(bytes).to_string();
                let before = self.store.source(org, id.clone()).await?;
                before.map(CreateOutcome::Existing).ok_or(ChangeError::MadeAndGone(id))
            }
            Ok(_) => Ok(CreateOutcome::Created(source)),
            Err(ChangeError::TooMany) => Err(ChangeError::TooManySources),
            Err(error) => Err(error),
        }
    }

    /// Replaces the values that `current` has with checked ones. [`ChangeError::Unsettled`]: the source
    /// changed meanwhile.
    pub async fn update_source(&self, current: &Source, new: NewSource) -> Result<Source, ChangeError> {
        let before = self.source_secrets(current)?;
        let config = new.config();
        let secrets = SourceSecrets { token: before.token.clone(), ..new.secrets };
        let sealed = match secrets == before {
            true => current.sealed.clone(),
            false => self.vault.seal_source(current.org, current.id, &secrets, &*self.entropy),
        };
        let source = Source { config, sealed, ..current.clone() };
        let fields = source.changed_since(current);
        if fields.is_empty() {
            return Ok(source);
        }
        let source = self.with_new_timestamp(source);
        let change = Change::UpdateSource { source: source.clone(), was: current.updated_at };
        let action = change.audit_action().with_fields(&fields);
        self.change_as(action, change).await?;
        Ok(source)
    }

    /// Rotates the token. The former one stays valid for a while.
    pub async fn rotate_source_token(
        &self,
        current: &Source,
        once: IdempotencyDigest,
    ) -> Result<Source, ChangeError> {
        let (now, secrets) = (self.trust.believed(self.clock.now()), self.source_secrets(current)?);
        let (token, newest) = self.token();
        let until = now + Source::OLD_TOKEN_RETENTION;
        let ends = |token: &SourceToken| SourceToken {
            expires_at: Some(token.expires_at.unwrap_or(until)),
            ..*token
        };
        let old: Vec<_> = current.tokens.iter().map(ends).filter(|token| token.counts(now)).collect();
        if old.len() > Source::MAX_OLD_TOKENS {
            let until = old.iter().filter_map(|token| token.expires_at).min().unwrap_or(until);
            return Err(ChangeError::TooManyTokens { now, until });
        }
        let sealed = self.vault.seal_source(
            current.org,
            current.id,
            &SourceSecrets { token, ..secrets },
            &*self.entropy,
        );
        let tokens = [newest].into_iter().chain(old).collect();
        let source = self.with_new_timestamp(Source { tokens, sealed, ..current.clone() });
        let (was, idempotency) = (current.updated_at, self.idempotency(once));
        let change = Change::RotateSourceToken { source: source.clone(), was, idempotency };
        let action = change.audit_action().with_changes(vec![FieldChange::secret("token", true, true)]);
        match self.change_as(action, change).await? {
            // An earlier request rotated it; the newest token is from then or later.
            ChangeOutcome::RepeatOf(_) => {
                let found = self.store.source(source.org, source.id.to_string()).await?;
                found.ok_or_else(|| ChangeError::MadeAndGone(source.id.to_string()))
            }
            _ => Ok(source),
        }
    }

    /// Deletes a source and its application.
    pub async fn delete_source(&self, source: &Source) -> Result<(), ChangeError> {
        let (source, app, at) = (source.id, source.app, self.clock.now());
        self.change(Change::DeleteSource { source, app, at }).await.map(drop)
    }

    fn token(&self) -> (zeroize::Zeroizing<String>, SourceToken) {
        let text = URL_SAFE_NO_PAD.encode(self.entropy.bytes::<TOKEN_BYTES>());
        let newest = SourceToken { digest: token_digest(&text), expires_at: None };
        (text.into(), newest)
    }

    fn with_new_timestamp(&self, source: Source) -> Source {
        Source { updated_at: self.time_after(source.updated_at), ..source }
    }
}

impl super::DirectoryCore {
    /// The secrets of a source.
    pub fn source_secrets(&self, source: &Source) -> Result<SourceSecrets, VaultError> {
        self.vault.open_source(source.org, source.id, &source.sealed)
    }

    /// The newest token of a source, the last part of its URL.
    pub fn source_token(&self, source: &Source) -> Result<String, VaultError> {
        self.source_secrets(source).map(|secrets| secrets.token.to_string())
    }

    /// The source that owns an application.
    pub async fn source_of(&self, app: AppId) -> Result<Option<SourceId>, aldaba_store::Error> {
        self.store.source_of_application(app).await
    }
}

/// Updates the caches after a change of a source was committed.
pub(super) struct SourceInvalidation {
    source_cache: SourceCache,
    /// Set if it was deleted.
    source_counters: Option<SourceCounters>,
    source: SourceId,
}

impl SourceInvalidation {
    pub(super) fn of(
        change: &Change,
        source_cache: &SourceCache,
        source_counters: &SourceCounters,
    ) -> Option<Self> {
        let (source, source_counters) = match change {
            Change::UpdateSource { source, .. } | Change::RotateSourceToken { source, .. } => {
                (source.id, None)
            }
            Change::DeleteSource { source, .. } | Change::StartErasure { source: Some(source), .. } => {
                (*source, Some(source_counters.clone()))
            }
            _ => return None,
        };
        Some(Self { source_cache: source_cache.clone(), source_counters, source })
    }

    pub(super) fn apply(self) {
        self.source_cache.forget(self.source);
        if let Some(source_counters) = self.source_counters {
            source_counters.forget(self.source);
        }
    }
}
