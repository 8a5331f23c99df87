//! API keys, and signed tokens that count no longer.

use super::codes::Code;
use super::rows::{self, count};
use crate::{ApiKey, Changed, PortalCut, RevokedToken, Scope, Stale};
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

fn done(rows: usize) -> Changed {
    if rows == 0 { Changed::NotFound } else { Changed::Done { removed: Vec::new() } }
}

fn is_there(connection: &Connection, app: AppId, org: Option<OrgId>) -> rusqlite::Result<bool> {
    let mut find = connection.prepare_cached(
        "SELECT 1 FROM application WHERE id = ?1 AND deleted = 0 AND org = coalesce(?2, org)",
    )?;
    find.exists((app.as_bytes(), org.as_ref().map(OrgId::as_bytes)))
}

pub(super) fn create(connection: &Connection, key: &ApiKey) -> rusqlite::Result<Changed> {
    if let Some(app) = key.app
        && !is_there(connection, app, Some(key.org))?
    {
        return Ok(Changed::NotFound);
    }
    let mut counted = connection.prepare_cached("SELECT count(*) FROM api_key WHERE org = ?1")?;
    if counted.query_row((key.org.as_bytes(),), |row| row.get::<_, i64>(0))? >= count(ApiKey::MOST) {
        return Ok(Changed::TooMany);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO api_key (id, org, app, name, prefix, digest, scope, created_at, expires_at, last_used_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
    )?;
    let made = insert.execute(params![
        key.id.as_bytes(),
        key.org.as_bytes(),
        key.app.as_ref().map(AppId::as_bytes),
        key.name,
        key.prefix,
        key.digest,
        key.scope.code(),
        key.created_at.millis(),
        key.expires_at.map(Timestamp::millis),
        key.last_used_at.map(Timestamp::millis),
    ])?;
    Ok(if made == 0 { Changed::UidTaken } else { Changed::Done { removed: Vec::new() } })
}

pub(super) fn rename(
    connection: &Connection,
    org: OrgId,
    id: ApiKeyId,
    name: &str,
) -> rusqlite::Result<Changed> {
    let mut update = connection.prepare_cached("UPDATE api_key SET name = ?3 WHERE id = ?1 AND org = ?2")?;
    update.execute((id.as_bytes(), org.as_bytes(), name)).map(done)
}

pub(super) fn revoke(connection: &Connection, org: OrgId, id: ApiKeyId) -> rusqlite::Result<Changed> {
    let mut delete = connection.prepare_cached("DELETE FROM api_key WHERE id = ?1 AND org = ?2")?;
    delete.execute((id.as_bytes(), org.as_bytes())).map(done)
}

pub(super) fn revoke_of_application(connection: &Connection, app: AppId) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM api_key WHERE app = ?1")?.execute((app.as_bytes(),)).map(drop)
}

/// A use never moves back: the clock may.
pub(super) fn note_uses(
    connection: &Connection,
    uses: &[(ApiKeyId, Timestamp)],
) -> rusqlite::Result<Changed> {
    let mut update = connection.prepare_cached(
        "UPDATE api_key SET last_used_at = max(coalesce(last_used_at, ?2), ?2) WHERE id = ?1",
    )?;
    for (id, at) in uses {
        update.execute((id.as_bytes(), at.millis()))?;
    }
    Ok(Changed::Done { removed: Vec::new() })
}

const KEY: &str = "id, org, app, name, prefix, digest, scope, created_at, expires_at, last_used_at";

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<ApiKey>> {
    connection
        .prepare_cached(&format!("SELECT {KEY} FROM api_key ORDER BY id"))?
        .query_map((), key)?
        .collect()
}

pub(super) fn one(connection: &Connection, org: OrgId, id: ApiKeyId) -> rusqlite::Result<Option<ApiKey>> {
    connection
        .prepare_cached(&format!("SELECT {KEY} FROM api_key WHERE id = ?1 AND org = ?2"))?
        .query_row((id.as_bytes(), org.as_bytes()), key)
        .optional()
}

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        id: rows::id(row, 0)?,
        org: rows::id(row, 1)?,
        app: rows::id_or_none(row, 2)?,
        name: row.get(3)?,
        prefix: row.get(4)?,
        digest: row.get(5)?,
        scope: Scope::from_code(row.get(6)?)?,
        created_at: rows::moment(row, 7)?,
        expires_at: rows::moment_or_none(row, 8)?,
        last_used_at: rows::moment_or_none(row, 9)?,
    })
}

pub(super) fn grant_portal_access(connection: &Connection, app: AppId) -> rusqlite::Result<Changed> {
    is_there(connection, app, None).map(|there| done(usize::from(there)))
}

