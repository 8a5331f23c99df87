//! What is secret about an endpoint, changed after its creation.

use super::{ChangeError, Directory};
use crate::wire::Identity;
use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::{Change, Endpoint};
use std::sync::Arc;

/// How often a change is tried again because another one came first.
const TRIES: usize = 5;

impl Directory {
    /// The client certificate that the endpoint's receiver is shown.
    pub fn identity(&self, endpoint: &Endpoint) -> Result<Option<Arc<Identity>>, ChangeError> {
        let secrets = self.vault.open(endpoint.app, endpoint.id, &endpoint.sealed)?;
        Ok(secrets.identity)
    }

    /// Sets or takes away the client certificate. No attempt that starts after this has returned
    /// uses the former one.
    pub async fn set_identity(
        &self,
        app: AppId,
        endpoint: EndpointId,
        identity: Option<Arc<Identity>>,
    ) -> Result<(), ChangeError> {
        for _ in 0..TRIES {
            let found = self.store.endpoint(app, endpoint.to_string()).await?.ok_or(ChangeError::NotFound)?;
            let mut secrets = self.vault.open(app, endpoint, &found.sealed)?;
            if identity.is_none() && secrets.identity.is_none() {
                return Ok(());
            }
            secrets.identity.clone_from(&identity);
            let sealed = self.vault.seal(app, endpoint, &secrets, &*self.entropy);
            let at = self.clock.now();
            let change = Change::ReplaceSecrets { app, endpoint, was: found.sealed, sealed, at };
            match self.change(change).await {
                // Somebody else was first: what they wrote must stay.
                Err(ChangeError::Unsettled) => {}
                other => return other.map(drop),
            }
        }
        Err(ChangeError::Unsettled)
    }
}
