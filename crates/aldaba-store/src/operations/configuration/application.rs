//! Applications.

use crate::operations::stored::{assignments, columns, insert_with, parameters, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction, alert, api_key, endpoint, lists, source};
use crate::{Application, ApplicationRef, Changed, Order, Page, Tenant};
use aldaba_delivery::{AppId, OrgId, Timestamp};

stored! { Application { id, org, uid, name, throttle_rate, alert_email, metadata, created_at, updated_at } }

statements! {
    /// A new application has version 1.
    INSERT = format!(
        "{} ON CONFLICT DO NOTHING", insert_with::<Application>("application", &[("version", "1")])
    );
    UPDATE = format!(
        "UPDATE application SET {}, version = version + 1 WHERE id = ?1",
        assignments::<Application>()
    );
    DELETE = "UPDATE application SET deleted = 1, uid = NULL, version = version + 1, updated_at = ?2
        WHERE id = ?1 AND deleted = 0";
    RAISE_VERSION = "UPDATE application SET version = version + 1 WHERE id = ?1";
    UPDATED_AT = "SELECT updated_at FROM application WHERE id = ?1 AND org = ?2 AND deleted = 0";
    UID_USED = "SELECT 1 FROM application WHERE org = ?1 AND uid = ?2";
    UID_TAKEN = "SELECT 1 FROM application WHERE org = ?1 AND uid = ?2 AND id <> ?3";
    EXISTS = "SELECT 1 FROM application WHERE id = ?1 AND org = ?2 AND deleted = 0";
    IS_DELETED = "SELECT 1 FROM application WHERE id = ?1 AND deleted = 1";
    VERSION = "SELECT version FROM application WHERE id = ?1 AND deleted = 0";
    BY_ID = format!(
        "SELECT {}, version FROM application WHERE org = ?1 AND id = ?2 AND deleted = 0",
        columns::<Application>()
    );
    BY_UID = format!(
        "SELECT {}, version FROM application WHERE org = ?1 AND uid = ?2 AND deleted = 0",
        columns::<Application>()
    );
    WITH_DELETED = format!("SELECT {} FROM application WHERE id = ?1", columns::<Application>());
    PAGE[order] = format!(
        "SELECT {} FROM application WHERE org = ?1 AND id > ?2 AND id < ?3 AND deleted = 0 ORDER BY id {} LIMIT ?4",
        columns::<Application>(), order.word
    );
}

/// Whether an application of the organization has the uid of a new one.
pub(crate) fn has_used_uid(reading: &dyn Reading, new: &Application) -> Result<bool> {
    let Some(uid) = &new.uid else { return Ok(false) };
    reading.exists(&UID_USED, values![new.org, uid])
}

fn has_taken_uid(reading: &dyn Reading, application: &Application) -> Result<bool> {
    let Some(uid) = &application.uid else { return Ok(false) };
    reading.exists(&UID_TAKEN, values![application.org, uid, application.id])
}

pub(crate) fn create(tx: &dyn Transaction, application: &Application) -> Result<Changed> {
    if has_used_uid(tx, application)? {
        return Ok(Changed::UidTaken);
    }
    let inserted = tx.execute(&INSERT, &parameters(application))?;
    Ok(Changed::made(inserted, application.id.as_bytes()))
}

pub(crate) fn update(tx: &dyn Transaction, application: &Application, was: Timestamp) -> Result<Changed> {
    match tx.one::<Timestamp>(&UPDATED_AT, values![application.id, application.org])? {
        None => Ok(Changed::NotFound),
        Some(at) if at != was => Ok(Changed::Stale),
        Some(_) if has_taken_uid(tx, application)? => Ok(Changed::UidTaken),
        Some(_) => {
            tx.execute(&UPDATE, &parameters(application))?;
            Ok(Changed::done())
        }
    }
}

/// Marks the application alone: its mark counts for its endpoints too, which may be a million.
pub(crate) fn delete(tx: &dyn Transaction, app: AppId, at: Timestamp) -> Result<Changed> {
    if tx.execute(&DELETE, values![app, at])? == 0 {
        return Ok(Changed::NotFound);
    }
    api_key::revoke_of_application(tx, app)?;
    alert::resolve_of_application(tx, app, at)?;
    Ok(Changed::done())
}

/// After every change of the application or its endpoints: accepts that were matched before it are stale.
pub(crate) fn raise_version(tx: &dyn Transaction, app: AppId) -> Result<()> {
    tx.execute(&RAISE_VERSION, values![app]).map(drop)
}

pub(crate) fn exists(reading: &dyn Reading, app: AppId, org: OrgId) -> Result<bool> {
    reading.exists(&EXISTS, values![app, org])
}

pub(crate) fn is_deleted(reading: &dyn Reading, app: AppId) -> Result<bool> {
    reading.exists(&IS_DELETED, values![app])
}

pub(crate) fn version(reading: &dyn Reading, app: AppId) -> Result<Option<u64>> {
    reading.one(&VERSION, values![app])
}

pub(crate) fn find(reading: &dyn Reading, which: &ApplicationRef) -> Result<Option<Application>> {
    Ok(find_with_version(reading, which)?.map(|(application, _)| application))
}

/// By id first: a uid that looks like the id of another application must not hide it.
fn find_with_version(reading: &dyn Reading, which: &ApplicationRef) -> Result<Option<(Application, u64)>> {
    if let Ok(id) = which.key.parse::<AppId>()
        && let Some(found) = reading.one(&BY_ID, values![which.org, id])?
    {
        return Ok(Some(found));
    }
    reading.one(&BY_UID, values![which.org, which.key])
}

/// A deleted one too.
pub(crate) fn with_deleted(reading: &dyn Reading, app: AppId) -> Result<Option<Application>> {
    reading.one(&WITH_DELETED, values![app])
}

pub(crate) fn list(
    reading: &dyn Reading,
    org: OrgId,
    page: Page<AppId>,
    order: Order,
) -> Result<Vec<Application>> {
    let (low, high) = lists::bounds(page.after, order);
    reading.all(PAGE.by(order), values![org, low, high, page.limit])
}

pub(crate) fn tenant(reading: &dyn Reading, which: &ApplicationRef) -> Result<Option<Tenant>> {
    let Some((application, version)) = find_with_version(reading, which)? else { return Ok(None) };
    let endpoints = endpoint::subscriptions(reading, application.id)?;
    let source = source::of_application(reading, application.id)?;
    Ok(Some(Tenant::new(application, version, endpoints).of_source(source)))
}

pub(crate) fn are_of(reading: &dyn Reading, org: OrgId, apps: &[AppId]) -> Result<Vec<bool>> {
    apps.iter().map(|app| exists(reading, *app, org)).collect()
}
