//! Changes the secrets of existing endpoints.

use super::{ChangeError, ChangeOutcome, Directory, DirectoryCore, IdempotencyDigest};
use crate::configuration::vault::Secrets;
use crate::wire::Identity;
use crate::{EndpointHeaders, HeaderProblem};
use aldaba_delivery::Timestamp;
use aldaba_signature::SigningKey;
use aldaba_store::{AuditAction, Change, Endpoint, FieldChange};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A new signing key, and for how long the current one still signs.
#[derive(Clone, Debug)]
pub struct KeyRotation {
    /// `None`: one of the same kind is generated.
    pub key: Option<SigningKey>,
    pub grace: Duration,
}

impl KeyRotation {
    /// The most former keys that still sign.
    pub const MAX_OLD_KEYS: usize = 10;
}

/// A public key, and until when it signs if it was replaced.
pub type PublicKey = ([u8; 32], Option<Timestamp>);

impl DirectoryCore {
    /// The signing secret as its owner may see it: the public key for asymmetric ones.
    pub fn shown_secret(&self, endpoint: &Endpoint) -> Result<String, ChangeError> {
        Ok(self.secrets(endpoint)?.key.public_text())
    }

    /// The public keys of the asymmetric keys that sign now.
    pub fn public_keys(&self, endpoint: &Endpoint) -> Result<Vec<PublicKey>, ChangeError> {
        let (secrets, now) = (self.secrets(endpoint)?, self.trust.believed(self.clock.now()));
        let old = secrets.old_keys.iter().filter(|(_, until)| *until > now);
        let old = old.map(|(key, until)| (key, Some(*until)));
        let all = std::iter::once((&secrets.key, None)).chain(old);
        Ok(all.filter_map(|(key, until)| Some((key.public_bytes()?, until))).collect())
    }

    /// The client certificate for the endpoint's receiver.
    pub fn identity(&self, endpoint: &Endpoint) -> Result<Option<Arc<Identity>>, ChangeError> {
        Ok(self.secrets(endpoint)?.identity)
    }

    pub fn headers(&self, endpoint: &Endpoint) -> Result<EndpointHeaders, ChangeError> {
        Ok(self.secrets(endpoint)?.headers)
    }

    fn secrets(&self, endpoint: &Endpoint) -> Result<Secrets, ChangeError> {
        Ok(self.vault.open(endpoint.app, endpoint.id, &endpoint.sealed)?)
    }
}

impl Directory {
    /// Sets or removes the client certificate. Attempts that start after this returns do not use the former
    /// one.
    pub async fn set_identity(
        &self,
        endpoint: &Endpoint,
        identity: Option<Arc<Identity>>,
    ) -> Result<(), ChangeError> {
        let set = |secrets: &mut Secrets, _: Timestamp| {
            let changes = identity.is_some() || secrets.identity.is_some();
            secrets.identity.clone_from(&identity);
            Ok(changes)
        };
        self.change_secrets("endpoint.mtls.update", endpoint, (None, false), set).await.map(drop)
    }

    /// Replaces the custom headers from the next attempt on. `change` gets the current ones.
    pub async fn set_headers(
        &self,
        endpoint: &Endpoint,
        change: impl Fn(&EndpointHeaders) -> Result<EndpointHeaders, Vec<HeaderProblem>>,
    ) -> Result<Result<(), Vec<HeaderProblem>>, ChangeError> {
        let mut refused = Ok(());
        let set = |secrets: &mut Secrets, _: Timestamp| match change(&secrets.headers) {
            Ok(headers) => {
                refused = Ok(());
                let changes = secrets.headers != headers;
                secrets.headers = headers;
                Ok(changes)
            }
            Err(problems) => {
                refused = Err(problems);
                Ok(false)
            }
        };
        self.change_secrets("endpoint.headers.update", endpoint, (None, false), set).await?;
        Ok(refused)
    }

