//! The audit log: one row for each change that somebody made, in the commit of the change.

use super::codes::Code;
use super::column::{Columns, FromRow, Parameter, unknown};
use super::lists::{self, Looked, Range};
use super::retention::ExpiredItem;
use super::transaction::{ReadingExt, statements, values};
use super::{
    Reading, Result, Slice, Transaction, api_key, application, endpoint, event_type, policy, profile, source,
};
use crate::{
    Actor, ActorIdentity, ActorKind, AuditAction, AuditEntry, AuditPage, AuditQuery, AuditSubject,
    FieldChange, FieldValues,
};
use aldaba_delivery::{ApiKeyId, AppId, AuditId, Timestamp};

pub(super) const COLUMNS: &str = "id, org, app, endpoint, actor_kind, actor_id, actor_prefix, actor_name, action, resource, fields, count, changes";

statements! {
    /// A second part of the same entry adds to its count.
    INSERT = format!(
        "INSERT INTO audit ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (id) DO UPDATE SET count = audit.count + excluded.count"
    );
    ALL[order] = walk("", order.word);
    OF_APPLICATION[order] = walk("app = ?5 AND app IS NOT NULL AND", order.word);
    OF_ENDPOINT[order] = walk("endpoint = ?5 AND endpoint IS NOT NULL AND", order.word);
    OF_RESOURCE[order] = walk_one("resource", order.beyond, order.word);
    OF_KIND[order] = walk_one("kind", order.beyond, order.word);
    OLD = "SELECT id FROM audit WHERE id < ?1 ORDER BY id LIMIT ?2";
    REMOVE = "DELETE FROM audit WHERE id = ?1";
}

fn walk(which: &str, direction: &str) -> String {
    format!(
        "SELECT {COLUMNS} FROM audit WHERE org = ?1 AND {which} id > ?2 AND id < ?3 ORDER BY id {direction} LIMIT ?4"
    )
}

/// One bound is hidden from the planner: with both, SQLite takes the index of all rows of the organization.
fn walk_one(column: &str, beyond: &str, direction: &str) -> String {
    let (low, high) = if beyond == ">" { ("id", "coalesce(id, id)") } else { ("coalesce(id, id)", "id") };
    format!(
        "SELECT {COLUMNS} FROM audit WHERE org = ?1 AND {column} = ?5 AND {low} > ?2 AND {high} < ?3
         ORDER BY id {direction} LIMIT ?4"
    )
}

/// Writes an entry that is about so many things.
pub(crate) fn note(tx: &dyn Transaction, entry: &AuditEntry, things: u32) -> Result<()> {
    let AuditEntry { id, actor, action, .. } = entry;
    let (subject, prefix, actor_name): (Option<&[u8]>, Option<&str>, Option<&str>) = match &actor.identity {
        ActorIdentity::Key { id, prefix, name } => (Some(id.as_bytes()), Some(prefix), Some(name)),
        ActorIdentity::PortalToken { app, session } => (Some(app.as_bytes()), None, session.as_deref()),
        ActorIdentity::OrganizationToken { name } => (None, None, name.as_deref()),
        ActorIdentity::CommandLine | ActorIdentity::Program => (None, None, None),
    };
    let changes = (!action.changes.is_empty()).then(|| FieldChange::write(&action.changes));
    let kind = actor.identity.kind();
    let AuditAction { name, app, endpoint, resource, fields, .. } = action;
    let values = values![
        id, actor.org, app, endpoint, kind, subject, prefix, actor_name, name, resource, fields, things,
        changes
    ];
    tx.execute(&INSERT, values).map(drop)
}