pub(super) fn revoke_token(connection: &Connection, token: &RevokedToken) -> rusqlite::Result<Changed> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO revoked_token (mark, org, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    let until = token.expires_at.map(Timestamp::millis);
    let made = insert.execute((token.mark, token.org.as_bytes(), until))?;
    Ok(if made == 0 { Changed::Unchanged } else { Changed::Done { removed: Vec::new() } })
}

pub(super) fn revoked(connection: &Connection) -> rusqlite::Result<Vec<RevokedToken>> {
    let token = |row: &Row<'_>| {
        let (mark, org, expires_at) = (row.get(0)?, rows::id(row, 1)?, rows::moment_or_none(row, 2)?);
        Ok(RevokedToken { org, mark, expires_at })
    };
    connection
        .prepare_cached("SELECT mark, org, expires_at FROM revoked_token ORDER BY mark")?
        .query_map((), token)?
        .collect()
}

const CUTS: &str = "SELECT app, session, issued_before, ends_at, expires_at FROM portal_cut";

pub(super) fn end_portal_tokens(
    connection: &Connection,
    app: AppId,
    cuts: &[PortalCut],
    now: Timestamp,
) -> rusqlite::Result<Changed> {
    if !is_there(connection, app, None)? {
        return Ok(Changed::NotFound);
    }
    // One for all may cover those of any session; one of a session may be covered by one for all.
    let mut of_all = connection.prepare_cached(&format!("{CUTS} WHERE app = ?1"))?;
    let mut of_session =
        connection.prepare_cached(&format!("{CUTS} WHERE app = ?1 AND session IN (?2, '')"))?;
    let mut delete = connection
        .prepare_cached("DELETE FROM portal_cut WHERE app = ?1 AND session = ?2 AND issued_before = ?3")?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO portal_cut (app, session, issued_before, ends_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for new in cuts {
        let session = new.session.as_deref().unwrap_or_default();
        let there: Vec<PortalCut> = match &new.session {
            None => of_all.query_map((app.as_bytes(),), cut)?.collect::<Result<_, _>>()?,
            Some(session) => {
                of_session.query_map((app.as_bytes(), session), cut)?.collect::<Result<_, _>>()?
            }
        };
        if there.iter().any(|old| old.covers(new, now)) {
            continue;
        }
        for old in there.iter().filter(|old| new.covers(old, now)) {
            let session = old.session.as_deref().unwrap_or_default();
            delete.execute((app.as_bytes(), session, old.issued_before.millis()))?;
        }
        let (ends_at, expires_at) = (new.ends_at.millis(), new.expires_at.map(Timestamp::millis));
        insert.execute((app.as_bytes(), session, new.issued_before.millis(), ends_at, expires_at))?;
    }
    Ok(Changed::Done { removed: Vec::new() })
}

fn cut(row: &Row<'_>) -> rusqlite::Result<PortalCut> {
    Ok(PortalCut {
        app: rows::id(row, 0)?,
        session: Some(row.get::<_, String>(1)?).filter(|session| !session.is_empty()),
        issued_before: rows::moment(row, 2)?,
        ends_at: rows::moment(row, 3)?,
        expires_at: rows::moment_or_none(row, 4)?,
    })
}

pub(super) fn cuts(connection: &Connection) -> rusqlite::Result<Vec<PortalCut>> {
    let mut find = connection.prepare_cached(&format!("{CUTS} ORDER BY app, session, issued_before"))?;
    find.query_map((), cut)?.collect()
}

/// What says of tokens that they have ended, where they would have ended anyway before a moment.
pub(super) fn needless(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Stale>> {
    let mut tokens = connection.prepare_cached(
        "SELECT mark FROM revoked_token INDEXED BY revoked_token_end
         WHERE expires_at IS NOT NULL AND expires_at < ?1 ORDER BY expires_at LIMIT ?2",
    )?;
    let token = |row: &Row<'_>| row.get(0).map(|mark| Stale::RevokedToken(mark, before));
    let mut stale =
        tokens.query_map((before.millis(), count(limit)), token)?.collect::<Result<Vec<_>, _>>()?;
    let mut cuts = connection.prepare_cached(&format!(
        "{CUTS} INDEXED BY portal_cut_end
         WHERE expires_at IS NOT NULL AND expires_at < ?1 ORDER BY expires_at LIMIT ?2"
    ))?;
    for found in cuts.query_map((before.millis(), count(limit - stale.len())), cut)? {
        stale.push(Stale::PortalCut(found?));
    }
    Ok(stale)
}