    /// Rotates the signing key from the next attempt on. Returns it as its owner may see it.
    pub async fn rotate_key(
        &self,
        endpoint: &Endpoint,
        rotation: KeyRotation,
        once: IdempotencyDigest,
    ) -> Result<String, ChangeError> {
        let next = |current: &SigningKey| match (&rotation.key, current.is_asymmetric()) {
            (Some(key), _) => key.clone(),
            (None, true) => SigningKey::generate_ed25519(self.entropy.bytes()),
            (None, false) => SigningKey::generate_hmac(self.entropy.bytes()),
        };
        let rotate = |secrets: &mut Secrets, now: Timestamp| {
            secrets.old_keys.retain(|(_, until)| *until > now);
            let next = next(&secrets.key);
            let former = std::mem::replace(&mut secrets.key, next);
            if !rotation.grace.is_zero() {
                secrets.old_keys.push((former, now + rotation.grace));
            }
            if secrets.old_keys.len() > KeyRotation::MAX_OLD_KEYS {
                return Err(ChangeError::TooManyKeys);
            }
            Ok(true)
        };
        let secrets = self.change_secrets("endpoint.secret.rotate", endpoint, (once, true), rotate).await?;
        Ok(secrets.key.public_text())
    }

    /// Reads the secrets, changes them and writes them back if they differ. Returns the result. `notifies`:
    /// sends an operational webhook.
    async fn change_secrets(
        &self,
        action: &'static str,
        of: &Endpoint,
        (once, notifies): (IdempotencyDigest, bool),
        mut change: impl FnMut(&mut Secrets, Timestamp) -> Result<bool, ChangeError>,
    ) -> Result<Secrets, ChangeError> {
        let (app, endpoint) = (of.app, of.id);
        let mut retry = self.conflict_retry();
        loop {
            let found = self.store.endpoint(app, endpoint.to_string()).await?.ok_or(ChangeError::NotFound)?;
            let (before, at) = (self.secrets(&found)?, self.clock.now());
            let mut secrets = before.clone();
            if !change(&mut secrets, self.trust.believed(at))? {
                return Ok(secrets);
            }
            let sealed = self.vault.seal(app, endpoint, &secrets, &*self.entropy);
            let idempotency = self.idempotency(once);
            let notices = match notifies {
                true => self.listeners.endpoint_notices(&found, "endpoint.updated", json!({})),
                false => Vec::new(),
            };
            let change = Change::ReplaceSecrets {
                app,
                endpoint,
                was: found.sealed,
                sealed,
                certificate_expires_at: secrets.identity.as_ref().and_then(|identity| identity.expires_at()),
                at,
                idempotency,
                notices,
            };
            let action = AuditAction { name: action.into(), ..change.audit_action() }
                .with_changes(changes(&before, &secrets));
            match self.change_as(action, change).await {
                // A concurrent change came first and must be kept.
                Err(ChangeError::Unsettled) => retry.wait().await?,
                Ok(ChangeOutcome::RepeatOf(_)) => {
                    let now = self.store.endpoint(app, endpoint.to_string()).await?;
                    return self.secrets(&now.ok_or(ChangeError::NotFound)?);
                }
                other => return other.map(|_| secrets),
            }
        }
    }
}

/// The names of changed secrets, without values.
fn changes(before: &Secrets, after: &Secrets) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    if before.key.public_text() != after.key.public_text() {
        changes.push(FieldChange::secret("secret", true, true));
    }
    let is_same = |one: &Option<Arc<Identity>>, other: &Option<Arc<Identity>>| match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    };
    if !is_same(&before.identity, &after.identity) {
        changes.push(FieldChange::secret("mtls", before.identity.is_some(), after.identity.is_some()));
    }
    let (was, is) = (before.headers.by_name(), after.headers.by_name());
    let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    let headers = names.into_iter().filter(|name| was.get(*name) != is.get(*name)).map(|name| {
        FieldChange::secret(format!("headers.{name}"), was.contains_key(name), is.contains_key(name))
    });
    changes.extend(headers);
    changes
}
