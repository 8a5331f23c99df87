//! Applications, made, changed and deleted.

use super::{ChangeError, Core, Directory, Made, Once, Repeat};
use aldaba_delivery::{AppId, OrgId};
use aldaba_store::{Application, ApplicationRef, Change};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct NewApplication {
    pub org: OrgId,
    pub uid: Option<String>,
    pub name: String,
    pub throttle_rate: Option<u16>,
    /// A JSON object of strings.
    pub metadata: String,
}

impl Core {
    /// With an id of its own; nothing is stored.
    pub(crate) fn new_application(&self, new: NewApplication) -> Application {
        let now = self.clock.now();
        Application {
            id: AppId::new(now, self.entropy.bytes()),
            org: new.org,
            uid: new.uid,
            name: new.name,
            throttle_rate: new.throttle_rate,
            alert_email: None,
            metadata: new.metadata,
            created_at: now,
            updated_at: now,
        }
    }
}

impl Directory {
    pub async fn create_application(
        &self,
        new: NewApplication,
        once: Once,
    ) -> Result<Made<Application>, ChangeError> {
        let application = self.new_application(new);
        let change = Change::CreateApplication {
            application: application.clone(),
            idempotency: self.idempotency(once),
        };
        match self.change(change).await? {
            Repeat::No | Repeat::Resumed { .. } | Repeat::Unchanged => Ok(Made::New(application)),
            Repeat::Of(bytes) => {
                let id = AppId::from_bytes(bytes).to_string();
                let which = ApplicationRef { org: application.org, key: id.clone() };
                let before = self.store.application(which).await?;
                before.map(Made::Before).ok_or(ChangeError::MadeAndGone(id))
            }
        }
    }

    /// Gives an application other values, in the place of those that `current` has.
    /// [`ChangeError::Unsettled`]: it is no longer what `current` is.
    pub async fn update_application(
        &self,
        current: &Application,
        new: NewApplication,
    ) -> Result<Application, ChangeError> {
        let NewApplication { org, uid, name, throttle_rate, metadata } = new;
        let application = Application { org, uid, name, throttle_rate, metadata, ..current.clone() };
        self.replace_application(current, application).await
    }

    /// Where the people of an application want to be told when something is wrong.
    pub async fn set_alert_email(
        &self,
        current: &Application,
        alert_email: Option<String>,
    ) -> Result<Application, ChangeError> {
        self.replace_application(current, Application { alert_email, ..current.clone() }).await
    }

    async fn replace_application(
        &self,
        current: &Application,
        mut application: Application,
    ) -> Result<Application, ChangeError> {
        let fields = application.changed_since(current);
        if fields.is_empty() {
            return Ok(application);
        }
        // Two changes never have the same moment: it tells one from the other.
        application.updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let change = Change::UpdateApplication { application: application.clone(), was: current.updated_at };
        let action = change.audit_action().with_fields(&fields);
        self.change_as(action, change).await?;
        Ok(application)
    }

    pub async fn delete_application(&self, which: ApplicationRef) -> Result<(), ChangeError> {
        let application = self.store.application(which).await?.ok_or(ChangeError::NotFound)?;
        let app = application.id;
        let change = Change::DeleteApplication { app, at: self.clock.now() };
        match self.change(change).await {
            Err(ChangeError::InUse(_)) => {
                let owner = self.store.source_of_application(app).await?;
                Err(owner.map_or(ChangeError::Unsettled, ChangeError::OfSource))
            }
            changed => changed.map(drop),
        }
    }
}
