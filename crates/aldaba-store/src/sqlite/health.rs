//! The health of endpoints: what attempts and hands make of it, and how it has changed.

use super::codes::Code;
use super::record::remove_gate;
use super::replay;
use super::rows::{self, count, nanos};
use crate::{
    Changed, Endpoint, HEALTH_CHANGES_KEPT, HealthChange, HealthChangeNumber, NewAttempt, Order, Page,
    Record, Replay,
};
use aldaba_delivery::{
    AppId, Condition, ConditionCause, EndpointId, GateKey, Health, HealthStatus, OrgId, Timestamp,
};
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;

/// Writes what an attempt has made of an endpoint's health, unless a hand has changed it since.
pub(super) fn after_attempt(
    connection: &Connection,
    record: &Record,
    health: &Health,
) -> rusqlite::Result<()> {
    let mut find = connection
        .prepare_cached("SELECT health_status, disabled, health_epoch FROM endpoint WHERE id = ?1")?;
    let read =
        |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, u32>(2)?));
    let Some((status, off, epoch)) = find.query_row((record.endpoint.as_bytes(),), read).optional()? else {
        return Ok(());
    };
    if epoch != health.epoch {
        return keep_quiet(connection, record.endpoint, health);
    }
    set(connection, record.endpoint, health)?;
    let before = Health { status: HealthStatus::from_code(status)?, ..Health::default() };
    let detail = record.attempt.as_ref().map_or("", |attempt| &attempt.error);
    let cause = ConditionCause::of_attempt(health.status);
    let (was, became) = (before.lasting_condition(off), health.lasting_condition(off));
    note(connection, record.endpoint, record.at, (was, became), cause, detail)
}

/// What a receiver asked for counts whatever a hand has done.
fn keep_quiet(connection: &Connection, endpoint: EndpointId, health: &Health) -> rusqlite::Result<()> {
    if let Some(until) = health.quiet_until {
        connection
            .prepare_cached(
                "UPDATE endpoint SET health_quiet_until = max(coalesce(health_quiet_until, ?2), ?2) WHERE id = ?1",
            )?
            .execute((endpoint.as_bytes(), until.millis()))?;
    }
    Ok(())
}

/// An older one that is written late leaves a newer one in its place.
pub(super) fn set_last_error(
    connection: &Connection,
    endpoint: EndpointId,
    attempt: &NewAttempt,
) -> rusqlite::Result<()> {
    let ended_at = (attempt.started_at + attempt.duration).millis();
    connection
        .prepare_cached(
            "UPDATE endpoint SET error_at = ?2, error_status = ?3, error_text = ?4
             WHERE id = ?1 AND (error_at IS NULL OR error_at <= ?2)",
        )?
        .execute((endpoint.as_bytes(), ended_at, attempt.status_code, &attempt.error))?;
    Ok(())
}

/// Someone resumes an endpoint that is not active.
pub(super) fn resume(
    connection: &Connection,
    app: AppId,
    endpoint: EndpointId,
    at: Timestamp,
    recovery: Option<&Replay>,
) -> rusqlite::Result<Changed> {
    let mut find = connection.prepare_cached(&format!(
        "SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2 AND {}",
        rows::ENDPOINT,
        rows::THERE
    ))?;
    let found = find.query_row((endpoint.as_bytes(), app.as_bytes()), rows::endpoint).optional()?;
    let Some(before) = found else { return Ok(Changed::NotFound) };
    if before.health.status == HealthStatus::Active {
        return Ok(Changed::Unchanged);
    }
    // Both or none.
    if recovery.is_some() && !replay::has_room(connection, app)? {
        return Ok(Changed::TooMany);
    }
    by_hand(
        connection,
        &before,
        before.config.disabled,
        &before.health.resumed(at),
        ConditionCause::Resumed,
        at,
    )?;
    let failing_since = before.health.outage_began();
    let recovery = match recovery.zip(failing_since) {
        Some((planned, began)) => replay::recover(connection, planned, began)?,
        None => None,
    };
    Ok(Changed::Resumed { failing_since, recovery })
}

/// Writes what a hand has made of an endpoint's health.
pub(super) fn by_hand(
    connection: &Connection,
    before: &Endpoint,
    off: bool,
    health: &Health,
    cause: ConditionCause,
    at: Timestamp,
) -> rusqlite::Result<()> {
    set(connection, before.id, health)?;
    let (was, became) =
        (before.health.lasting_condition(before.config.disabled), health.lasting_condition(off));
    note(connection, before.id, at, (was, became), cause, "")
}

