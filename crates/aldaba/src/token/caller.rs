//! Who is asking, and what they may do.

use super::capability::{Capabilities, Capability};
use crate::api::Access;
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_engine::{CachedKey, management};
use aldaba_store::{Actor, EventType, KeyScope};
use std::sync::Arc;

/// The organization or application that a token or a key speaks for.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    org: OrgId,
    app: Option<AppId>,
    rights: Rights,
    /// `None`: the caller sees the event types of all flags.
    feature_flags: Option<Arc<[String]>>,
    actor: Arc<Actor>,
    shown: CallerCredential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    Scope(KeyScope),
    /// What people in an application's portal may do.
    Portal(Capabilities),
}

/// The credential that the caller has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerCredential {
    Key {
        id: ApiKeyId,
        expires_at: Option<Timestamp>,
    },
    /// A digest of the signed part, and when the token expires.
    Token {
        mark: [u8; 32],
        expires_at: Option<Timestamp>,
    },
}

impl Caller {
    pub(super) fn of_organization(actor: Actor, shown: CallerCredential) -> Self {
        let (org, rights) = (actor.org, Rights::Scope(KeyScope::Admin));
        Self { org, app: None, rights, feature_flags: None, actor: Arc::new(actor), shown }
    }

    pub(super) fn of_portal(
        actor: Actor,
        app: AppId,
        capabilities: Capabilities,
        feature_flags: Vec<String>,
        shown: CallerCredential,
    ) -> Self {
        let (org, rights, feature_flags) =
            (actor.org, Rights::Portal(capabilities), Some(feature_flags.into()));
        Self { org, app: Some(app), rights, feature_flags, actor: Arc::new(actor), shown }
    }

    pub(super) fn of_key(held: &CachedKey) -> Self {
        let key = held.key();
        Self {
            org: key.org,
            app: key.app,
            rights: Rights::Scope(key.scope),
            feature_flags: None,
            actor: held.actor().clone(),
            shown: CallerCredential::Key { id: key.id, expires_at: key.expires_at },
        }
    }

    /// The same caller in the management organization, which keeps what is an organization's own.
    pub(crate) fn at_management(&self) -> Self {
        Self { org: management(), ..self.clone() }
    }

    pub(crate) fn org(&self) -> OrgId {
        self.org
    }

    /// The only application that the caller is for.
    pub(crate) fn app(&self) -> Option<AppId> {
        self.app
    }

    /// For the audit log.
    pub(crate) fn actor(&self) -> &Arc<Actor> {
        &self.actor
    }

    pub(crate) fn rights(&self) -> Rights {
        self.rights
    }

    pub(crate) fn shown(&self) -> CallerCredential {
        self.shown
    }

    /// The feature flags whose event types the caller sees. `None`: all of them.
    pub(crate) fn feature_flags(&self) -> Option<&[String]> {
        self.feature_flags.as_deref()
    }

    /// Whether the caller sees an event type: all callers see those without flags; of the others one flag is enough.
    pub(crate) fn sees(&self, event_type: &EventType) -> bool {
        let flags = &event_type.feature_flags;
        let has = |given: &[String]| flags.is_empty() || flags.iter().any(|flag| given.contains(flag));
        self.feature_flags().is_none_or(has)
    }

    /// Whether the caller speaks for an application.
    pub(crate) fn speaks_for(&self, org: OrgId, app: AppId) -> bool {
        self.org == org && self.app.is_none_or(|only| only == app)
    }

    /// Whether the caller may use a route; if not, why.
    pub(crate) fn may(&self, access: Access) -> Result<(), String> {
        match self.rights {
            _ if access == Access::Known => Ok(()),
            Rights::Scope(scope) => self.in_scope(scope, access),
            Rights::Portal(capabilities) => in_portal(capabilities, access),
        }
    }

    fn in_scope(&self, scope: KeyScope, access: Access) -> Result<(), String> {
        let allowed = match scope {
            KeyScope::Admin => true,
            KeyScope::Send => matches!(access, Access::Send | Access::Precheck),
            KeyScope::Read => matches!(access, Access::Read | Access::ReadOrganization | Access::Precheck),
        };
        if !allowed {
            let may = match scope {
                KeyScope::Send => "may send messages and nothing else",
                KeyScope::Read | KeyScope::Admin => "may look at things, secrets apart, and nothing else",
            };
            return Err(format!("The key that was sent {may}: its scope is `{}`", scope.name()));
        }
        if self.app.is_some() && is_the_organizations(access) {
            return Err(
                "This needs a key for the whole organization; the one sent is for one application".into()
            );
        }
        Ok(())
    }
}

/// Whether a route concerns more than one application.
fn is_the_organizations(access: Access) -> bool {
    matches!(access, Access::ReadOrganization | Access::Administer | Access::Govern)
}

fn in_portal(capabilities: Capabilities, access: Access) -> Result<(), String> {
    let enough: &[Capability] = match access {
        Access::Open | Access::Known => return Ok(()),
        Access::Read => &[Capability::ViewBase],
        Access::ReadSecrets => {
            &[Capability::ViewEndpointSecret, Capability::ManageEndpointSecret, Capability::ManageEndpoint]
        }
        Access::ManageSecrets => &[Capability::ManageEndpointSecret, Capability::ManageEndpoint],
        Access::Manage => &[Capability::ManageEndpoint],
        Access::Attempt => &[Capability::CreateAttempts],
        Access::Send
        | Access::Precheck
        | Access::Erase
        | Access::ReadOrganization
        | Access::Administer
        | Access::Admit
        | Access::Govern => {
            return Err("This needs an organization's token; the one sent is an application's".into());
        }
    };
    if enough.iter().any(|capability| capabilities.has(*capability)) {
        return Ok(());
    }
    let names: Vec<_> = enough.iter().map(|capability| format!("`{}`", capability.name())).collect();
    Err(format!("The token lacks the capability {}", names.join(" or ")))
}
