//! Who changed what: one row for each change that somebody made, in the commit of the change.

mod values;

pub use values::{AuditSubject, FieldChange, FieldValues, MASK};

use crate::{Change, Order, Page, Read};
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
    pub fn bounds(&self) -> (Option<AuditId>, Option<AuditId>) {
        let (from, until) = (self.after.map(AuditId::first_at), self.before.map(AuditId::first_at));
        match (self.order, self.page.after) {
            (_, None) => (from, until),
            (Order::Ascending, Some(cursor)) => (Some(from.map_or(cursor, |from| from.max(cursor))), until),
            (Order::Descending, Some(cursor)) => {
                (from, Some(until.map_or(cursor, |until| until.min(cursor))))
            }
        }
    }

    /// By which rows are found: the filter that leaves the fewest of them. The others look at each row that it finds.
    pub fn walk(&self) -> AuditWalk<'_> {
        let kind = self.kind.as_deref().or_else(|| self.action.as_ref()?.split('.').next());
        match (&self.resource, self.endpoint, self.app, kind) {
            (Some(resource), ..) => AuditWalk::Resource(resource),
            (_, Some(endpoint), ..) => AuditWalk::Endpoint(endpoint),
            (_, _, Some(app), _) => AuditWalk::App(app),
            (_, _, _, Some(kind)) => AuditWalk::Kind(kind),
            _ => AuditWalk::All,
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

/// Which rows are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditWalk<'a> {
    All,
    App(AppId),
    Endpoint(EndpointId),
    Resource(&'a str),
    Kind(&'a str),
}

impl AuditWalk<'_> {
    pub fn looks_at(self, action: &AuditAction) -> bool {
        match self {
            Self::All => true,
            Self::App(app) => action.app == Some(app),
            Self::Endpoint(endpoint) => action.endpoint == Some(endpoint),
            Self::Resource(resource) => action.resource == resource,
            Self::Kind(kind) => action.kind() == kind,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub found: Vec<AuditEntry>,
    /// Looking was given up here, and may go on from here.
    pub stopped: Option<AuditId>,
}

pub trait Audits {
    fn audit(&self, query: AuditQuery) -> Read<AuditPage>;
}

impl Change {
    /// How the change is called in the audit log, and what it is about.
    pub fn audit_action(&self) -> AuditAction {
        match self {
            Self::CreateApplication { application, .. } => {
                AuditAction::new("application.create", &application.id).of_app(application.id)
            }
            Self::UpdateApplication { application, .. } => {
                AuditAction::new("application.update", &application.id).of_app(application.id)
            }
            Self::DeleteApplication { app, .. } => AuditAction::new("application.delete", app).of_app(*app),
            Self::CreateEndpoint { endpoint, .. } => {
                of_endpoint("endpoint.create", endpoint.app, endpoint.id)
            }
            Self::UpdateEndpoint { endpoint, .. } => {
                of_endpoint("endpoint.update", endpoint.app, endpoint.id)
            }
            Self::ResumeEndpoint { app, endpoint, .. } => of_endpoint("endpoint.resume", *app, *endpoint),
            Self::DeleteEndpoint { app, endpoint, .. } => of_endpoint("endpoint.delete", *app, *endpoint),
            Self::ReplaceSecrets { app, endpoint, .. } => of_endpoint("endpoint.secrets", *app, *endpoint),
            Self::ReleaseGates { gates } => {
                let origin = gates.first().map_or("", |key| key.origin.as_str());
                let app = gates.iter().find_map(|key| match key.scope {
                    GateScope::Host => None,
                    GateScope::Application(app) => Some(app),
                });
                AuditAction { app, ..AuditAction::new("host.release", origin) }
            }
            Self::StartReplay { replay, .. } => {
                AuditAction::new("replay.start", &replay.id).of_app(replay.app).at_endpoint(replay.endpoint)
            }
            Self::CancelReplay { replay, .. } => AuditAction::new("replay.cancel", replay),
            Self::ExpungeMessage { app, message } => {
                AuditAction::new("message.expunge", message).of_app(*app)
            }
            Self::ExpungeAttempt { app, attempt, .. } => {
                AuditAction::new("attempt.expunge", attempt).of_app(*app)
            }
            Self::ForgetNotices { .. } => AuditAction::new("notice.forget", ""),
            Self::CreatePolicy { policy } => AuditAction::new("policy.create", &policy.policy.name),
            Self::ReplacePolicy { policy } => AuditAction::new("policy.update", &policy.policy.name),
            Self::DeletePolicy { name, .. } => AuditAction::new("policy.delete", name),
            Self::CreateProfile { profile } => AuditAction::new("profile.create", &profile.name),
            Self::ReplaceProfile { profile } => AuditAction::new("profile.update", &profile.name),
            Self::DeleteProfile { name, .. } => AuditAction::new("profile.delete", name),
            Self::WriteEventTypes(change) => change.audit_action(),
            Self::CreateApiKey { key, .. } => {
                AuditAction { app: key.app, ..AuditAction::new("api_key.create", &key.id) }
            }
            Self::RenameApiKey { id, .. } => AuditAction::new("api_key.update", id).with_fields(&["name"]),
            Self::RevokeApiKey { id, .. } => AuditAction::new("api_key.revoke", id),
            Self::NoteKeyUses { .. } => AuditAction::new("api_key.use", ""),
            Self::PutSetting { .. } => AuditAction::new("setting.put", ""),
            Self::Reschedule { .. } => AuditAction::new("delivery.reschedule", ""),
            Self::SequenceDue { .. } => AuditAction::new("delivery.place", ""),
            Self::GrantPortalAccess { app } => AuditAction::new("portal_access.create", app).of_app(*app),
            Self::EndPortalTokens { app, .. } => AuditAction::new("portal_access.expire", app).of_app(*app),
            Self::RevokeToken { .. } => AuditAction::new("token.revoke", ""),
            Self::CreateSource { source, .. } => {
                AuditAction::new("source.create", &source.id).of_app(source.app)
            }
            Self::UpdateSource { source, .. } => {
                AuditAction::new("source.update", &source.id).of_app(source.app)
            }
            Self::RotateSourceToken { source, .. } => {
                AuditAction::new("source.token.rotate", &source.id).of_app(source.app)
            }
            Self::DeleteSource { source, app, .. } => AuditAction::new("source.delete", source).of_app(*app),
        }
    }
}

fn of_endpoint(action: &'static str, app: AppId, endpoint: EndpointId) -> AuditAction {
    AuditAction::new(action, &endpoint).of_app(app).at_endpoint(endpoint)
}
