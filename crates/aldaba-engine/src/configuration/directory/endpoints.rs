//! Creates, changes and deletes endpoints.

use super::{ChangeError, ChangeOutcome, CreateOutcome, Directory, FilterReservation, IdempotencyDigest};
use crate::EndpointHeaders;
use crate::configuration::vault::Secrets;
use aldaba_delivery::{ConditionCause, EndpointId, Health};
use aldaba_signature::SigningKey;
use aldaba_store::{ApplicationRef, Change, Endpoint, EndpointConfig, Fence, Notice};
use serde_json::json;
use std::time::Duration;

#[derive(Debug)]
pub struct NewEndpoint {
    /// The URL has been checked.
    pub config: EndpointConfig,
    pub credentials: Option<(String, String)>,
    pub headers: EndpointHeaders,
    /// `None`: one is generated.
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
        once: IdempotencyDigest,
    ) -> Result<CreateOutcome<Endpoint>, ChangeError> {
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
            notices: self.listeners.endpoint_notices(&endpoint, "endpoint.created", json!({})),
        };
        let filter_budgets = self.reserve_filter(&endpoint, None).await?;
        match self.change_with(1, change.audit_action(), change, filter_budgets).await {
            Err(error) => Err(name_missing(error, endpoint)),
            Ok(ChangeOutcome::Done | ChangeOutcome::Resumed { .. } | ChangeOutcome::Unchanged) => {
                Ok(CreateOutcome::Created(endpoint))
            }
            Ok(ChangeOutcome::RepeatOf(bytes)) => {
                let id = EndpointId::from_bytes(bytes).to_string();
                let before = self.store.endpoint(app, id.clone()).await?;
                before.map(CreateOutcome::Existing).ok_or(ChangeError::MadeAndGone(id))
            }
        }
    }

    /// Replaces the configuration that `current` has. Pending deliveries use the new one from their next
    /// attempt on. `credentials`: `None` keeps them. `resume`: activates an endpoint that is not active.
    /// [`ChangeError::Unsettled`]: the endpoint changed meanwhile.
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
        // Two changes never have the same time, which identifies a version.
        let updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let mut endpoint = Endpoint { config: new.config, sealed, updated_at, ..current.clone() };
        let mut fields = endpoint.config.changed_since(&current.config);
        // Credentials come in the URL but are not part of the configuration.
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
        let filter_budgets = self.reserve_filter(&endpoint, Some(current)).await?;
        match self.change_with(1, action, change, filter_budgets).await {
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
        let notices = self.listeners.endpoint_notices(endpoint, "endpoint.deleted", json!({}));
        let filtered = endpoint.config.filter.is_some();
        let (app, endpoint, at) = (endpoint.app, endpoint.id, self.clock.now());
        let change = Change::DeleteEndpoint { app, endpoint, at, notices };
        let filter_budgets = if filtered { Some(self.filter_budgets.remove(app).await) } else { None };
        self.change_with(1, change.audit_action(), change, filter_budgets).await.map(drop)
    }

    /// Reserves the match cost of a changed filter. Refused if it exceeds the application's budget.
    async fn reserve_filter(
        &self,
        now: &Endpoint,
        before: Option<&Endpoint>,
    ) -> Result<Option<FilterReservation>, ChangeError> {
        let filters = (now.config.filter.clone(), before.and_then(|before| before.config.filter.clone()));
        let which = ApplicationRef { org: now.org, key: now.app.to_string() };
        self.filter_budgets.replace(now.app, filters, async { self.store.tenant(which).await }).await
    }

    fn notices_of_update(&self, before: &Endpoint, after: &Endpoint, resume: bool) -> Vec<Notice> {
        let mut notices = self.listeners.endpoint_notices(after, "endpoint.updated", json!({}));
        let became = match after.after_toggle(before, resume) {
            Some((_, ConditionCause::TurnedOff)) => {
                self.listeners.endpoint_notices(after, "endpoint.disabled", json!({"trigger": "manual"}))
            }
            Some(_) => self.listeners.endpoint_notices(after, "endpoint.enabled", json!({})),
            None => Vec::new(),
        };
        notices.extend(became);
        notices
    }
}

/// Adds the name of the missing policy or profile, which existed a moment ago; the store does not return it.
fn name_missing(error: ChangeError, endpoint: Endpoint) -> ChangeError {
    match error {
        ChangeError::UnknownPolicy(_) => ChangeError::UnknownPolicy(endpoint.config.policy),
        ChangeError::UnknownProfile(_) => {
            ChangeError::UnknownProfile(endpoint.config.profile.unwrap_or_default())
        }
        other => other,
    }
}
