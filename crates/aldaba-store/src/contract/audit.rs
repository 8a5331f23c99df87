//! Who changed what: one row for each change that somebody made, in the commit of the change.

mod values;

pub use values::{AuditSubject, FieldChange, FieldValues, MASK};
pub(crate) use values::{audited, audited_config, stored};

use crate::operations::audit;
use crate::{Change, Order, Page};
use aldaba_delivery::{ApiKeyId, AppId, AuditId, EndpointId, GateScope, OrgId, Timestamp};
use std::borrow::Cow;
use std::fmt::Display;

/// Who makes a change, and in whose name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub org: OrgId,
    pub identity: ActorIdentity,
}

impl Actor {
    pub fn command_line(org: OrgId) -> Self {
        Self { org, identity: ActorIdentity::CommandLine }
    }

    pub fn program(org: OrgId) -> Self {
        Self { org, identity: ActorIdentity::Program }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorIdentity {
    /// As it was called when it was used.
    Key { id: ApiKeyId, prefix: String, name: String },
    /// A token that is signed with the server's secret, for the whole organization. It may have a name.
    OrganizationToken { name: Option<String> },
    /// The same for one application.
    PortalToken { app: AppId, session: Option<String> },
    /// Somebody with access to the data folder.
    CommandLine,
    /// A program that has the engine inside.
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorKind {
    Key,
    OrganizationToken,
    PortalToken,
    CommandLine,
    Program,
}

impl ActorKind {
    pub const ALL: [Self; 5] =
        [Self::Key, Self::OrganizationToken, Self::PortalToken, Self::CommandLine, Self::Program];

    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "api_key",
            Self::OrganizationToken => "organization_token",
            Self::PortalToken => "portal_token",
            Self::CommandLine => "command_line",
            Self::Program => "program",
        }
    }
}

impl ActorIdentity {
    pub fn kind(&self) -> ActorKind {
        match self {
            Self::Key { .. } => ActorKind::Key,
            Self::OrganizationToken { .. } => ActorKind::OrganizationToken,
            Self::PortalToken { .. } => ActorKind::PortalToken,
            Self::CommandLine => ActorKind::CommandLine,
            Self::Program => ActorKind::Program,
        }
    }
}

/// What was done, without who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAction {
    /// What kind of thing, and what became of it: `endpoint.update`.
    pub name: Cow<'static, str>,
    pub app: Option<AppId>,
    pub endpoint: Option<EndpointId>,
    /// The id or the name of the thing. Empty: it was about several.
    pub resource: String,
    /// The fields that have another value now, where that is known.
    pub fields: Vec<String>,
    /// Their values, of those that have any: see [`AuditEntry::with_values_of`].
    pub changes: Vec<FieldChange>,
}

impl AuditAction {
    pub fn new(name: &'static str, resource: &(impl Display + ?Sized)) -> Self {
        let (app, endpoint, fields, changes) = (None, None, Vec::new(), Vec::new());
        Self { name: name.into(), app, endpoint, resource: resource.to_string(), fields, changes }
    }