impl FromRow for AuditEntry {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (id, org, app, endpoint) = columns.take()?;
        let (kind, subject): (ActorKind, Option<[u8; 20]>) = columns.take()?;
        let (prefix, name): (Option<String>, Option<String>) = columns.take()?;
        let subject = || subject.ok_or_else(|| unknown("actor without an id", kind.code()));
        let who = match kind {
            ActorKind::Key => ActorIdentity::Key {
                id: ApiKeyId::from_bytes(subject()?),
                prefix: prefix.unwrap_or_default(),
                name: name.unwrap_or_default(),
            },
            ActorKind::OrganizationToken => ActorIdentity::OrganizationToken { name },
            ActorKind::PortalToken => {
                ActorIdentity::PortalToken { app: AppId::from_bytes(subject()?), session: name }
            }
            ActorKind::CommandLine => ActorIdentity::CommandLine,
            ActorKind::Program => ActorIdentity::Program,
        };
        let (action_name, resource, fields) = columns.take()?;
        let (count, changes): (_, Option<String>) = columns.take()?;
        let changes = match changes {
            Some(text) => FieldChange::read(&text).ok_or_else(|| unknown("list of changes", &text))?,
            None => Vec::new(),
        };
        let action = AuditAction { name: action_name, app, endpoint, resource, fields, changes };
        Ok(Self { id, actor: Actor { org, identity: who }, action, count })
    }
}

/// Walks along the filter that leaves the fewest rows. The others look at each row that it finds.
pub(crate) fn list(reading: &dyn Reading, slice: &Slice<'_>, query: &AuditQuery) -> Result<AuditPage> {
    let kind = query.kind.as_deref().or_else(|| query.action.as_ref()?.split('.').next());
    let (statement, by) = match (&query.resource, &query.endpoint, &query.app, &kind) {
        (Some(resource), ..) => (&OF_RESOURCE, Some(resource.value())),
        (_, Some(endpoint), ..) => (&OF_ENDPOINT, Some(endpoint.value())),
        (_, _, Some(app), _) => (&OF_APPLICATION, Some(app.value())),
        (_, _, _, Some(kind)) => (&OF_KIND, Some(kind.value())),
        _ => (&ALL, None),
    };
    let page = |low: AuditId, high: AuditId, rows: usize| {
        let mut parameters = vec![query.org.value(), low.value(), high.value(), rows.value()];
        parameters.extend(by.clone());
        reading.all::<AuditEntry>(statement.by(query.order), &parameters)
    };
    let wanted = |entry: AuditEntry, _: &mut Looked| Ok(Some(entry).filter(|entry| query.takes(entry)));
    let (low, high) = query.bounds();
    let range = Range { low, high, order: query.order, limit: query.page.limit, most: query.most };
    let found = lists::walk(range, slice, page, |entry| entry.id, wanted)?;
    Ok(AuditPage { found: found.items, stopped: found.stopped })
}

/// Rows from before a moment, the oldest first.
pub(crate) fn old(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let ids: Vec<AuditId> = reading.all(&OLD, values![AuditId::first_at(before), limit])?;
    Ok(ids.into_iter().map(ExpiredItem::Audit).collect())
}

pub(crate) fn remove(tx: &dyn Transaction, id: AuditId) -> Result<usize> {
    tx.execute(&REMOVE, values![id])
}

/// What a thing is before a change of it. `None`: it is not there.
pub(crate) fn values_of(reading: &dyn Reading, subject: AuditSubject<'_>) -> Result<Option<FieldValues>> {
    Ok(match subject {
        AuditSubject::Application(app) => {
            application::with_deleted(reading, app)?.as_ref().map(FieldValues::from)
        }
        AuditSubject::Endpoint(app, id) => {
            endpoint::with_deleted(reading, app, id)?.map(|endpoint| FieldValues::from(&endpoint.config))
        }
        AuditSubject::EventType(org, name) => {
            event_type::one(reading, org, name)?.as_ref().map(FieldValues::from)
        }
        AuditSubject::Policy(org, name) => policy::one(reading, org, name)?.as_ref().map(FieldValues::from),
        AuditSubject::Profile(org, name) => profile::one(reading, org, name)?.as_ref().map(FieldValues::from),
        AuditSubject::ApiKey(org, id) => api_key::one(reading, org, id)?.as_ref().map(FieldValues::from),
        AuditSubject::Source(id) => {
            source::by_id(reading, id)?.map(|source| FieldValues::from(&source.config))
        }
    })
}
