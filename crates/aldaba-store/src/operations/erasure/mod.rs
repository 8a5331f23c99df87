//! Erasures: kept, started and read. `step.rs` makes their steps, `content.rs`, `endpoints.rs`, `application.rs` and
//! `audit_rows.rs` remove rows, `count.rs` says how many there are.

mod application;
mod audit_rows;
mod content;
mod count;
mod endpoints;
mod step;

pub(crate) use count::count_rows;
pub(crate) use step::step;

#[cfg(any(test, feature = "conformance"))]
pub(super) fn all_statements() -> Vec<&'static super::Statement> {
    [
        statements(),
        application::statements(),
        audit_rows::statements(),
        content::statements(),
        count::statements(),
        endpoints::statements(),
    ]
    .concat()
}

use super::column::count as number;
use super::retention::ExpiredItem;
use super::stored::{columns, insert, parameters, stored};
use super::transaction::{ReadingExt, statements, values};
use super::{Reading, Result, Transaction, keys, message, source};
use crate::{Changed, Erasable, ErasedCounts, Erasure, ErasuresQuery, ReplayEnd, RequestDigest};
use aldaba_delivery::{AppId, ErasureId, OrgId, SourceId, Timestamp};

stored! { ErasedCounts { messages, deliveries, attempts, endpoints, others, audit } }

stored! { Erasure {
    id, org, app, state, removed: [ErasedCounts], first, reached, audited, entry, created_at, updated_at,
} }

statements! {
    INSERT = insert::<Erasure>("erasure");
    PROGRESS = "UPDATE erasure SET state = ?2, messages = ?3, deliveries = ?4, attempts = ?5, endpoints = ?6, others = ?7,
            audit = ?8, reached = ?9, audited = ?10, updated_at = ?11
        WHERE id = ?1";
    ONE = format!("SELECT {} FROM erasure WHERE id = ?1", columns::<Erasure>());
    RUNNING = format!("SELECT {} FROM erasure WHERE state = 0 ORDER BY id", columns::<Erasure>());
    RUNNING_OF = "SELECT id FROM erasure WHERE app = ?1 AND state = 0";
    COUNT_RUNNING = "SELECT count(*) FROM erasure WHERE org = ?1 AND state = 0";
    PAGE[order] = format!(
        "SELECT {} FROM erasure WHERE org = ?1 AND id > ?2 AND id < ?3 AND state >= ?4 AND state <= ?5
         ORDER BY id {} LIMIT ?6", columns::<Erasure>(), order.word
    );
    ENDED = "SELECT id FROM erasure WHERE state > 0 AND updated_at < ?1 ORDER BY updated_at LIMIT ?2";
    REMOVE_ENDED = "DELETE FROM erasure WHERE id = ?1 AND state > 0 AND updated_at < ?2";
}

/// `owner`: the source that the caller has found to own the application.
pub(crate) fn start(tx: &dyn Transaction, new: &Erasure, owner: Option<SourceId>) -> Result<Changed> {
    let (app, at) = (new.app, new.created_at);
    if let Some(running) = tx.one::<ErasureId>(&RUNNING_OF, values![app])? {
        return Ok(Changed::Repeated { resource: *running.as_bytes() });
    }
    let Some(erasable) = erasable(tx, new.org, app)? else { return Ok(Changed::NotFound) };
    if erasable.source != owner {
        return Ok(Changed::Stale);
    }
    if tx.number(&COUNT_RUNNING, values![new.org])? >= number(Erasure::MAX_RUNNING) {
        return Ok(Changed::TooMany);
    }
    if !erasable.is_deleted {
        match owner {
            Some(owner) => source::delete(tx, owner, app, at)?,
            None => super::application::delete(tx, app, at)?,
        };
    }
    let first = message::oldest(tx, app)?;
    tx.execute(&INSERT, &parameters(&Erasure { first, ..new.clone() }))?;
    Ok(Changed::done())
}

pub(crate) fn erasable(reading: &dyn Reading, org: OrgId, app: AppId) -> Result<Option<Erasable>> {
    let found = super::application::with_deleted(reading, app)?.filter(|application| application.org == org);
    if found.is_none() {
        return Ok(None);
    }
    let (source, is_deleted) =
        (source::of_application(reading, app)?, super::application::is_deleted(reading, app)?);
    Ok(Some(Erasable { app, source, is_deleted }))
}

fn keep_progress(tx: &dyn Transaction, erasure: &Erasure) -> Result<()> {
    let Erasure { id, state, removed, reached, audited, updated_at, .. } = erasure;
    let ErasedCounts { messages, deliveries, attempts, endpoints, others, audit } = removed;
    let values = values![
        id, state, messages, deliveries, attempts, endpoints, others, audit, reached, audited, updated_at
    ];
    tx.execute(&PROGRESS, values).map(drop)
}

pub(crate) fn find(reading: &dyn Reading, org: OrgId, id: ErasureId) -> Result<Option<Erasure>> {
    Ok(reading.one(&ONE, values![id])?.filter(|erasure: &Erasure| erasure.org == org))
}

pub(crate) fn of_request(
    reading: &dyn Reading,
    org: OrgId,
    digest: &RequestDigest,
) -> Result<Option<Erasure>> {
    match keys::find_request(reading, org.as_bytes(), digest)? {
        Some(id) => find(reading, org, ErasureId::from_bytes(id)),
        None => Ok(None),
    }
}

pub(crate) fn running(reading: &dyn Reading) -> Result<Vec<Erasure>> {
    reading.all(&RUNNING, values![])
}

/// Whether everything of an application is being removed.
pub(crate) fn is_running_for(reading: &dyn Reading, app: AppId) -> Result<bool> {
    reading.exists(&RUNNING_OF, values![app])
}

pub(crate) fn list(reading: &dyn Reading, query: ErasuresQuery) -> Result<Vec<Erasure>> {
    let (low, high) = super::lists::bounds(query.page.after, query.order);
    let (first_state, last_state) = match query.ended {
        None => (0_i64, i64::MAX),
        Some(ReplayEnd::NotYet) => (0, 0),
        Some(ReplayEnd::Well) => (1, 1),
        Some(ReplayEnd::Early) => return Ok(Vec::new()),
    };
    let (org, limit) = (query.org, query.page.limit);
    reading.all(PAGE.by(query.order), values![org, low, high, first_state, last_state, limit])
}

/// Those that have ended before a moment, the oldest first.
pub(crate) fn ended(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let ids: Vec<ErasureId> = reading.all(&ENDED, values![before, limit])?;
    Ok(ids.into_iter().map(|id| ExpiredItem::Erasure(id, before)).collect())
}

pub(crate) fn remove_ended(tx: &dyn Transaction, id: ErasureId, before: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_ENDED, values![id, before])
}