    /// The kind of thing: what stands before the first point of an action.
    pub fn kind(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// With changes that only the caller can name: those of secrets.
    #[must_use]
    pub fn with_changes(self, changes: Vec<FieldChange>) -> Self {
        Self { fields: changes.iter().map(|change| change.field.clone()).collect(), changes, ..self }
    }

    #[must_use]
    pub fn of_app(self, app: AppId) -> Self {
        Self { app: Some(app), ..self }
    }

    #[must_use]
    pub fn with_fields(self, fields: &[&str]) -> Self {
        Self { fields: fields.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    #[must_use]
    pub fn at_endpoint(self, endpoint: EndpointId) -> Self {
        Self { endpoint: Some(endpoint), ..self }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// It has the time.
    pub id: AuditId,
    pub actor: Actor,
    pub action: AuditAction,
    /// How many things it was about. The store counts, where it is a write that may leave some of them alone.
    pub count: u32,
}

impl AuditEntry {
    pub fn new(now: Timestamp, random: [u8; 15], actor: &Actor, action: AuditAction) -> Self {
        Self { id: AuditId::new(now, random), actor: actor.clone(), action, count: 1 }
    }

    pub fn at(&self) -> Timestamp {
        self.id.created_at()
    }
}

/// Whose changes a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorFilter {
    Kind(ActorKind),
    Key(ApiKeyId),
    /// Portal tokens of an application.
    Portal(AppId),
}

impl ActorFilter {
    pub fn takes(self, who: &ActorIdentity) -> bool {
        match (self, who) {
            (Self::Kind(kind), who) => kind == who.kind(),
            (Self::Key(key), ActorIdentity::Key { id, .. }) => key == *id,
            (Self::Portal(app), ActorIdentity::PortalToken { app: of, .. }) => app == *of,
            (Self::Key(_) | Self::Portal(_), _) => false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct AuditQuery {
    pub org: OrgId,
    pub app: Option<AppId>,
    pub endpoint: Option<EndpointId>,
    /// The kind of thing that was changed, such as `endpoint`.
    pub kind: Option<String>,
    /// The id or the name of what was changed.
    pub resource: Option<String>,
    /// A field that has another value since.
    pub field: Option<String>,
    pub action: Option<String>,
    pub actor: Option<ActorFilter>,
    /// Rows of this moment and later.
    pub after: Option<Timestamp>,
    /// Rows from before this moment.
    pub before: Option<Timestamp>,
    pub page: Page<AuditId>,
    pub order: Order,
    /// How many rows to look at, at most.
    pub most: usize,
}

impl AuditQuery {
    /// The rows between these two, without them. Nobody has an id whose random part is nothing but zeros.
    pub fn bounds(&self) -> (AuditId, AuditId) {
        let from = self.after.map_or(AuditId::from_bytes([0; 20]), AuditId::first_at);
        let until = self.before.map_or(AuditId::MAX, AuditId::first_at);
        match (self.order, self.page.after) {
            (_, None) => (from, until),
            (Order::Ascending, Some(cursor)) => (from.max(cursor), until),
            (Order::Descending, Some(cursor)) => (from, until.min(cursor)),
        }
    }

    pub fn takes(&self, entry: &AuditEntry) -> bool {
        let action = &entry.action;
        self.app.is_none_or(|app| action.app == Some(app))
            && self.endpoint.is_none_or(|endpoint| action.endpoint == Some(endpoint))
            && self.resource.as_ref().is_none_or(|resource| *resource == action.resource)
            && self.kind.as_ref().is_none_or(|kind| kind == action.kind())
            && self.action.as_ref().is_none_or(|name| *name == action.name)
            && self.field.as_ref().is_none_or(|field| action.fields.contains(field))
            && self.actor.is_none_or(|actor| actor.takes(&entry.actor.identity))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub found: Vec<AuditEntry>,
    /// Looking was given up here, and may go on from here.
    pub stopped: Option<AuditId>,
}

contract! {
    pub trait Audits {
        reads {
            walk audit(query: AuditQuery) -> AuditPage = |reading, slice| audit::list(reading, slice, &query);
        }
    }
}

impl Change {
    /// The application that it is about, if it is about one. Its answers come in order with all others about that application.
    pub fn app(&self) -> Option<AppId> {
        match self {
            Self::CreateApplication { application, .. } | Self::UpdateApplication { application, .. } => {
                Some(application.id)
            }
            Self::CreateEndpoint { endpoint, .. } | Self::UpdateEndpoint { endpoint, .. } => {
                Some(endpoint.app)
            }
            Self::StartReplay { replay, .. } => Some(replay.app),
            Self::StartErasure { erasure, .. } => Some(erasure.app),
            Self::CreateSource { source, .. }
            | Self::UpdateSource { source, .. }
            | Self::RotateSourceToken { source, .. } => Some(source.app),
            Self::DeleteApplication { app, .. }
            | Self::ResumeEndpoint { app, .. }
            | Self::DeleteEndpoint { app, .. }
            | Self::ReplaceSecrets { app, .. }
            | Self::ExpungeMessage { app, .. }
            | Self::ExpungeAttempt { app, .. }
            | Self::GrantPortalAccess { app }
            | Self::NoteExport { app }
            | Self::EndPortalTokens { app, .. }
            | Self::DeleteSource { app, .. } => Some(*app),
            _ => None,
        }
    }

    /// How the change is called in the audit log, and what it is about.
    pub fn audit_action(&self) -> AuditAction {
        let action = |name, resource: &dyn Display| AuditAction {
            app: self.app(),
            ..AuditAction::new(name, resource)
        };
        let of_endpoint = |name, endpoint: EndpointId| action(name, &endpoint).at_endpoint(endpoint);
        match self {
            Self::CreateApplication { application, .. } => action("application.create", &application.id),
            Self::UpdateApplication { application, .. } => action("application.update", &application.id),
            Self::DeleteApplication { app, .. } => action("application.delete", app),
            Self::CreateEndpoint { endpoint, .. } => of_endpoint("endpoint.create", endpoint.id),
            Self::UpdateEndpoint { endpoint, .. } => of_endpoint("endpoint.update", endpoint.id),
            Self::ResumeEndpoint { endpoint, .. } => of_endpoint("endpoint.resume", *endpoint),
            Self::DeleteEndpoint { endpoint, .. } => of_endpoint("endpoint.delete", *endpoint),
            Self::ReplaceSecrets { endpoint, .. } => of_endpoint("endpoint.secrets", *endpoint),
            Self::ReleaseGates { gates } => {
                let origin = gates.first().map_or("", |key| key.origin.as_str());
                let app = gates.iter().find_map(|key| match key.scope {
                    GateScope::Host => None,
                    GateScope::Application(app) => Some(app),
                });
                AuditAction { app, ..action("host.release", &origin) }
            }
            Self::StartReplay { replay, .. } => {
                action("replay.start", &replay.id).at_endpoint(replay.endpoint)
            }
            Self::CancelReplay { replay, .. } => action("replay.cancel", replay),
            Self::ExpungeMessage { message, .. } => action("message.expunge", message),
            Self::ExpungeAttempt { attempt, .. } => action("attempt.expunge", attempt),
            Self::ForgetNotices { .. } => action("notice.forget", &""),
            Self::CreatePolicy { policy } => action("policy.create", &policy.policy.name),
            Self::ReplacePolicy { policy } => action("policy.update", &policy.policy.name),
            Self::DeletePolicy { name, .. } => action("policy.delete", name),
            Self::CreateProfile { profile } => action("profile.create", &profile.name),
            Self::ReplaceProfile { profile } => action("profile.update", &profile.name),
            Self::DeleteProfile { name, .. } => action("profile.delete", name),
            Self::WriteEventTypes(change) => change.audit_action(),
            Self::CreateApiKey { key, .. } => {
                AuditAction { app: key.app, ..action("api_key.create", &key.id) }
            }
            Self::RenameApiKey { id, .. } => action("api_key.update", id).with_fields(&["name"]),
            Self::RevokeApiKey { id, .. } => action("api_key.revoke", id),
            Self::NoteKeyUses { .. } => action("api_key.use", &""),
            Self::WriteAlerts { .. } => action("alert.write", &""),
            Self::DateCertificates { .. } => action("endpoint.date-certificates", &""),
            Self::WritePendingAlerts { .. } => action("alert.pending", &""),
            Self::SettleEndpointAlerts { .. } => action("alert.settle", &""),
            Self::AcknowledgeAlert { alert, .. } => action("alert.acknowledge", alert),
            Self::PutSetting { .. } => action("setting.put", &""),
            Self::Reschedule { .. } => action("delivery.reschedule", &""),
            Self::SequenceDue { .. } => action("delivery.place", &""),
            Self::StartErasure { erasure, .. } => action("application.erase", &erasure.app),
            Self::NoteExport { app } => action("application.export", app),
            Self::GrantPortalAccess { app } => action("portal_access.create", app),
            Self::EndPortalTokens { app, .. } => action("portal_access.expire", app),
            Self::RevokeToken { .. } => action("token.revoke", &""),
            Self::CreateSource { source, .. } => action("source.create", &source.id),
            Self::UpdateSource { source, .. } => action("source.update", &source.id),
            Self::RotateSourceToken { source, .. } => action("source.token.rotate", &source.id),
            Self::DeleteSource { source, .. } => action("source.delete", source),
        }
    }
}
