//! Signed tokens that count no longer.

use crate::operations::column::{Columns, FromRow};
use crate::operations::retention::ExpiredItem;
use crate::operations::stored::{columns, insert, parameters, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Changed, PortalExpiry, RevokedToken};
use aldaba_delivery::{AppId, Timestamp};

stored! { RevokedToken { org, mark, expires_at } }

const CUT: &str = "SELECT app, session, issued_before, ends_at, expires_at FROM portal_cut";
const CUT_KEY: &str = "app = ?1 AND session = ?2 AND issued_before = ?3";

statements! {
    IS_THERE = "SELECT 1 FROM application WHERE id = ?1 AND deleted = 0";
    REVOKE = format!("{} ON CONFLICT DO NOTHING", insert::<RevokedToken>("revoked_token"));
    REVOKED = format!("SELECT {} FROM revoked_token ORDER BY mark", columns::<RevokedToken>());
    CUTS = format!("{CUT} ORDER BY app, session, issued_before");
    CUTS_OF_APPLICATION = format!("{CUT} WHERE app = ?1");
    CUTS_OF_SESSION = format!("{CUT} WHERE app = ?1 AND session IN (?2, '')");
    INSERT_CUT = "INSERT INTO portal_cut (app, session, issued_before, ends_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    REMOVE_CUT = format!("DELETE FROM portal_cut WHERE {CUT_KEY}");
    REMOVE_CUTS_OF_APPLICATION = "DELETE FROM portal_cut WHERE app = ?1";
    OLD_REVOKED = "SELECT mark FROM revoked_token WHERE expires_at IS NOT NULL AND expires_at < ?1
        ORDER BY expires_at LIMIT ?2";
    OLD_CUTS = format!(
        "{CUT} WHERE expires_at IS NOT NULL AND expires_at < ?1 ORDER BY expires_at LIMIT ?2"
    );
    REMOVE_REVOKED = "DELETE FROM revoked_token WHERE mark = ?1 AND expires_at < ?2";
}

/// An empty session stands for all of them.
impl FromRow for PortalExpiry {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (app, session): (_, String) = columns.take()?;
        let (issued_before, ends_at, expires_at) = columns.take()?;
        let session = Some(session).filter(|session| !session.is_empty());
        Ok(Self { app, session, issued_before, ends_at, expires_at })
    }
}

fn session(cut: &PortalExpiry) -> &str {
    cut.session.as_deref().unwrap_or_default()
}

/// For the audit log: nothing is stored.
pub(crate) fn grant_portal_access(tx: &dyn Transaction, app: AppId) -> Result<Changed> {
    tx.exists(&IS_THERE, values![app]).map(|there| Changed::found(usize::from(there)))
}

pub(crate) fn revoke(tx: &dyn Transaction, token: &RevokedToken) -> Result<Changed> {
    let made = tx.execute(&REVOKE, &parameters(token))?;
    Ok(if made == 0 { Changed::Unchanged } else { Changed::done() })
}

pub(crate) fn revoked(reading: &dyn Reading) -> Result<Vec<RevokedToken>> {
    reading.all(&REVOKED, values![])
}

pub(crate) fn end_portal_tokens(
    tx: &dyn Transaction,
    app: AppId,
    cuts: &[PortalExpiry],
    now: Timestamp,
) -> Result<Changed> {
    if !tx.exists(&IS_THERE, values![app])? {
        return Ok(Changed::NotFound);
    }
    for new in cuts {
        // A cut for all may cover those of any session; a cut of a session may be covered by one for all.
        let there: Vec<PortalExpiry> = match &new.session {
            None => tx.all(&CUTS_OF_APPLICATION, values![app])?,
            Some(session) => tx.all(&CUTS_OF_SESSION, values![app, session])?,
        };
        if there.iter().any(|old| old.covers(new, now)) {
            continue;
        }
        for old in there.iter().filter(|old| new.covers(old, now)) {
            remove_cut(tx, old)?;
        }
        let PortalExpiry { issued_before, ends_at, expires_at, .. } = new;
        tx.execute(&INSERT_CUT, values![app, session(new), issued_before, ends_at, expires_at])?;
    }
    Ok(Changed::done())
}

pub(crate) fn cuts(reading: &dyn Reading) -> Result<Vec<PortalExpiry>> {
    reading.all(&CUTS, values![])
}

/// Revocations and cuts of tokens that would have ended before a moment anyway.
pub(crate) fn needless(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let revoked: Vec<[u8; 32]> = reading.all(&OLD_REVOKED, values![before, limit])?;
    let cuts: Vec<PortalExpiry> = reading.all(&OLD_CUTS, values![before, limit - revoked.len()])?;
    let revoked = revoked.into_iter().map(|mark| ExpiredItem::RevokedToken(mark, before));
    Ok(revoked.chain(cuts.into_iter().map(ExpiredItem::PortalExpiry)).collect())
}

pub(crate) fn remove_revoked(tx: &dyn Transaction, mark: &[u8; 32], before: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_REVOKED, values![mark, before])
}

pub(crate) fn remove_cut(tx: &dyn Transaction, cut: &PortalExpiry) -> Result<usize> {
    tx.execute(&REMOVE_CUT, values![cut.app, session(cut), cut.issued_before])
}

pub(crate) fn remove_cuts_of_application(tx: &dyn Transaction, app: AppId) -> Result<usize> {
    tx.execute(&REMOVE_CUTS_OF_APPLICATION, values![app])
}
