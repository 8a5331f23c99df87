//! Keys that must not be used twice: event ids and idempotency keys.
//!
//! A key counts for as long as its row is there, whatever the clock says: a wrong clock must not let it be used again. The
//! engine removes rows, on a clock that it trusts.

use crate::operations::column::from_row;
use crate::operations::retention::{ExpiredItem, Search, SearchPage, StoredKey};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{IdempotencyKey, RequestDigest};
use aldaba_delivery::{AppId, MessageId, Timestamp};

#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyKind {
    EventId = 0,
    Idempotency = 1,
}

/// One key of an application or an organization.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UniqueKey<'a> {
    pub owner: &'a [u8; 20],
    pub kind: KeyKind,
    pub key: &'a [u8],
}

/// How long a key counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    Until(Timestamp),
    /// As long as what it led to is kept, and at least until a moment.
    WithResource {
        at_least: Option<Timestamp>,
    },
}

statements! {
    FIND = "SELECT resource FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3";
    KEEP = "INSERT INTO unique_key (owner, kind, key, resource, expires_at, at_least)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (owner, kind, key) DO UPDATE
        SET resource = excluded.resource, expires_at = excluded.expires_at, at_least = excluded.at_least";
    /// The searches continue behind a key in each of its three parts.
    WALK = "SELECT owner, kind, key, expires_at FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key > ?3
        UNION ALL
        SELECT owner, kind, key, expires_at FROM unique_key WHERE owner = ?1 AND kind > ?2
        UNION ALL
        SELECT owner, kind, key, expires_at FROM unique_key WHERE owner > ?1
        ORDER BY owner, kind, key LIMIT ?4";
    REMOVE_EXPIRED =
        "DELETE FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND expires_at <= ?4";
    /// An event id outlives its message until the later of two moments.
    OUTLIVE = "UPDATE unique_key SET expires_at = CASE WHEN at_least > ?5 THEN at_least ELSE ?5 END
        WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND resource = ?4 AND (CAST(?5 AS BIGINT) > ?6 OR at_least > ?6)";
    REMOVE = "DELETE FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND resource = ?4";
}

/// The bytes of the id that a key has led to.
pub(crate) fn find(
    reading: &dyn Reading,
    UniqueKey { owner, kind, key }: UniqueKey<'_>,
) -> Result<Option<[u8; 20]>> {
    reading.one(&FIND, values![owner, kind as i64, key])
}

/// The same of a request, under its current digest or its former one.
pub(crate) fn find_request(
    reading: &dyn Reading,
    owner: &[u8; 20],
    digest: &RequestDigest,
) -> Result<Option<[u8; 20]>> {
    for key in digest.all() {
        let found = find(reading, UniqueKey { owner, kind: KeyKind::Idempotency, key })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

pub(crate) fn keep(tx: &dyn Transaction, key: UniqueKey<'_>, resource: &[u8; 20], kept: Kept) -> Result<()> {
    let UniqueKey { owner, kind, key } = key;
    let (expires_at, at_least) = match kept {
        Kept::Until(end) => (Some(end), None),
        Kept::WithResource { at_least } => (None, at_least),
    };
    tx.execute(&KEEP, values![owner, kind as i64, key, resource, expires_at, at_least]).map(drop)
}

pub(crate) fn keep_request(
    tx: &dyn Transaction,
    owner: &[u8; 20],
    used: &IdempotencyKey,
    resource: &[u8; 20],
) -> Result<()> {
    let key = UniqueKey { owner, kind: KeyKind::Idempotency, key: &used.digest.current };
    keep(tx, key, resource, Kept::Until(used.expires_at))
}

from_row!(StoredKey { owner, kind, key });

pub(crate) fn expired(
    reading: &dyn Reading,
    after: Option<&StoredKey>,
    before: Timestamp,
    limit: usize,
) -> Result<SearchPage> {
    let (owner, kind, key): (&[u8], u8, &[u8]) = match after {
        Some(after) => (&after.owner, after.kind, &after.key),
        None => (&[], 0, &[]),
    };
    let found: Vec<(StoredKey, Option<Timestamp>)> = reading.all(&WALK, values![owner, kind, key, limit])?;
    let after = found.last().map(|(key, _)| key.clone());
    let next = (found.len() == limit).then_some(Search::Keys { after, before });
    let expired = found.into_iter().filter(|(_, expires_at)| expires_at.is_some_and(|at| at <= before));
    Ok(SearchPage { items: expired.map(|(key, _)| ExpiredItem::Key(key)).collect(), next })
}

pub(crate) fn remove_expired(tx: &dyn Transaction, key: &StoredKey, now: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_EXPIRED, values![key.owner, key.kind, key.key, now])
}

/// The message of an event id is removed: the id is kept until a moment, or removed where that is past. Returns how many
/// keys were removed.
pub(crate) fn outlive(
    tx: &dyn Transaction,
    (app, message): (AppId, MessageId),
    event_id: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<usize> {
    let (kind, key) = (KeyKind::EventId as i64, event_id.as_bytes());
    if tx.execute(&OUTLIVE, values![app, kind, key, message, until, now])? > 0 {
        return Ok(0);
    }
    tx.execute(&REMOVE, values![app, kind, key, message])
}