fn set(connection: &Connection, endpoint: EndpointId, health: &Health) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE endpoint SET health_status = ?2, health_failure_count = ?3, health_failing_since = ?4,
             health_changed_at = ?5, health_next_probe_at = ?6, health_probe_gap = ?7,
             health_quiet_until = ?8, health_released_at = ?9, health_epoch = ?10,
             health_released_by_person = ?11
         WHERE id = ?1",
    )?;
    update.execute((
        endpoint.as_bytes(),
        health.status.code(),
        health.failure_count,
        health.failing_since.map(Timestamp::millis),
        health.changed_at.map(Timestamp::millis),
        health.next_probe_at.map(Timestamp::millis),
        nanos(health.probe_gap),
        health.quiet_until.map(Timestamp::millis),
        health.released_at.map(Timestamp::millis),
        health.epoch,
        health.released_by_person,
    ))?;
    Ok(())
}

/// Keeps a change, and lets go those that are too many.
fn note(
    connection: &Connection,
    endpoint: EndpointId,
    at: Timestamp,
    (was, became): (Condition, Condition),
    cause: ConditionCause,
    detail: &str,
) -> rusqlite::Result<()> {
    if was == became {
        return Ok(());
    }
    let mut last = connection
        .prepare_cached("SELECT coalesce(max(number), 0) FROM health_change WHERE endpoint = ?1")?;
    let number = last.query_row((endpoint.as_bytes(),), |row| row.get::<_, i64>(0))? + 1;
    connection
        .prepare_cached(
            "INSERT INTO health_change (endpoint, number, at, was, became, cause, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            endpoint.as_bytes(),
            number,
            at.millis(),
            was.code(),
            became.code(),
            cause.code(),
            detail,
        ))?;
    connection
        .prepare_cached("DELETE FROM health_change WHERE endpoint = ?1 AND number <= ?2")?
        .execute((endpoint.as_bytes(), number - count(HEALTH_CHANGES_KEPT)))?;
    Ok(())
}

pub(super) fn changes(
    connection: &Connection,
    endpoint: EndpointId,
    page: Page<HealthChangeNumber>,
    order: Order,
) -> rusqlite::Result<Vec<HealthChange>> {
    let (beyond, direction, first) = match order {
        Order::Ascending => (">", "ASC", i64::MIN),
        Order::Descending => ("<", "DESC", i64::MAX),
    };
    let after = page.after.map_or(first, |number| number.0);
    connection
        .prepare_cached(&format!(
            "SELECT {} FROM health_change WHERE endpoint = ?1 AND number {beyond} ?2
             ORDER BY number {direction} LIMIT ?3",
            rows::HEALTH_CHANGE
        ))?
        .query_map((endpoint.as_bytes(), after, count(page.limit)), rows::health_change)?
        .collect()
}

pub(super) fn release_gates(connection: &Connection, gates: &[GateKey]) -> rusqlite::Result<Changed> {
    for key in gates {
        remove_gate(connection, key)?;
    }
    Ok(Changed::Done { removed: Vec::new() })
}

/// Seldom asked, so that it may look through the endpoints of an organization, once.
pub(super) fn has_endpoints_at(
    connection: &Connection,
    org: OrgId,
    app: Option<AppId>,
    starts: &[String],
) -> rusqlite::Result<Vec<bool>> {
    if starts.is_empty() {
        return Ok(Vec::new());
    }
    let mut find = match app {
        None => connection.prepare_cached(&format!(
            "SELECT url FROM endpoint INDEXED BY endpoint_policy WHERE org = ?1 AND {}",
            rows::THERE
        ))?,
        Some(_) => connection.prepare_cached(&format!(
            "SELECT url FROM endpoint INDEXED BY endpoint_walk WHERE app = ?2 AND org = ?1 AND {}",
            rows::THERE
        ))?,
    };
    let mut rows = match app {
        None => find.query((org.as_bytes(),))?,
        Some(app) => find.query((org.as_bytes(), app.as_bytes()))?,
    };
    let mut found = HashSet::new();
    while let Some(row) = rows.next()? {
        let start = crate::health::url_start(row.get_ref(0)?.as_str()?);
        if !found.contains(start) {
            found.insert(start.to_owned());
        }
    }
    Ok(starts.iter().map(|start| found.contains(start)).collect())
}

pub(super) fn are_of(connection: &Connection, org: OrgId, apps: &[AppId]) -> rusqlite::Result<Vec<bool>> {
    let mut find =
        connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND org = ?2 AND deleted = 0")?;
    apps.iter().map(|app| find.exists((app.as_bytes(), org.as_bytes()))).collect()
}
