//! The audit log: one row for each change that somebody made, in the commit of the change.

use super::codes::Code;
use super::codes::Unknown;
use super::names;
use super::rows::{self, count};
use crate::{
    Actor, ActorKind, AuditEntry, AuditPage, AuditQuery, AuditWalk, Deed, FieldChange, Order, Stale, Who,
};
use aldaba_delivery::{AppId, AuditId, EndpointId, Timestamp};
use rusqlite::types::Null;
use rusqlite::{Connection, Row, ToSql, params};

/// A second part of the same entry adds to its count.
const INSERT: &str = "
    INSERT INTO audit (id, org, app, endpoint, actor_kind, actor_id, actor_prefix, actor_name, action, resource,
        fields, count, changes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (id) DO UPDATE SET count = count + excluded.count";

/// Writes an entry that is about so many things.
pub(super) fn note(connection: &Connection, entry: &AuditEntry, things: u32) -> rusqlite::Result<()> {
    let AuditEntry { id, actor, deed, .. } = entry;
    let (subject, prefix, name): (Option<&[u8]>, Option<&str>, Option<&str>) = match &actor.who {
        Who::Key { id, prefix, name } => (Some(id.as_bytes()), Some(prefix), Some(name)),
        Who::PortalToken { app, session } => (Some(app.as_bytes()), None, session.as_deref()),
        Who::OrganizationToken { name } => (None, None, name.as_deref()),
        Who::CommandLine | Who::Program => (None, None, None),
    };
    connection.prepare_cached(INSERT)?.execute(params![
        id.as_bytes(),
        actor.org.as_bytes(),
        deed.app.as_ref().map(AppId::as_bytes),
        deed.endpoint.as_ref().map(EndpointId::as_bytes),
        actor.who.kind().code(),
        subject,
        prefix,
        name,
        deed.action,
        deed.resource,
        names::write(&deed.fields),
        things,
        (!deed.changes.is_empty()).then(|| FieldChange::write(&deed.changes)),
    ])?;
    Ok(())
}

const COLUMNS: &str =
    "id, org, app, endpoint, actor_kind, actor_id, actor_prefix, actor_name, action, resource,
    fields, count, changes";

fn statement(walk: AuditWalk<'_>, order: Order) -> String {
    let (index, which) = match walk {
        // The parameter is there whether it is used or not.
        AuditWalk::All => ("audit_org", "?5 IS NULL"),
        AuditWalk::App(_) => ("audit_app", "app = ?5 AND app IS NOT NULL"),
        AuditWalk::Endpoint(_) => ("audit_endpoint", "endpoint = ?5 AND endpoint IS NOT NULL"),
        AuditWalk::Resource(_) => ("audit_resource", "resource = ?5"),
        AuditWalk::Kind(_) => ("audit_kind", "kind = ?5"),
    };
    let direction = match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!(
        "SELECT {COLUMNS} FROM audit INDEXED BY {index}
         WHERE org = ?1 AND {which} AND id > ?2 AND id < ?3 ORDER BY id {direction} LIMIT ?4"
    )
}

pub(super) fn list(connection: &Connection, query: &AuditQuery) -> rusqlite::Result<AuditPage> {
    let walk = query.walk();
    let mut find = connection.prepare_cached(&statement(walk, query.order))?;
    let (from, until) = query.bounds();
    let (from, until) = (from.as_ref().map_or(&[][..], |id| id.as_bytes()), until.unwrap_or(AuditId::MAX));
    let which: &dyn ToSql = match &walk {
        AuditWalk::All => &Null,
        AuditWalk::App(app) => app.as_bytes(),
        AuditWalk::Endpoint(endpoint) => endpoint.as_bytes(),
        AuditWalk::Resource(text) | AuditWalk::Kind(text) => text,
    };
    let mut rows =
        find.query(params![query.org.as_bytes(), from, until.as_bytes(), count(query.most), which])?;
    let (mut page, mut looked_at, mut last) = (AuditPage::default(), 0, None);
    while page.found.len() < query.page.limit {
        let Some(row) = rows.next()? else { break };
        let entry = entry(row)?;
        looked_at += 1;
        last = Some(entry.id);
        if query.takes(&entry) {
            page.found.push(entry);
        }
    }
    if looked_at == query.most && page.found.len() < query.page.limit {
        page.stopped = last;
    }
    Ok(page)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let text =
        |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.unwrap_or_default());
    let who = match ActorKind::from_code(row.get(4)?)? {
        ActorKind::Key => Who::Key { id: rows::id(row, 5)?, prefix: text(6)?, name: text(7)? },
        ActorKind::OrganizationToken => Who::OrganizationToken { name: row.get(7)? },
        ActorKind::PortalToken => Who::PortalToken { app: rows::id(row, 5)?, session: row.get(7)? },
        ActorKind::CommandLine => Who::CommandLine,
        ActorKind::Program => Who::Program,
    };
    Ok(AuditEntry {
        id: rows::id(row, 0)?,
        actor: Actor { org: rows::id(row, 1)?, who },
        deed: Deed {
            action: row.get::<_, String>(8)?.into(),
            app: rows::id_or_none(row, 2)?,
            endpoint: rows::id_or_none(row, 3)?,
            resource: row.get(9)?,
            fields: rows::list(row, 10)?,
            changes: changes(row, 12)?,
        },
        count: row.get(11)?,
    })
}

fn changes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<FieldChange>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(Vec::new()) };
    FieldChange::read(&text).ok_or_else(|| Unknown::text("list of changes", &text))
}

/// Rows from before a moment, the oldest first.
pub(super) fn old(connection: &Connection, before: Timestamp, limit: usize) -> rusqlite::Result<Vec<Stale>> {
    connection
        .prepare_cached("SELECT id FROM audit WHERE id < ?1 ORDER BY id LIMIT ?2")?
        .query_map((AuditId::first_at(before).as_bytes(), count(limit)), |row| {
            rows::id(row, 0).map(Stale::Audit)
        })?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn a_page_is_a_walk_along_an_index() {
        let id = [1; 20];
        for (walk, by) in [
            (AuditWalk::All, "org=?"),
            (AuditWalk::App(AppId::from_bytes(id)), "org=? AND app=?"),
            (AuditWalk::Endpoint(EndpointId::from_bytes(id)), "org=? AND endpoint=?"),
            (AuditWalk::Resource("ep"), "org=? AND resource=?"),
            (AuditWalk::Kind("endpoint"), "org=? AND kind=?"),
        ] {
            for order in [Order::Ascending, Order::Descending] {
                let plan = plan(&statement(walk, order));
                assert!(
                    plan.contains(&format!("({by} AND id>? AND id<?)")) && !plan.contains("TEMP"),
                    "{plan}"
                );
            }
        }
    }
}
