//! API keys and revoked tokens, all in memory: authentication costs a lookup, and a revocation applies to
//! the next request.

mod api_keys;
mod applications;
mod new_key;
mod revocations;
mod use_writer;

pub use api_keys::{ApiKeys, CachedKey};
pub(crate) use applications::KnownApplications;
pub use new_key::{KEY_PREFIX, NewKey, check_key_name, digest_of, make_key};
pub use revocations::{MAX_SESSION, Revocations};
pub(crate) use use_writer::KeyUseWriter;

use aldaba_store::{Change, Error, RemovedCredential, Store};

/// The cached credentials of the store. Clones share the cache.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub keys: ApiKeys,
    pub revocations: Revocations,
    pub(crate) applications: KnownApplications,
}

impl Credentials {
    pub(crate) async fn read(store: &dyn Store) -> Result<Self, Error> {
        let credentials = Self::default();
        for key in store.api_keys().await? {
            credentials.keys.put(key);
        }
        for token in store.revoked_tokens().await? {
            credentials.revocations.add_token(token);
        }
        for cut in store.portal_expiries().await? {
            credentials.revocations.add_cut(cut, None);
        }
        Ok(credentials)
    }

    /// Drops what retention removed from the store.
    pub(crate) fn forget(&self, removed: &[RemovedCredential]) {
        for item in removed {
            match item {
                RemovedCredential::RevokedToken(mark) => self.revocations.forget_token(mark),
                RemovedCredential::PortalExpiry(expiry) => self.revocations.forget_cut(expiry),
                RemovedCredential::Application(app) => self.revocations.forget_application(*app),
            }
        }
    }
}

/// Updates the cache after a change was committed.
pub(crate) struct CredentialsInvalidation(Credentials, Change);

impl CredentialsInvalidation {
    pub(crate) fn of(change: &Change, credentials: &Credentials) -> Option<Self> {
        let concerned = matches!(
            change,
            Change::DeleteApplication { .. }
                | Change::DeleteSource { .. }
                | Change::StartErasure { .. }
                | Change::CreateApiKey { .. }
                | Change::RenameApiKey { .. }
                | Change::RevokeApiKey { .. }
                | Change::EndPortalTokens { .. }
                | Change::RevokeToken { .. }
        );
        concerned.then(|| Self(credentials.clone(), change.clone()))
    }

    pub(crate) fn apply(self) {
        let Self(Credentials { keys, revocations, applications }, change) = self;
        match change {
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => {
                keys.remove_of(app);
                applications.remove(app);
            }
            Change::StartErasure { erasure, .. } => {
                keys.remove_of(erasure.app);
                applications.remove(erasure.app);
            }
            Change::CreateApiKey { key, .. } => keys.put(key),
            Change::RenameApiKey { id, name, .. } => keys.rename(id, name),
            Change::RevokeApiKey { id, .. } => keys.remove(id),
            Change::EndPortalTokens { cuts, at, .. } => {
                cuts.into_iter().for_each(|cut| revocations.add_cut(cut, Some(at)));
            }
            Change::RevokeToken { token } => revocations.add_token(token),
            _ => {}
        }
    }
}
