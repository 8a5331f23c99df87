//! Reads of applications and endpoints.

use super::rows::{self, count};
use super::source;
use crate::{Application, Endpoint, Key, Order, Page, Tenant, WhichApplication};
use aldaba_delivery::{AppId, EndpointId, Id, IdKind, OrgId};
use rusqlite::{Connection, OptionalExtension, Row};

/// The application and its endpoints are one version: they are read in one transaction.
pub(super) fn tenant(connection: &Connection, which: &WhichApplication) -> rusqlite::Result<Option<Tenant>> {
    let snapshot = connection.unchecked_transaction()?;
    let read = |row: &Row<'_>| Ok((rows::application(row)?, row.get::<_, i64>("version")?));
    let Some((application, version)) = find_application(&snapshot, which, read)? else {
        return Ok(None);
    };
    let endpoints = snapshot
        .prepare_cached(&format!(
            "SELECT {} FROM endpoint WHERE app = ?1 AND deleted = 0 AND direct = 0 ORDER BY id",
            rows::SUBSCRIPTION
        ))?
        .query_map((application.id.as_bytes(),), rows::subscription)?
        .collect::<Result<_, _>>()?;
    let source = source::of_application(&snapshot, application.id)?;
    Ok(Some(Tenant::new(application, version as u64, endpoints).of_source(source)))
}

pub(super) fn application(
    connection: &Connection,
    which: &WhichApplication,
) -> rusqlite::Result<Option<Application>> {
    find_application(connection, which, rows::application)
}

/// By id first: a uid that looks like the id of another application must not hide it.
fn find_application<T>(
    connection: &Connection,
    which: &WhichApplication,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let select = |column| {
        format!(
            "SELECT {}, version FROM application WHERE org = ?1 AND {column} = ?2 AND deleted = 0",
            rows::APPLICATION
        )
    };
    let org = which.org.as_bytes();
    if let Ok(id) = which.key.parse::<AppId>() {
        let mut by_id = connection.prepare_cached(&select("id"))?;
        if let Some(found) = by_id.query_row((org, id.as_bytes()), &read).optional()? {
            return Ok(Some(found));
        }
    }
    let mut by_uid = connection.prepare_cached(&select("uid"))?;
    by_uid.query_row((org, &which.key), &read).optional()
}

pub(super) fn application_version(connection: &Connection, app: AppId) -> rusqlite::Result<Option<u64>> {
    let mut find =
        connection.prepare_cached("SELECT version FROM application WHERE id = ?1 AND deleted = 0")?;
    find.query_row((app.as_bytes(),), |row| row.get::<_, i64>(0).map(|version| version as u64)).optional()
}

pub(super) fn applications(
    connection: &Connection,
    org: OrgId,
    page: Page<AppId>,
    order: Order,
) -> rusqlite::Result<Vec<Application>> {
    let select = format!(
        "SELECT {} FROM application INDEXED BY application_org WHERE org = ?1 AND deleted = 0",
        rows::APPLICATION
    );
    list(connection, &select, org.as_bytes(), page, order, rows::application)
}

pub(super) fn endpoint(connection: &Connection, app: AppId, key: &Key) -> rusqlite::Result<Option<Endpoint>> {
    let select = |column| {
        format!("SELECT {} FROM endpoint WHERE app = ?1 AND {column} = ?2 AND deleted = 0", rows::ENDPOINT)
    };
    // Its application may be deleted since it was asked for.
    let there = |found: &Endpoint| !found.deleted;
    if let Ok(id) = key.parse::<EndpointId>() {
        let mut by_id = connection.prepare_cached(&select("id"))?;
        let found = by_id.query_row((app.as_bytes(), id.as_bytes()), rows::endpoint).optional()?;
        if let Some(found) = found {
            return Ok(Some(found).filter(there));
        }
    }
    let mut by_uid = connection.prepare_cached(&select("uid"))?;
    Ok(by_uid.query_row((app.as_bytes(), key), rows::endpoint).optional()?.filter(there))
}

pub(super) fn endpoints(
    connection: &Connection,
    app: AppId,
    page: Page<EndpointId>,
    order: Order,
) -> rusqlite::Result<Vec<Endpoint>> {
    let select = format!(
        "SELECT {} FROM endpoint INDEXED BY endpoint_app WHERE app = ?1 AND deleted = 0 AND direct = 0",
        rows::ENDPOINT
    );
    let mut found = list(connection, &select, app.as_bytes(), page, order, rows::endpoint)?;
    found.retain(|endpoint| !endpoint.deleted);
    Ok(found)
}

/// A page of what `select` finds for `owner` (its first parameter), in the order of the ids.
pub(super) fn list<K: IdKind, T>(
    connection: &Connection,
    select: &str,
    owner: &[u8; 20],
    page: Page<Id<K>>,
    order: Order,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let (beyond, direction) = match order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let limit = count(page.limit);
    match page.after {
        None => connection
            .prepare_cached(&format!("{select} ORDER BY id {direction} LIMIT ?2"))?
            .query_map((owner, limit), read)?
            .collect(),
        Some(after) => connection
            .prepare_cached(&format!("{select} AND id {beyond} ?2 ORDER BY id {direction} LIMIT ?3"))?
            .query_map((owner, after.as_bytes(), limit), read)?
            .collect(),
    }
}
