//! Who may speak: API keys and ended tokens, all in memory, so that a request costs a look and a revocation
//! holds for the next one.

mod applications;
mod keys;
mod new_key;
mod revocations;
mod uses;

pub(crate) use applications::Applications;
pub use keys::{HeldKey, Keys};
pub use new_key::{KEY_PREFIX, NewKey, check_key_name, digest_of, make_key};
pub use revocations::{LONGEST_SESSION, Revocations};
pub(crate) use uses::Uses;

use aldaba_store::{Change, Error, RemovedCredential, Store};

/// What the store has, as memory keeps it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub keys: Keys,
    pub revocations: Revocations,
    pub(crate) applications: Applications,
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

    /// What was removed from the store is not needed here either.
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

/// What a change means for the memory, once it is on disk.
pub(crate) struct News(Credentials, Change);

impl News {
    pub(crate) fn of(change: &Change, credentials: &Credentials) -> Option<Self> {
        let concerned = matches!(
            change,
            Change::DeleteApplication { .. }
                | Change::DeleteSource { .. }
                | Change::CreateApiKey { .. }
                | Change::RenameApiKey { .. }
                | Change::RevokeApiKey { .. }
                | Change::EndPortalTokens { .. }
                | Change::RevokeToken { .. }
        );
        concerned.then(|| Self(credentials.clone(), change.clone()))
    }

    pub(crate) fn take_effect(self) {
        let Self(Credentials { keys, revocations, applications }, change) = self;
        match change {
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => {
                keys.remove_of(app);
                applications.remove(app);
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
