//! Inbound doors, and what came in through them.

use super::change;
use super::counters::Counters;
use super::deliveries::view;
use super::directory::list;
use super::history;
use super::replay;
use super::rows::{THERE, count, id, moment, moment_or_none};
use crate::{
    Application, Changed, DeliveryStatus, DeliveryView, Key, Order, Page, ReopenEvent, Round, Source,
    SourceConfig, SourceEvent, SourceToken, Waiting,
};
use aldaba_delivery::{AppId, EndpointId, OrgId, SourceId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(super) fn create(
    connection: &Connection,
    source: &Source,
    application: &Application,
) -> rusqlite::Result<Changed> {
    if is_taken(connection, source)? {
        return Ok(Changed::UidTaken);
    }
    let mut counted = connection.prepare_cached("SELECT count(*) FROM source WHERE org = ?1")?;
    if counted.query_row((source.org.as_bytes(),), |row| row.get::<_, i64>(0))? >= count(Source::MOST) {
        return Ok(Changed::TooMany);
    }
    match change::create_application(connection, application)? {
        Changed::Done { .. } => {}
        other => return Ok(other),
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO source (id, org, app, uid, name, kind, created_at, updated_at, metadata, settings, sealed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let SourceConfig { uid, name, metadata, kind, settings } = &source.config;
    insert.execute(params![
        source.id.as_bytes(),
        source.org.as_bytes(),
        source.app.as_bytes(),
        uid,
        name,
        kind,
        source.created_at.millis(),
        source.updated_at.millis(),
        metadata,
        settings,
        source.sealed,
    ])?;
    write_tokens(connection, source)?;
    Ok(Changed::Done { removed: Vec::new() })
}

pub(super) fn replace(connection: &Connection, source: &Source, was: Timestamp) -> rusqlite::Result<Changed> {
    let mut found = connection.prepare_cached("SELECT updated_at FROM source WHERE id = ?1 AND org = ?2")?;
    let at = found.query_row((source.id.as_bytes(), source.org.as_bytes()), |row| moment(row, 0));
    match at.optional()? {
        None => return Ok(Changed::NotFound),
        Some(at) if at != was => return Ok(Changed::Stale),
        Some(_) if is_taken(connection, source)? => return Ok(Changed::UidTaken),
        Some(_) => {}
    }
    let mut update = connection.prepare_cached(
        "UPDATE source SET uid = ?2, name = ?3, kind = ?4, updated_at = ?5, metadata = ?6, settings = ?7, sealed = ?8
         WHERE id = ?1",
    )?;
    let SourceConfig { uid, name, metadata, kind, settings } = &source.config;
    update.execute(params![
        source.id.as_bytes(),
        uid,
        name,
        kind,
        source.updated_at.millis(),
        metadata,
        settings,
        source.sealed,
    ])?;
    write_tokens(connection, source)?;
    Ok(Changed::Done { removed: Vec::new() })
}

/// Whether there was one that owned this application.
pub(super) fn delete(connection: &Connection, source: SourceId, app: AppId) -> rusqlite::Result<bool> {
    let mut delete = connection.prepare_cached("DELETE FROM source WHERE id = ?1 AND app = ?2")?;
    if delete.execute((source.as_bytes(), app.as_bytes()))? == 0 {
        return Ok(false);
    }
    forget_tokens(connection, source)?;
    Ok(true)
}

fn is_taken(connection: &Connection, source: &Source) -> rusqlite::Result<bool> {
    let Some(uid) = &source.config.uid else { return Ok(false) };
    let mut taken =
        connection.prepare_cached("SELECT 1 FROM source WHERE org = ?1 AND uid = ?2 AND id != ?3")?;
    taken.exists((source.org.as_bytes(), uid, source.id.as_bytes()))
}

fn forget_tokens(connection: &Connection, source: SourceId) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached("DELETE FROM source_token WHERE source = ?1")?;
    delete.execute((source.as_bytes(),)).map(drop)
}

/// There are a few of them at most.
fn write_tokens(connection: &Connection, source: &Source) -> rusqlite::Result<()> {
    forget_tokens(connection, source.id)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO source_token (digest, source, number, expires_at) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (number, token) in (0_i64..).zip(source.tokens.iter().rev()) {
        let expires_at = token.expires_at.map(Timestamp::millis);
        insert.execute((token.digest, source.id.as_bytes(), number, expires_at))?;
    }
    Ok(())
}

const SOURCE: &str = "id, org, app, uid, name, kind, created_at, updated_at, metadata, settings, sealed";

/// Without its tokens.
fn source(row: &Row<'_>) -> rusqlite::Result<Source> {
    Ok(Source {
        id: id(row, 0)?,
        org: id(row, 1)?,
        app: id(row, 2)?,
        config: SourceConfig {
            uid: row.get(3)?,
            name: row.get(4)?,
            kind: row.get(5)?,
            metadata: row.get(8)?,
            settings: row.get(9)?,
        },
        sealed: row.get(10)?,
        tokens: Vec::new(),
        created_at: moment(row, 6)?,
        updated_at: moment(row, 7)?,
    })
}

fn with_tokens(connection: &Connection, mut source: Source) -> rusqlite::Result<Source> {
    let mut find = connection.prepare_cached(
        "SELECT digest, expires_at FROM source_token INDEXED BY source_token_source WHERE source = ?1
         ORDER BY number DESC",
    )?;
    let token = |row: &Row<'_>| Ok(SourceToken { digest: row.get(0)?, expires_at: moment_or_none(row, 1)? });
    source.tokens = find.query_map((source.id.as_bytes(),), token)?.collect::<Result<_, _>>()?;
    Ok(source)
}

/// By id first: a uid that looks like the id of another source must not hide it.
pub(super) fn one(connection: &Connection, org: OrgId, key: &Key) -> rusqlite::Result<Option<Source>> {
    let snapshot = connection.unchecked_transaction()?;
    let select = |column| format!("SELECT {SOURCE} FROM source WHERE org = ?1 AND {column} = ?2");
    let mut found = None;
    if let Ok(id) = key.parse::<SourceId>() {
        let mut by_id = snapshot.prepare_cached(&select("id"))?;
        found = by_id.query_row((org.as_bytes(), id.as_bytes()), source).optional()?;
    }
    if found.is_none() {
        let mut by_uid = snapshot.prepare_cached(&select("uid"))?;
        found = by_uid.query_row((org.as_bytes(), key), source).optional()?;
    }
    found.map(|source| with_tokens(&snapshot, source)).transpose()
}

/// Without its tokens.
pub(super) fn by_id(connection: &Connection, id: SourceId) -> rusqlite::Result<Option<Source>> {
    let mut find = connection.prepare_cached(&format!("SELECT {SOURCE} FROM source WHERE id = ?1"))?;
    find.query_row((id.as_bytes(),), source).optional()
}

pub(super) fn of_token(connection: &Connection, digest: &[u8; 32]) -> rusqlite::Result<Option<Source>> {
    let snapshot = connection.unchecked_transaction()?;
    let mut find = snapshot.prepare_cached(&format!(
        "SELECT {SOURCE} FROM source WHERE id = (SELECT source FROM source_token WHERE digest = ?1)"
    ))?;
    let found = find.query_row((digest,), source).optional()?;
    found.map(|source| with_tokens(&snapshot, source)).transpose()
}

pub(super) fn of_application(connection: &Connection, app: AppId) -> rusqlite::Result<Option<SourceId>> {
    let mut find = connection.prepare_cached("SELECT id FROM source WHERE app = ?1")?;
    find.query_row((app.as_bytes(),), |row| id(row, 0)).optional()
}

pub(super) fn all(
    connection: &Connection,
    org: OrgId,
    page: Page<SourceId>,
    order: Order,
) -> rusqlite::Result<Vec<Source>> {
    let snapshot = connection.unchecked_transaction()?;
    let select = format!("SELECT {SOURCE} FROM source INDEXED BY source_org WHERE org = ?1");
    let found = list(&snapshot, &select, org.as_bytes(), page, order, source)?;
    found.into_iter().map(|source| with_tokens(&snapshot, source)).collect()
}

pub(super) fn event(connection: &Connection, app: AppId, key: &Key) -> rusqlite::Result<Option<SourceEvent>> {
    let snapshot = connection.unchecked_transaction()?;
    let Some(message) = history::bare_message(&snapshot, app, key)? else { return Ok(None) };
    let rounds = history::deliveries(&snapshot, message.id)?;
    let rounds = SourceEvent::newest(rounds, |endpoint| is_there(&snapshot, endpoint))?;
    let (deliveries, deleted) = views(&snapshot, app, rounds)?;
    Ok(Some(SourceEvent { message, deliveries, deleted }))
}

/// What is shown of the rounds of an event, and which of their endpoints were deleted before they had it.
pub(super) fn views(
    connection: &Connection,
    app: AppId,
    rounds: Vec<DeliveryStatus>,
) -> rusqlite::Result<(Vec<DeliveryView>, Vec<EndpointId>)> {
    let (mut views, mut deleted) = (Vec::with_capacity(rounds.len()), Vec::new());
    for round in rounds {
        if round.is_dead() && !is_there(connection, round.endpoint)? {
            deleted.push(round.endpoint);
        }
        views.push(view(connection, app, round)?);
    }
    Ok((views, deleted))
}

/// Whether an endpoint is not deleted.
pub(super) fn is_there(connection: &Connection, endpoint: EndpointId) -> rusqlite::Result<bool> {
    let select = format!("SELECT 1 FROM endpoint WHERE id = ?1 AND {THERE}");
    connection.prepare_cached(&select)?.exists((endpoint.as_bytes(),))
}

pub(super) fn reopen(
    connection: &Connection,
    reopen: &ReopenEvent,
    counters: &mut Counters,
) -> rusqlite::Result<Vec<(EndpointId, Waiting)>> {
    // Without its payload there is nothing to send.
    let mut find =
        connection.prepare_cached("SELECT 1 FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0")?;
    if !find.exists((reopen.app.as_bytes(), reopen.message.as_bytes()))? {
        return Ok(Vec::new());
    }
    let mut rounds = Vec::new();
    for status in history::deliveries(connection, reopen.message)? {
        let (is_there, seq) = (is_there(connection, status.endpoint)?, status.seq);
        rounds.push(Round { status, is_there, in_dead_letter: replay::in_dead_letter(connection, seq)? });
    }
    let mut there = Vec::with_capacity(reopen.wanting.len());
    for endpoint in &reopen.wanting {
        if is_there(connection, *endpoint)? {
            there.push(*endpoint);
        }
    }
    let mut opened = Vec::new();
    for (endpoint, settled) in reopen.targets(&rounds, |endpoint| there.contains(&endpoint)) {
        let waiting =
            replay::reopen(connection, endpoint, reopen.message, settled, (reopen.now, reopen.now))?;
        opened.push((endpoint, waiting));
    }
    counters.opened(opened.len());
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use crate::sqlite::plan::plan;

    #[test]
    fn a_token_is_found_by_its_digest_alone() {
        let plan = plan("SELECT source FROM source_token WHERE digest = ?1");
        assert!(plan.contains("PRIMARY KEY (digest=?)"), "{plan}");
    }
}
