//! Taking note of alerts.

use super::{ChangeError, Directory};
use aldaba_delivery::{AlertId, OrgId};
use aldaba_store::{ActorIdentity, Change};

impl Directory {
    /// Says that the actor has taken note of an alert. One that is resolved, or that was noted before, stays as it is.
    pub async fn acknowledge_alert(&self, org: OrgId, alert: AlertId) -> Result<(), ChangeError> {
        let identity = &self.actor.identity;
        let name = match identity {
            ActorIdentity::Key { name, .. } => Some(name.as_str()),
            ActorIdentity::OrganizationToken { name } => name.as_deref(),
            ActorIdentity::PortalToken { session, .. } => session.as_deref(),
            ActorIdentity::CommandLine | ActorIdentity::Program => None,
        };
        let kind = identity.kind().name();
        let by = name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"));
        let at = self.clock.now();
        self.change(Change::AcknowledgeAlert { org, alert, at, by }).await.map(drop)
    }
}
