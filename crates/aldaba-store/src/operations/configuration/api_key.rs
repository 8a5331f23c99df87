//! API keys.

use crate::operations::column::count;
use crate::operations::stored::{columns, insert, parameters, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction, application};
use crate::{ApiKey, Changed};
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};

stored! { ApiKey { id, org, app, name, prefix, digest, scope, created_at, expires_at, last_used_at } }

statements! {
    INSERT = format!("{} ON CONFLICT DO NOTHING", insert::<ApiKey>("api_key"));
    COUNT = "SELECT count(*) FROM api_key WHERE org = ?1";
    RENAME = "UPDATE api_key SET name = ?3 WHERE id = ?1 AND org = ?2";
    REVOKE = "DELETE FROM api_key WHERE id = ?1 AND org = ?2";
    REVOKE_OF_APPLICATION = "DELETE FROM api_key WHERE app = ?1";
    /// A use never moves back: the clock may.
    NOTE_USE = "UPDATE api_key SET last_used_at = ?2
        WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";
    ALL = format!("SELECT {} FROM api_key ORDER BY id", columns::<ApiKey>());
    ONE = format!("SELECT {} FROM api_key WHERE id = ?1 AND org = ?2", columns::<ApiKey>());
}

pub(crate) fn create(tx: &dyn Transaction, key: &ApiKey) -> Result<Changed> {
    if let Some(app) = key.app
        && !application::exists(tx, app, key.org)?
    {
        return Ok(Changed::NotFound);
    }
    if tx.number(&COUNT, values![key.org])? >= count(ApiKey::MAX_PER_ORGANIZATION) {
        return Ok(Changed::TooMany);
    }
    let made = tx.execute(&INSERT, &parameters(key))?;
    Ok(if made == 0 { Changed::UidTaken } else { Changed::done() })
}

pub(crate) fn rename(tx: &dyn Transaction, org: OrgId, id: ApiKeyId, name: &str) -> Result<Changed> {
    tx.execute(&RENAME, values![id, org, name]).map(Changed::found)
}

pub(crate) fn revoke(tx: &dyn Transaction, org: OrgId, id: ApiKeyId) -> Result<Changed> {
    tx.execute(&REVOKE, values![id, org]).map(Changed::found)
}

pub(crate) fn revoke_of_application(tx: &dyn Transaction, app: AppId) -> Result<()> {
    tx.execute(&REVOKE_OF_APPLICATION, values![app]).map(drop)
}

pub(crate) fn note_uses(tx: &dyn Transaction, uses: &[(ApiKeyId, Timestamp)]) -> Result<Changed> {
    for (id, at) in uses {
        tx.execute(&NOTE_USE, values![id, at])?;
    }
    Ok(Changed::done())
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<ApiKey>> {
    reading.all(&ALL, values![])
}

pub(crate) fn one(reading: &dyn Reading, org: OrgId, id: ApiKeyId) -> Result<Option<ApiKey>> {
    reading.one(&ONE, values![id, org])
}
