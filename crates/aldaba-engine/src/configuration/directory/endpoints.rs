//! Endpoints, made, changed and deleted.

use super::{ChangeError, Directory, Made, Once, Repeat, loads};
use crate::EndpointHeaders;
use crate::configuration::vault::Secrets;
use aldaba_delivery::{ConditionCause, EndpointId, Health};
use aldaba_signature::SigningKey;
use aldaba_store::{ApplicationRef, Change, Endpoint, EndpointConfig, Fence, Notice};
use serde_json::json;
use std::time::Duration;

#[derive(Debug)]
pub struct NewEndpoint {
    /// The URL is vetted.
    pub config: EndpointConfig,
    pub credentials: Option<(String, String)>,
    pub headers: EndpointHeaders,
    /// `None`: one is made.
    pub key: Option<SigningKey>,
}

impl From<EndpointConfig> for NewEndpoint {
    fn from(config: EndpointConfig) -> Self {
        Self { config, credentials: None, headers: EndpointHeaders::default(), key: None }
    }
}

impl Directory {
    pub async fn create_endpoint(
        &self,
        which: ApplicationRef,
        new: NewEndpoint,
        once: Once,
    ) -> Result<Made<Endpoint>, ChangeError> {
        let application = self.store.application(which).await?.ok_or(ChangeError::NotFound)?;
        if self.policies.get(application.org, &new.config.policy).is_none() {
            return Err(ChangeError::UnknownPolicy(new.config.policy));
        }
        if let Some(name) =
            new.config.profile.as_ref().filter(|name| self.profiles.get(application.org, name).is_none())
        {
            return Err(ChangeError::UnknownProfile(name.clone()));
        }
        let (app, now) = (application.id, self.clock.now());
        let id = EndpointId::new(now, self.entropy.bytes());
        let key = new.key.unwrap_or_else(|| SigningKey::generate_hmac(self.entropy.bytes()));
        let secrets = Secrets { credentials: new.credentials, headers: new.headers, ..Secrets::new(key) };
        let endpoint = Endpoint {
            id,
            app,
            org: application.org,
            config: new.config,
            sealed: self.vault.seal(app, id, &secrets, &*self.entropy),
            created_at: now,
            updated_at: now,
            deleted: false,
            direct: false,
            health: Health::default(),
            last_error: None,
        };
        let change = Change::CreateEndpoint {
            endpoint: endpoint.clone(),
            idempotency: self.idempotency(once),
            notices: self.listeners.of_endpoint(&endpoint, "endpoint.created", json!({})),
        };
        let loads = self.filter_change(&endpoint, None).await?;
        match self.change_with(1, change.audit_action(), change, loads).await {
            Err(error) => Err(name_missing(error, endpoint)),
            Ok(Repeat::No | Repeat::Resumed { .. } | Repeat::Unchanged) => Ok(Made::New(endpoint)),
            Ok(Repeat::Of(bytes)) => {
                let id = EndpointId::from_bytes(bytes).to_string();
                let before = self.store.endpoint(app, id.clone()).await?;
                before.map(Made::Before).ok_or(ChangeError::MadeAndGone(id))
            }
        }
    }

    /// Gives an endpoint another configuration, in the place of the one that `current` is. What waits for
    /// it goes out under the new one from the next attempt on. `credentials`: `None` leaves them alone.
    /// `resume`: one that is not active becomes so. [`ChangeError::Unsettled`]: it is no longer what `current`
    /// is.
    pub async fn update_endpoint(
        &self,
        current: &Endpoint,
        new: NewEndpoint,
        credentials: Option<Option<(String, String)>>,
        resume: bool,
    ) -> Result<Endpoint, ChangeError> {
        let mut sealed = current.sealed.clone();
        if let Some(credentials) = credentials {
            let mut secrets = self.vault.open(current.app, current.id, &sealed)?;
            if secrets.credentials != credentials {
                secrets.credentials = credentials;
                sealed = self.vault.seal(current.app, current.id, &secrets, &*self.entropy);
            }
        }
        // Two changes never have the same moment: it tells one from the other.
        let updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let mut endpoint = Endpoint { config: new.config, sealed, updated_at, ..current.clone() };
        let mut fields = endpoint.config.changed_since(&current.config);
        // Credentials are given with it, and are no part of the configuration.
        if endpoint.sealed != current.sealed && !fields.contains(&"url") {
            fields.push("url");
        }
        if fields.is_empty() && endpoint.after_toggle(current, resume).is_none() {
            return Ok(current.clone());
        }
        let change = Change::UpdateEndpoint {
            endpoint: endpoint.clone(),
            was: Fence::from(current),
            resume,
            notices: self.notices_of_update(current, &endpoint, resume),
        };
        let action = change.audit_action().with_fields(&fields);
        let loads = self.filter_change(&endpoint, Some(current)).await?;
        match self.change_with(1, action, change, loads).await {
            Ok(_) => {
                if let Some((health, _)) = endpoint.after_controls_change(current, resume) {
                    endpoint.health = health;
                }
                Ok(endpoint)
            }
            Err(error) => Err(name_missing(error, endpoint)),
        }
    }

    pub async fn delete_endpoint(&self, endpoint: &Endpoint) -> Result<(), ChangeError> {
        let notices = self.listeners.of_endpoint(endpoint, "endpoint.deleted", json!({}));
        let filtered = endpoint.config.filter.is_some();
        let (app, endpoint, at) = (endpoint.app, endpoint.id, self.clock.now());
        let change = Change::DeleteEndpoint { app, endpoint, at, notices };
        let loads = if filtered { Some(self.loads.remove(app).await) } else { None };
        self.change_with(1, change.audit_action(), change, loads).await.map(drop)
    }

    /// What a change of an endpoint means for the filters of its application. Refused where they would be too much.
    async fn filter_change(
        &self,
        now: &Endpoint,
        before: Option<&Endpoint>,
    ) -> Result<Option<loads::Change>, ChangeError> {
        let filters = (now.config.filter.clone(), before.and_then(|before| before.config.filter.clone()));
        let which = ApplicationRef { org: now.org, key: now.app.to_string() };
        self.loads.replace(now.app, filters, async { self.store.tenant(which).await }).await
    }

    fn notices_of_update(&self, before: &Endpoint, after: &Endpoint, resume: bool) -> Vec<Notice> {
        let mut notices = self.listeners.of_endpoint(after, "endpoint.updated", json!({}));
        let became = match after.after_toggle(before, resume) {
            Some((_, ConditionCause::TurnedOff)) => {
                self.listeners.of_endpoint(after, "endpoint.disabled", json!({"trigger": "manual"}))
            }
            Some(_) => self.listeners.of_endpoint(after, "endpoint.enabled", json!({})),
            None => Vec::new(),
        };
        notices.extend(became);
        notices
    }
}

/// What the endpoint names was there a moment ago; the store does not say its name again.
fn name_missing(error: ChangeError, endpoint: Endpoint) -> ChangeError {
    match error {
        ChangeError::UnknownPolicy(_) => ChangeError::UnknownPolicy(endpoint.config.policy),
        ChangeError::UnknownProfile(_) => {
            ChangeError::UnknownProfile(endpoint.config.profile.unwrap_or_default())
        }
        other => other,
    }
}
